//! What the panel keeps and shows: sessions, passwords, one-time links, what is shown once, personal tokens.

use std::net::IpAddr;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use kernel::{SellerId, StoreError};
use oauth::{
    Account, AccountMail, Action, Actor, ClientId, Count, FamilyId, HourlyUsage, Limiter, Link, LinkKind,
    PanelReader, PanelStore, PasswordHash, PersonalToken, SESSION_IDLE, SESSION_LIFETIME, ScopeSet,
    SecretHash, Seller, Session, SignedIn, Subject,
};
use uuid::Uuid;

use super::{audit, sellers::SellerRow, usage};
use crate::{
    connection::pool::Autocommit,
    mails::{account_mail, microseconds},
    rate_limits,
    sql::{row, sql},
    unit_of_work::{Tx, expect_rows},
};

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

/// Reads what the panel shows. Each call is one statement.
pub(crate) struct Panel(pub(crate) Autocommit);

#[async_trait]
impl PanelReader for Panel {
    async fn account(&self, email: &str) -> Result<Option<Account>, StoreError> {
        let account = sql!((SellerRow, Option<String>): "select id, seller_no, name, email, created_at, closed_at, \
            password_hash from sellers where lower(email) = lower(", email, ")");
        let Some((seller, password)) = self.0.row(account).await? else {
            return Ok(None);
        };
        let seller = Seller::try_from(seller)?;
        if !oauth::is_same_address(&seller.email, email) {
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
        Ok(self.0.row(password).await?.flatten().map(PasswordHash::new))
    }

    /// Notes the session's use where the last one was noted a minute ago or longer. That note does not wait for the
    /// disk: lost in a crash, it ends the session a minute early.
    async fn signed_in(&self, session: SecretHash) -> Result<Option<SignedIn>, StoreError> {
        let look_up = sql!(SignedInRow:
            "with clock as materialized (select at, mode \
               from (select api_now() as at, set_config('synchronous_commit', 'off', true) as mode) present), \
             living as materialized (select e.hash, e.created_at, e.seen_at, s.id, s.seller_no, s.name, s.email, \
                 s.created_at as registered_at, s.closed_at \
               from clock cross join sessions e join sellers s on s.id = e.seller_id where e.hash = ",
            session.bytes().as_slice(), " and e.seen_at > clock.at - ", microseconds(SESSION_IDLE),
            " * interval '1 microsecond' and e.created_at > clock.at - ", microseconds(SESSION_LIFETIME),
            " * interval '1 microsecond' and s.closed_at is null), \
             touched as (update sessions e set seen_at = clock.at from clock cross join living l \
               where e.hash = l.hash and e.seen_at <= clock.at - interval '1 minute' returning e.seen_at) \
             select l.id, l.seller_no, l.name, l.email, l.registered_at, l.closed_at, l.created_at, \
               coalesce((select seen_at from touched), l.seen_at), clock.at from living l cross join clock");
        let Some(row) = self.0.row(look_up).await? else {
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

    /// A link that can be used.
    async fn link(&self, hash: SecretHash) -> Result<Option<(Link, Seller)>, StoreError> {
        let read = sql!((String, DateTime<Utc>, SellerRow):
            "select l.kind, l.expires_at, s.id, s.seller_no, s.name, s.email, s.created_at, s.closed_at \
             from links l join sellers s on s.id = l.seller_id where l.hash = ", hash.bytes().as_slice(),
            " and l.expires_at > (select api_now()) and s.closed_at is null");
        let Some((kind, expires_at, seller)) = self.0.row(read).await? else {
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

    /// Those that the gate would let in, as far as they themselves are concerned.
    async fn personal_tokens(&self, seller: SellerId) -> Result<Vec<PersonalToken>, StoreError> {
        let rows = self.0.rows(sql!(TokenRow:
            "with clock as materialized (select api_now() as at) select p.id, p.name, f.scopes, p.created_at, t.expires_at \
             from clock cross join personal_tokens p join families f on f.id = p.id join access_tokens t on t.family_id = f.id \
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
        usage::read(&self.0, client_id, since).await
    }
}

#[async_trait]
impl PanelStore for Tx {
    async fn open_session(&self, session: Session) -> Result<(), StoreError> {
        let insert = sql!((): "insert into sessions (hash, seller_id, created_at, seen_at) values (",
            session.hash.bytes().as_slice(), ", ", session.seller.uuid(), ", ", session.created_at, ", ", session.seen_at, ")");
        expect_rows("sessions", self.execute(insert).await?, 1)
    }

    async fn end_session(&self, session: SecretHash) -> Result<(), StoreError> {
        let end = sql!((): "delete from sessions where hash = ", session.bytes().as_slice(), "");
        self.execute(end).await.map(drop)
    }

    async fn end_sessions(&self, seller: SellerId, but: Option<SecretHash>) -> Result<(), StoreError> {
        let spared = but.as_ref().map_or(&[][..], |but| but.bytes().as_slice());
        // Links first: whoever is using one is waited for here, so that the session that it opened is seen below.
        self.execute(sql!((): "delete from links where seller_id = ", seller.uuid(), ""))
            .await?;
        let end =
            sql!((): "delete from sessions where seller_id = ", seller.uuid(), " and hash <> ", spared, "");
        self.execute(end).await.map(drop)
    }

    async fn has_session(&self, session: SecretHash) -> Result<bool, StoreError> {
        let has =
            sql!(bool: "select exists (select from sessions where hash = ", session.bytes().as_slice(), ")");
        Ok(self.row(has).await?.unwrap_or_default())
    }

    async fn present_password(&self, seller: SellerId) -> Result<Option<PasswordHash>, StoreError> {
        let password =
            sql!(Option<String>: "select password_hash from sellers where id = ", seller.uuid(), "");
        Ok(self.row(password).await?.flatten().map(PasswordHash::new))
    }

    async fn set_password(&self, seller: SellerId, password: PasswordHash) -> Result<(), StoreError> {
        let set = sql!((): "update sellers set password_hash = ", password.as_str(), " where id = ", seller.uuid(), "");
        expect_rows("sellers", self.execute(set).await?, 1)
    }

    /// It takes the place of the link of its kind and account before it.
    async fn add_link(&self, link: Link) -> Result<(), StoreError> {
        let add = sql!(():
            "insert into links (hash, seller_id, kind, expires_at) values (", link.hash.bytes().as_slice(), ", ",
            link.seller.uuid(), ", ", link.kind.as_str(), ", ", link.expires_at,
            ") on conflict (seller_id, kind) do update set hash = excluded.hash, expires_at = excluded.expires_at");
        expect_rows("links", self.execute(add).await?, 1)
    }

    /// The account is locked first. Of two uses at once one finds the link.
    async fn use_link(&self, hash: SecretHash, kind: LinkKind) -> Result<Option<Seller>, StoreError> {
        let used = sql!(SellerRow:
            "with given as materialized (select ", hash.bytes().as_slice(), "::bytea as hash, ", kind.as_str(),
            "::text as kind), \
             owner as materialized (select s.id, s.seller_no, s.name, s.email, s.created_at, s.closed_at \
               from given join links l on l.hash = given.hash and l.kind = given.kind and l.expires_at > (select api_now()) \
                 join sellers s on s.id = l.seller_id where s.closed_at is null for no key update of s) \
             delete from links l using given, owner where l.hash = given.hash and l.seller_id = owner.id \
             returning owner.id, owner.seller_no, owner.name, owner.email, owner.created_at, owner.closed_at");
        self.row(used).await?.map(Seller::try_from).transpose()
    }

    async fn queue_account_mail(&self, mail: AccountMail) -> Result<(), StoreError> {
        self.write_later(account_mail(mail, &self.tools().sealing)?);
        Ok(())
    }

    /// False where the form was sent before. Whoever sends it at the same moment waits for the first one's end.
    async fn keep_flash(
        &self,
        session: SecretHash,
        form: Uuid,
        sealed: Option<Vec<u8>>,
    ) -> Result<bool, StoreError> {
        let keep = sql!(():
            "insert into flashes (session_hash, form, sealed) values (", session.bytes().as_slice(), ", ", form, ", ",
            sealed, ") on conflict (session_hash, form) do nothing");
        Ok(self.execute(keep).await? == 1)
    }

    /// The row stays, to tell that the form was sent.
    async fn take_flash(&self, session: SecretHash, form: Uuid) -> Result<Option<Vec<u8>>, StoreError> {
        self.row(sql!(Vec<u8>:
            "with kept as materialized (select session_hash, form, sealed from flashes where session_hash = ",
            session.bytes().as_slice(), " and form = ", form, " and sealed is not null for no key update) \
             update flashes f set sealed = null from kept k where f.session_hash = k.session_hash and f.form = k.form \
             returning k.sealed")).await
    }

    async fn count_deed(&self, limiter: Limiter, subject: Subject) -> Result<Count, StoreError> {
        rate_limits::count_in(self, limiter, subject).await
    }

    async fn note(
        &self,
        actor: Actor,
        address: Option<IpAddr>,
        action: Action,
        subject: &str,
    ) -> Result<(), StoreError> {
        self.write_later(audit::entry(actor, address, action, subject));
        Ok(())
    }
}
