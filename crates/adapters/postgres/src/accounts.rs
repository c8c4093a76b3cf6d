//! Accounts and their data, within a transaction; sellers and operator tokens outside of one.

pub(crate) mod audit;
pub(crate) mod panel;
pub(crate) mod usage;

use std::net::IpAddr;

use accounts::{
    AccountMail, AccountStore, Action, Actor, Link, LinkKind, NewOperatorToken, NewSeller,
    OperatorTokenRecord, OperatorTokens, PasswordHash, Seller, SellerReader, Session,
};
use async_trait::async_trait;
use chrono::{DateTime, Utc};
use kernel::{SellerId, StoreError};
use oauth::{Count, FamilyId, FamilyKind, Limiter, SecretHash, Subject};
use serde_json::Value;
use uuid::Uuid;

use crate::connection::pool::Autocommit;
use crate::follow_ups::FollowUp;
use crate::mails::account_mail;
use crate::rate_limits;
use crate::sql::{microseconds, row, sql};
use crate::unit_of_work::{Tx, expect_rows};

row! {
    struct SellerRow {
        id: Uuid,
        seller_no: i32,
        name: String,
        email: String,
        created_at: DateTime<Utc>,
        closed_at: Option<DateTime<Utc>>,
    }
}

impl TryFrom<SellerRow> for Seller {
    type Error = StoreError;

    fn try_from(row: SellerRow) -> Result<Self, StoreError> {
        if row.seller_no < 1 {
            let reason = format!("seller_no {}", row.seller_no);
            return Err(StoreError::corrupt("sellers", row.id, reason));
        }
        Ok(Self {
            id: row.id.into(),
            seller_no: row.seller_no,
            name: row.name,
            email: row.email,
            created_at: row.created_at,
            closed_at: row.closed_at,
        })
    }
}

/// All links: the newest of each kind, and earlier ones that came by mail.
macro_rules! all_links {
    () => {
        "(select hash, seller_id, kind, expires_at from links union all \
          select hash, seller_id, kind, expires_at from earlier_links)"
    };
}
pub(crate) use all_links;

/// Reads sellers outside a transaction.
#[async_trait]
impl SellerReader for Autocommit {
    async fn seller(&self, id: SellerId) -> Result<Option<Seller>, StoreError> {
        let seller = sql!(SellerRow: "select id, seller_no, name, email, created_at, closed_at from sellers where id = ",
            id.uuid(), "");
        self.row(seller).await?.map(Seller::try_from).transpose()
    }

    async fn sellers(&self, after: i32, limit: u16) -> Result<Vec<Seller>, StoreError> {
        let some = sql!(SellerRow: "select id, seller_no, name, email, created_at, closed_at from sellers where seller_no > ",
            after, " order by seller_no limit ", i64::from(limit), "");
        self.rows(some).await?.into_iter().map(Seller::try_from).collect()
    }
}

row! {
    struct OperatorRow {
        id: Uuid,
        name: String,
        created_at: DateTime<Utc>,
        revoked_at: Option<DateTime<Utc>>,
        used_at: Option<DateTime<Utc>>,
        expires_at: Option<DateTime<Utc>>,
        read_only: bool,
    }
}

impl From<OperatorRow> for OperatorTokenRecord {
    fn from(row: OperatorRow) -> Self {
        Self {
            id: row.id,
            name: row.name,
            created_at: row.created_at,
            revoked_at: row.revoked_at,
            used_at: row.used_at,
            expires_at: row.expires_at,
            read_only: row.read_only,
        }
    }
}

