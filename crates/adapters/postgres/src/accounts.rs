//! Accounts and their data, within a transaction; sellers and operator tokens outside of one.

pub(crate) mod audit;
pub(crate) mod panel;
pub(crate) mod usage;

use std::net::IpAddr;

use accounts::{
    AccountMail, AccountStore, Action, Actor, Link, LinkKind, NewOperatorToken, NewPersonalToken, NewSeller,
    PasswordHash, Seller, Session,
};
use async_trait::async_trait;
use chrono::{DateTime, Utc};
use diesel::pg::Pg;
use diesel::prelude::*;
use diesel::query_dsl::methods;
use diesel::sql_types::{BigInt, Binary, Bool, Integer, Nullable, Text, Timestamptz, Uuid as SqlUuid};
use diesel::upsert::excluded;
use kernel::{SellerId, StoreError};
use oauth::{ClientId, Count, FamilyId, Limiter, SecretHash, Subject, TokenKey};
use serde_json::Value;
use uuid::Uuid;

use crate::mails::account_mail;
use crate::schema::{api_now, flashes, links, operator_tokens, sellers, sessions};
use crate::sql::{coalesce, microseconds};
use crate::statement::{Only, statements};
use crate::unit_of_work::{Tx, expect_rows};
use crate::{follow_ups, rate_limits};

statements! {
    "accounts.sql";
    ADD_OPERATOR_TOKEN: (SqlUuid, Text, Binary, Nullable<BigInt>, Bool);
    ISSUE_PERSONAL_TOKEN: (SqlUuid, Integer, SqlUuid, SqlUuid, Binary, Nullable<Timestamptz>, Text);
    REVOKE_PERSONAL_TOKEN: (SqlUuid, SqlUuid);
    OPEN_SESSION: (Binary, SqlUuid, Timestamptz, Timestamptz);
    END_SESSIONS: (SqlUuid, Nullable<Binary>);
    END_LINKS: (SqlUuid);
    ADD_LINK: (SqlUuid, Text, Binary, Timestamptz);
    USE_LINK: (Binary, Text) -> SellerRow;
    TAKE_FLASH: (Binary, SqlUuid) -> Only<Binary, Vec<u8>>;
}

#[derive(Queryable, Selectable, QueryableByName)]
#[diesel(table_name = sellers, check_for_backend(Pg))]
struct SellerRow {
    id: Uuid,
    seller_no: i32,
    name: String,
    email: String,
    created_at: DateTime<Utc>,
    closed_at: Option<DateTime<Utc>>,
}

impl From<SellerRow> for Seller {
    fn from(row: SellerRow) -> Self {
        Self {
            id: row.id.into(),
            seller_no: row.seller_no,
            name: row.name,
            email: row.email,
            created_at: row.created_at,
            closed_at: row.closed_at,
        }
    }
}

#[derive(Queryable, Selectable, QueryableByName)]
#[diesel(table_name = sellers, check_for_backend(Pg))]
struct PasswordRow {
    password_hash: Option<String>,
}

impl PasswordRow {
    fn password(self) -> Option<PasswordHash> {
        self.password_hash.map(PasswordHash::new)
    }
}

#[derive(Queryable, Selectable, QueryableByName)]
#[diesel(table_name = links, check_for_backend(Pg))]
struct LinkRow {
    kind: String,
    expires_at: DateTime<Utc>,
}

#[async_trait]
impl AccountStore for Tx {
    async fn add_seller(&self, seller: NewSeller) -> Result<Seller, StoreError> {
        let password = seller.password.as_ref().map(PasswordHash::as_str);
        let insert = diesel::insert_into(sellers::table)
            .values((
                sellers::id.eq(seller.id.uuid()),
                sellers::name.eq(seller.name.as_str()),
                sellers::email.eq(seller.email.as_str()),
                sellers::password_hash.eq(password),
                sellers::created_at.eq(seller.created_at),
            ))
            .returning(SellerRow::as_returning());
        let row = self.row(insert).await?;
        row.map(Seller::from)
            .ok_or_else(|| StoreError::unexpected("a seller was not stored"))
    }

