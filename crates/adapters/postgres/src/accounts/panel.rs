//! Data that the panel shows: the signed-in seller, passwords, one-time links, personal tokens.

use accounts::{
    Account, HourlyUsage, Link, LinkKind, PanelReader, PasswordHash, PersonalToken, SESSION_IDLE,
    SESSION_LIFETIME, Seller, Session, SignedIn,
};
use async_trait::async_trait;
use chrono::{DateTime, Utc};
use kernel::{SellerId, StoreError};
use oauth::{ClientId, FamilyId, ScopeSet, SecretHash};
use uuid::Uuid;

use super::{SellerRow, all_links, usage};
use crate::connection::pool::Autocommit;
use crate::sql::{microseconds, row, sql};

row! {
    struct SignedInRow {
        seller: SellerRow,
        created_at: DateTime<Utc>,
        seen_at: DateTime<Utc>,
        now: DateTime<Utc>,
    }
}

row! {
    struct TokenRow {
        id: Uuid,
        name: String,
        scopes: i32,
        created_at: DateTime<Utc>,
        expires_at: Option<DateTime<Utc>>,
    }
}

impl TryFrom<TokenRow> for PersonalToken {
    type Error = StoreError;

    fn try_from(row: TokenRow) -> Result<Self, StoreError> {
        let id = FamilyId::from(row.id);
        Ok(Self {
            id,
            name: row.name,
            scopes: ScopeSet::from_bits(row.scopes)
                .map_err(|unknown| StoreError::corrupt("families", id, unknown.to_string()))?,
            created_at: row.created_at,
            expires_at: row.expires_at,
        })
    }
}

/// Reads the panel's data. Each call is one statement.
#[async_trait]
impl PanelReader for Autocommit {
    async fn account(&self, email: &str) -> Result<Option<Account>, StoreError> {
        let account = sql!((SellerRow, Option<String>): "select id, seller_no, name, email, created_at, closed_at, \
            password_hash from sellers where lower(email) = lower(", email, ")");
        let Some((seller, password)) = self.row(account).await? else {
            return Ok(None);
        };
        let seller = Seller::try_from(seller)?;
        if !accounts::is_same_address(&seller.email, email) {
            return Ok(None);
        }
        Ok(Some(Account {
            seller,
            password: password.map(PasswordHash::new),
        }))
    }

    async fn password(&self, seller: SellerId) -> Result<Option<PasswordHash>, StoreError> {
        let password =
            sql!(Option<String>: "select password_hash from sellers where id = ", seller.uuid(), "");
        Ok(self.row(password).await?.flatten().map(PasswordHash::new))
    }

    /// Records the session's use if the last record is at least a minute old. That commit is asynchronous: if a crash
    /// loses it, the session ends a minute early.
    async fn signed_in(&self, session: SecretHash) -> Result<Option<SignedIn>, StoreError> {
        let look_up = sql!(SignedInRow:
            "with clock as materialized (select at, mode \
               from (select api_now() as at, set_config('synchronous_commit', 'off', true) as mode) present), \
             valid as materialized (select e.hash, e.created_at, e.seen_at, s.id, s.seller_no, s.name, s.email, \
                 s.created_at as registered_at, s.closed_at \
               from clock cross join sessions e join sellers s on s.id = e.seller_id where e.hash = ",
            session.bytes().as_slice(), " and e.seen_at > clock.at - ", microseconds(SESSION_IDLE),
            " * interval '1 microsecond' and e.created_at > clock.at - ", microseconds(SESSION_LIFETIME),
            " * interval '1 microsecond' and s.closed_at is null and s.session_generation = e.generation), \
             touched as (update sessions e set seen_at = clock.at from clock cross join valid l \
               where e.hash = l.hash and e.seen_at <= clock.at - interval '1 minute' returning e.seen_at) \
             select l.id, l.seller_no, l.name, l.email, l.registered_at, l.closed_at, l.created_at, \
               coalesce((select seen_at from touched), l.seen_at), clock.at from valid l cross join clock");
        let Some(row) = self.row(look_up).await? else {
            return Ok(None);
        };
        let seller = Seller::try_from(row.seller)?;
        let session = Session {
            hash: session,
            seller: seller.id,
            created_at: row.created_at,
            seen_at: row.seen_at,
        };
        Ok(Some(SignedIn {
            seller,
            session,
            now: row.now,
        }))
    }

    /// A link that is still usable.
    async fn link(&self, hash: SecretHash) -> Result<Option<(Link, Seller)>, StoreError> {
        let read = sql!((String, DateTime<Utc>, SellerRow):
            concat!("select l.kind, l.expires_at, s.id, s.seller_no, s.name, s.email, s.created_at, s.closed_at from ", all_links!(),
            " l join sellers s on s.id = l.seller_id where l.hash = "), hash.bytes().as_slice(),
            " and l.expires_at > (select api_now()) and s.closed_at is null");
        let Some((kind, expires_at, seller)) = self.row(read).await? else {
            return Ok(None);
        };
        let seller = Seller::try_from(seller)?;
        let corrupt = || StoreError::corrupt("links", seller.id, format!("kind {kind:?}"));
        let link = Link {
            hash,
            kind: LinkKind::parse(&kind).ok_or_else(corrupt)?,
            seller: seller.id,
            expires_at,
        };
        Ok(Some((link, seller)))
    }

    /// The tokens that the gate would accept while account and application are open.
    async fn personal_tokens(&self, seller: SellerId) -> Result<Vec<PersonalToken>, StoreError> {
        let rows = self.rows(sql!(TokenRow:
            "with clock as materialized (select api_now() as at) select p.id, p.name, f.scopes, p.created_at, t.expires_at \
             from clock cross join personal_tokens p join families f on f.id = p.id join access_tokens t on t.family_id = f.id \
               join sellers s on s.id = f.seller_id and s.token_generation = f.seller_generation \
               join applications a on a.client_id = f.client_id and a.token_generation = f.application_generation \
             where p.seller_id = ", seller.uuid(),
            " and f.revoked_at is null and t.revoked_at is null and (t.expires_at is null or t.expires_at > clock.at) \
             order by p.created_at desc, p.id desc")).await?;
        rows.into_iter().map(PersonalToken::try_from).collect()
    }

    async fn usage(
        &self,
        client_id: ClientId,
        since: DateTime<Utc>,
    ) -> Result<(Vec<HourlyUsage>, u64), StoreError> {
        usage::read(&self, client_id, since).await
    }
}