/// Each call is one autocommitted statement.
#[async_trait]
impl OperatorTokens for Autocommit {
    /// The use is committed asynchronously: a crash may lose the last one.
    async fn operator(
        &self,
        hash: SecretHash,
    ) -> Result<Result<OperatorTokenRecord, Option<Uuid>>, StoreError> {
        let known = sql!((OperatorRow, bool):
            "with clock as materialized (select at, mode \
               from (select api_now() as at, set_config('synchronous_commit', 'off', true) as mode) present), \
             known as materialized (select o.id, o.name, o.created_at, o.revoked_at, o.used_at, o.expires_at, o.read_only, \
                 o.revoked_at is null and (o.expires_at is null or o.expires_at > clock.at) as live \
               from clock cross join operator_tokens o where o.hash = ", hash.bytes().as_slice(),
            "), used as (update operator_tokens o set used_at = clock.at from clock cross join known k \
               where o.id = k.id and k.live and (o.used_at is null or o.used_at <= clock.at - interval '1 minute')) \
             select id, name, created_at, revoked_at, used_at, expires_at, read_only, live from known");
        Ok(match self.row(known).await? {
            Some((row, true)) => Ok(row.into()),
            Some((row, false)) => Err(Some(row.id)),
            None => Err(None),
        })
    }

    async fn operator_tokens(&self) -> Result<Vec<OperatorTokenRecord>, StoreError> {
        let all = sql!(OperatorRow:
            "select id, name, created_at, revoked_at, used_at, expires_at, read_only from operator_tokens order by created_at, id");
        let rows = self.rows(all).await?;
        Ok(rows.into_iter().map(OperatorTokenRecord::from).collect())
    }
}

#[async_trait]
impl AccountStore for Tx {
    async fn add_seller(&self, seller: NewSeller) -> Result<Seller, StoreError> {
        let password = seller.password.as_ref().map(PasswordHash::as_str);
        let insert = sql!(SellerRow: "insert into sellers (id, name, email, password_hash, created_at) values (",
            seller.id.uuid(), ", ", seller.name.as_str(), ", ", seller.email.as_str(), ", ", password, ", ", seller.created_at,
            ") returning id, seller_no, name, email, created_at, closed_at");
        let row = self.row(insert).await?;
        row.ok_or_else(|| StoreError::unexpected("a seller was not stored"))?
            .try_into()
    }

    async fn lock_seller(&self, id: SellerId) -> Result<Option<Seller>, StoreError> {
        let lock = sql!(SellerRow: "select id, seller_no, name, email, created_at, closed_at from sellers where id = ",
            id.uuid(), " for no key update");
        self.row(lock).await?.map(Seller::try_from).transpose()
    }

    async fn close_seller(&self, id: SellerId, at: DateTime<Utc>) -> Result<bool, StoreError> {
        let close = sql!((): "update sellers set closed_at = coalesce(closed_at, ", at, ") where id = ", id.uuid(), "");
        let closed = self.execute(close).await? == 1;
        if closed {
            FollowUp::Seller(id).queue(self);
        }
        Ok(closed)
    }

    async fn open_session(&self, session: Session) -> Result<(), StoreError> {
        let insert = sql!((): "insert into sessions (hash, created_at, seen_at, seller_id, generation) select ",
            session.hash.bytes().as_slice(), ", ", session.created_at, ", ", session.seen_at,
            ", id, session_generation from sellers where id = ", session.seller.uuid(), "");
        expect_rows("sessions", self.execute(insert).await?, 1)
    }

    async fn end_session(&self, session: SecretHash) -> Result<(), StoreError> {
        let end = sql!((): "delete from sessions where hash = ", session.bytes().as_slice(), "");
        self.execute(end).await.map(drop)
    }

    /// Raises the generation that all of them were opened under. That waits for a transaction that is using a link, which has locked the
    /// account, so the session that it opens ends too.
    async fn end_sessions(&self, seller: SellerId, except: Option<SecretHash>) -> Result<(), StoreError> {
        let spared = except.as_ref().map_or(&[][..], |hash| hash.bytes().as_slice());
        let end = sql!(():
            "with raised as (update sellers set session_generation = session_generation + 1 where id = ", seller.uuid(),
            " returning id, session_generation) \
             update sessions e set generation = r.session_generation from raised r where e.seller_id = r.id and e.hash = ",
            spared, "");
        self.execute(end).await?;
        let links = sql!((): "with earlier as (delete from earlier_links where seller_id = ", seller.uuid(),
            ") delete from links where seller_id = ", seller.uuid(), "");
        self.execute(links).await.map(drop)
    }