    async fn lock_seller(&self, id: SellerId) -> Result<Option<Seller>, StoreError> {
        let lock = sellers::table
            .find(id.uuid())
            .select(SellerRow::as_select())
            .for_no_key_update();
        Ok(self.row(lock).await?.map(Seller::from))
    }

    async fn close_seller(&self, id: SellerId, at: DateTime<Utc>) -> Result<bool, StoreError> {
        let closed_at = sellers::closed_at;
        let close =
            diesel::update(sellers::table.find(id.uuid())).set(closed_at.eq(coalesce(closed_at, Some(at))));
        let closed = self.execute(close).await? == 1;
        if closed {
            follow_ups::queue(self, Some(id), None);
        }
        Ok(closed)
    }

    async fn open_session(&self, session: Session) -> Result<(), StoreError> {
        let (id, created_at, seen_at) = (session.seller.uuid(), session.created_at, session.seen_at);
        let open = OPEN_SESSION.bind((session.hash.bytes(), id, created_at, seen_at));
        expect_rows("sessions", self.execute(open).await?, 1)
    }

    async fn end_session(&self, session: SecretHash) -> Result<(), StoreError> {
        let end = diesel::delete(sessions::table.find(session.bytes()));
        self.execute(end).await.map(drop)
    }

    async fn end_sessions(&self, seller: SellerId, except: Option<SecretHash>) -> Result<(), StoreError> {
        let spared = except.as_ref().map(SecretHash::bytes);
        self.execute(END_SESSIONS.bind((seller.uuid(), spared))).await?;
        self.execute(END_LINKS.bind((seller.uuid(),))).await.map(drop)
    }

    async fn has_session(&self, session: SecretHash) -> Result<bool, StoreError> {
        let is_open = sellers::session_generation.eq(sessions::generation);
        let open = sessions::table
            .inner_join(sellers::table.on(sellers::id.eq(sessions::seller_id).and(is_open)))
            .filter(sessions::hash.eq(session.bytes()))
            .select(sessions::hash);
        Ok(self.execute(open).await? == 1)
    }

    async fn password_hash(&self, seller: SellerId) -> Result<Option<PasswordHash>, StoreError> {
        let password = sellers::table
            .find(seller.uuid())
            .select(PasswordRow::as_select());
        Ok(self.row(password).await?.and_then(PasswordRow::password))
    }

    async fn set_password(&self, seller: SellerId, password: PasswordHash) -> Result<(), StoreError> {
        let set = diesel::update(sellers::table.find(seller.uuid()))
            .set(sellers::password_hash.eq(password.as_str()));
        expect_rows("sellers", self.execute(set).await?, 1)
    }

    /// The previous link of the same kind and account moves to the earlier ones, unless it is for signing in.
    async fn add_link(&self, link: Link) -> Result<(), StoreError> {
        let (seller, kind) = (link.seller.uuid(), link.kind.as_str());
        let add = ADD_LINK.bind((seller, kind, link.hash.bytes(), link.expires_at));
        expect_rows("links", self.execute(add).await?, 1)
    }

    async fn newest_link_expiry(
        &self,
        seller: SellerId,
        kind: LinkKind,
    ) -> Result<Option<DateTime<Utc>>, StoreError> {
        let newest = links::table
            .filter(links::seller_id.eq(seller.uuid()))
            .filter(links::kind.eq(kind.as_str()))
            .select(LinkRow::as_select());
        Ok(self.row(newest).await?.map(|link| link.expires_at))
    }

    async fn use_link(&self, hash: SecretHash, kind: LinkKind) -> Result<Option<Seller>, StoreError> {
        let use_it = || self.row(USE_LINK.bind((hash.bytes(), kind.as_str())));
        let mut used = use_it().await?;
        if used.is_none() {
            // A newer link may have moved it among the earlier ones while the statement waited for the account.
            used = use_it().await?;
        }
        Ok(used.map(Seller::from))
    }