    async fn has_session(&self, session: SecretHash) -> Result<bool, StoreError> {
        let has = sql!(bool: "select exists (select from sessions e join sellers s on s.id = e.seller_id \
            and s.session_generation = e.generation where e.hash = ", session.bytes().as_slice(), ")");
        Ok(self.row(has).await?.unwrap_or_default())
    }

    async fn password_hash(&self, seller: SellerId) -> Result<Option<PasswordHash>, StoreError> {
        let password =
            sql!(Option<String>: "select password_hash from sellers where id = ", seller.uuid(), "");
        Ok(self.row(password).await?.flatten().map(PasswordHash::new))
    }

    async fn set_password(&self, seller: SellerId, password: PasswordHash) -> Result<(), StoreError> {
        let set = sql!((): "update sellers set password_hash = ", password.as_str(), " where id = ", seller.uuid(), "");
        expect_rows("sellers", self.execute(set).await?, 1)
    }

    /// The previous link of the same kind and account moves to the earlier ones, unless it is for signing in.
    async fn add_link(&self, link: Link) -> Result<(), StoreError> {
        let add = sql!(():
            "with earlier as (insert into earlier_links (hash, seller_id, kind, expires_at) \
               select hash, seller_id, kind, expires_at from links where seller_id = ", link.seller.uuid(), " and kind = ",
            link.kind.as_str(), " and kind <> 'sign-in' and expires_at > (select api_now())) \
             insert into links (hash, seller_id, kind, expires_at) values (", link.hash.bytes().as_slice(), ", ",
            link.seller.uuid(), ", ", link.kind.as_str(), ", ", link.expires_at,
            ") on conflict (seller_id, kind) do update set hash = excluded.hash, expires_at = excluded.expires_at");
        expect_rows("links", self.execute(add).await?, 1)
    }

    async fn newest_link(
        &self,
        seller: SellerId,
        kind: LinkKind,
    ) -> Result<Option<DateTime<Utc>>, StoreError> {
        let newest = sql!(DateTime<Utc>: "select expires_at from links where seller_id = ", seller.uuid(), " and kind = ",
            kind.as_str(), "");
        self.row(newest).await
    }

    /// Locks the account first. Of two concurrent uses, only one finds the link.
    async fn use_link(&self, hash: SecretHash, kind: LinkKind) -> Result<Option<Seller>, StoreError> {
        let used = sql!(SellerRow:
            "with given as materialized (select ", hash.bytes().as_slice(), "::bytea as hash, ", kind.as_str(),
            concat!("::text as kind), \
             owner as materialized (select s.id, s.seller_no, s.name, s.email, s.created_at, s.closed_at \
               from given join ", all_links!(), " l on l.hash = given.hash and l.kind = given.kind and l.expires_at > (select api_now()) \
                 join sellers s on s.id = l.seller_id where s.closed_at is null for no key update of s), \
             newest as (delete from links l using given, owner where l.hash = given.hash and l.seller_id = owner.id returning l.hash), \
             earlier as (delete from earlier_links l using given, owner where l.hash = given.hash and l.seller_id = owner.id \
               returning l.hash) \
             select o.id, o.seller_no, o.name, o.email, o.created_at, o.closed_at from owner o \
               where exists (select from newest) or exists (select from earlier)"));
        self.row(used).await?.map(Seller::try_from).transpose()
    }

    async fn queue_account_mail(&self, mail: AccountMail) -> Result<(), StoreError> {
        self.write_later(account_mail(mail, &self.context().sealing)?);
        Ok(())
    }