    async fn queue_account_mail(&self, mail: AccountMail) -> Result<(), StoreError> {
        self.write_later(account_mail(mail, &self.units.sealing)?);
        Ok(())
    }

    /// False if the form was sent before. A concurrent request with the same form waits for the first one's
    /// end.
    async fn store_flash(
        &self,
        session: SecretHash,
        form: Uuid,
        sealed: Option<Vec<u8>>,
    ) -> Result<bool, StoreError> {
        let insert = diesel::insert_into(flashes::table)
            .values((
                flashes::session_hash.eq(session.bytes()),
                flashes::form.eq(form),
                flashes::sealed.eq(sealed),
            ))
            .on_conflict((flashes::session_hash, flashes::form))
            .do_update()
            .set(flashes::sealed.eq(excluded(flashes::sealed)));
        let is_first = flashes::sealed
            .is_null()
            .and(excluded(flashes::sealed).is_not_null());
        Ok(self.execute(methods::FilterDsl::filter(insert, is_first)).await? == 1)
    }

    async fn take_flash(&self, session: SecretHash, form: Uuid) -> Result<Option<Vec<u8>>, StoreError> {
        let taken = self.row(TAKE_FLASH.bind((session.bytes(), form))).await?;
        Ok(taken.map(|sealed| sealed.0))
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
        let os_user = self.units.os_user.clone();
        let os_user = os_user.filter(|_| actor == Actor::CommandLine);
        self.write_later(audit::entry(actor, address, action, subject, changes, os_user));
        Ok(())
    }

    async fn add_personal_token(
        &self,
        seller: SellerId,
        client_id: ClientId,
        key: TokenKey,
        token: NewPersonalToken,
    ) -> Result<(), StoreError> {
        let issue = ISSUE_PERSONAL_TOKEN.bind((
            key.family.uuid(),
            token.scopes.bits(),
            seller.uuid(),
            client_id.uuid(),
            key.hash.bytes(),
            token.expires_at,
            token.name,
        ));
        expect_rows("access_tokens", self.execute(issue).await?, 1)
    }

    async fn count_personal_tokens(&self, seller: SellerId, now: DateTime<Utc>) -> Result<usize, StoreError> {
        let live = panel::PERSONAL_TOKENS.bind((seller.uuid(), Some(now)));
        self.execute(live).await
    }

    async fn revoke_personal_token(&self, seller: SellerId, family: FamilyId) -> Result<bool, StoreError> {
        let revoke = REVOKE_PERSONAL_TOKEN.bind((seller.uuid(), family.uuid()));
        Ok(self.execute(revoke).await? == 1)
    }

    async fn add_operator_token(
        &self,
        id: Uuid,
        hash: SecretHash,
        token: NewOperatorToken,
    ) -> Result<(), StoreError> {
        let lifetime = token.lifetime.map(microseconds);
        let add = ADD_OPERATOR_TOKEN.bind((id, token.name, hash.bytes(), lifetime, token.read_only));
        expect_rows("operator_tokens", self.execute(add).await?, 1)
    }

    async fn operator_token(&self, hash: SecretHash) -> Result<Option<Uuid>, StoreError> {
        let known = operator_tokens::table
            .filter(operator_tokens::hash.eq(hash.bytes().as_slice()))
            .select(panel::OperatorRow::as_select());
        Ok(self.row(known).await?.map(|token| token.id))
    }

    async fn revoke_operator_token(&self, id: Uuid) -> Result<bool, StoreError> {
        let live = operator_tokens::table
            .find(id)
            .filter(operator_tokens::revoked_at.is_null());
        let revoke = diesel::update(live).set(operator_tokens::revoked_at.eq(api_now().nullable()));
        Ok(self.execute(revoke).await? == 1)
    }
}