    /// False if the form was sent before. A concurrent request with the same form waits for the first one's end.
    async fn store_flash(
        &self,
        session: SecretHash,
        form: Uuid,
        sealed: Option<Vec<u8>>,
    ) -> Result<bool, StoreError> {
        let insert = sql!(():
            "insert into flashes (session_hash, form, sealed) values (", session.bytes().as_slice(), ", ", form, ", ",
            sealed, ") on conflict (session_hash, form) do nothing");
        Ok(self.execute(insert).await? == 1)
    }

    /// The row stays, as a record that the form was sent.
    async fn take_flash(&self, session: SecretHash, form: Uuid) -> Result<Option<Vec<u8>>, StoreError> {
        self.row(sql!(Vec<u8>:
            "with flash as materialized (select session_hash, form, sealed from flashes where session_hash = ",
            session.bytes().as_slice(), " and form = ", form, " and sealed is not null for no key update) \
             update flashes f set sealed = null from flash k where f.session_hash = k.session_hash and f.form = k.form \
             returning k.sealed")).await
    }

    async fn count_action(&self, limiter: Limiter, subject: Subject) -> Result<Count, StoreError> {
        rate_limits::count_in(self, limiter, subject).await
    }

    async fn log_action(
        &self,
        actor: Actor,
        address: Option<IpAddr>,
        action: Action,
        subject: &str,
        changes: Option<Value>,
    ) -> Result<(), StoreError> {
        let os_user = self
            .context()
            .os_user
            .clone()
            .filter(|_| actor == Actor::CommandLine);
        self.write_later(audit::entry(actor, address, action, subject, changes, os_user));
        Ok(())
    }

    async fn add_personal_token(
        &self,
        seller: SellerId,
        family: FamilyId,
        name: &str,
    ) -> Result<(), StoreError> {
        let insert = sql!((): "insert into personal_tokens (seller_id, id, name) values (", seller.uuid(), ", ",
            family.uuid(), ", ", name, ")");
        expect_rows("personal_tokens", self.execute(insert).await?, 1)
    }

    async fn count_personal_tokens(&self, seller: SellerId, now: DateTime<Utc>) -> Result<usize, StoreError> {
        let count = self.row(sql!(i64: "select count(*) from personal_tokens p join families f on f.id = p.id \
            join access_tokens t on t.family_id = p.id join sellers s on s.id = f.seller_id and s.token_generation = f.seller_generation \
            join applications a on a.client_id = f.client_id and a.token_generation = f.application_generation where p.seller_id = ",
            seller.uuid(), " and f.revoked_at is null and t.revoked_at is null and (t.expires_at is null or t.expires_at > ", now, ")"));
        usize::try_from(count.await?.unwrap_or_default()).map_err(StoreError::unexpected)
    }

    async fn revoke_personal_token(&self, seller: SellerId, family: FamilyId) -> Result<bool, StoreError> {
        // The gate checks the family. Its row also shows that it belongs to this seller.
        let revoke = sql!((): "update families set revoked_at = api_now() where id = ", family.uuid(),
            " and seller_id = ", seller.uuid(), " and kind = ", FamilyKind::Personal.as_str(), " and revoked_at is null");
        Ok(self.execute(revoke).await? == 1)
    }

    async fn add_operator_token(
        &self,
        id: Uuid,
        hash: SecretHash,
        token: NewOperatorToken,
    ) -> Result<(), StoreError> {
        let insert = sql!((): "insert into operator_tokens (id, name, hash, expires_at, read_only) values (", id, ", ",
            token.name, ", ", hash.bytes().as_slice(), ", api_now() + ", token.lifetime.map(microseconds),
            " * interval '1 microsecond', ", token.read_only, ")");
        expect_rows("operator_tokens", self.execute(insert).await?, 1)
    }

    async fn revoke_operator_token(&self, id: Uuid) -> Result<bool, StoreError> {
        let revoke = sql!((): "update operator_tokens set revoked_at = api_now() where revoked_at is null and id = ", id, "");
        Ok(self.execute(revoke).await? == 1)
    }
}
