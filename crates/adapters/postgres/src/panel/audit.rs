//! The audit log: written within a transaction, read outside.

use std::net::IpAddr;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use diesel::{
    Queryable,
    sql_types::{BigInt, Nullable, Text, Timestamptz, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use kernel::StoreError;
use oauth::{Action, Actor, AuditEntry, AuditReader};
use uuid::Uuid;

use crate::{
    error::store_error,
    pending::{Write, expect_rows},
    reads::Reads,
    statement::statement,
};

/// Writes an entry. Its id is a UUIDv7 (RFC 9562 §5.7) with the fraction of the millisecond in the twelve bits after the
/// version (§6.2, method 3), so that the entries of one transaction have the order in which they were written.
struct Insert<'a> {
    actor: &'static str,
    actor_id: Option<Uuid>,
    address: Option<String>,
    action: &'static str,
    subject: &'a str,
}

statement!(Insert<'_> => ():
    "insert into audit_log (id, at, actor, actor_id, address, action, subject) \
     select encode(overlay(overlay(uuid_send(gen_random_uuid()) placing substring(int8send(t.us / 1000) from 3) from 1 for 6) \
       placing int2send((28672 + t.us % 1000 * 4096 / 1000)::int2) from 7 for 2), 'hex')::uuid, t.at, ", actor: Text,
    ", ", actor_id: Nullable<SqlUuid>,
    ", ", address: Nullable<Text>,
    ", ", action: Text,
    ", ", subject: Text,
    " from (select at, (extract(epoch from at) * 1000000)::bigint as us from (select api_now() as at) clock) t");

/// What was done, on its way into the log.
pub(super) struct Note {
    pub(super) actor: Actor,
    pub(super) address: Option<IpAddr>,
    pub(super) action: Action,
    pub(super) subject: String,
}

#[async_trait]
impl Write for Note {
    async fn send(&self, mut connection: &AsyncPgConnection) -> Result<(), StoreError> {
        let insert = Insert {
            actor: self.actor.kind(),
            actor_id: self.actor.id(),
            address: self.address.map(|address| address.to_string()),
            action: self.action.as_str(),
            subject: &self.subject,
        };
        let written = insert.execute(&mut connection).await.map_err(store_error)?;
        expect_rows("audit_log", written, 1)
    }
}

type Columns = (
    SqlUuid,
    Timestamptz,
    Text,
    Nullable<SqlUuid>,
    Nullable<Text>,
    Text,
    Text,
);

struct Newest {
    before: Uuid,
    limit: i64,
}

statement!(Newest => Columns:
    "select id, at, actor, actor_id, address, action, subject from audit_log where id < ", before: SqlUuid,
    " order by id desc limit ", limit: BigInt, "");

/// Each half is a range of its own index.
struct About {
    subject: String,
    actor: Option<Uuid>,
    before: Uuid,
    limit: i64,
}

statement!(About => Columns:
    "(select id, at, actor, actor_id, address, action, subject from audit_log where subject = ", subject: Text,
    " and id < ", before: SqlUuid,
    " order by id desc limit ", limit: BigInt,
    ") union (select id, at, actor, actor_id, address, action, subject from audit_log where actor_id = ",
    actor: Nullable<SqlUuid>,
    " and id < ", before: SqlUuid,
    " order by id desc limit ", limit: BigInt,
    ") order by id desc limit ", limit: BigInt, "");

#[derive(Queryable)]
struct EntryRow {
    id: Uuid,
    at: DateTime<Utc>,
    actor: String,
    actor_id: Option<Uuid>,
    address: Option<String>,
    action: String,
    subject: String,
}

impl TryFrom<EntryRow> for AuditEntry {
    type Error = StoreError;

    fn try_from(row: EntryRow) -> Result<Self, StoreError> {
        let corrupt = |reason: String| StoreError::corrupt("audit_log", row.id, reason);
        let address = row.address.as_deref().map(str::parse::<IpAddr>).transpose();
        Ok(Self {
            id: row.id,
            at: row.at,
            actor: Actor::read(&row.actor, row.actor_id)
                .ok_or_else(|| corrupt(format!("actor {:?}", row.actor)))?,
            address: address.map_err(|_| corrupt(format!("address {:?}", row.address)))?,
            action: Action::parse(&row.action).ok_or_else(|| corrupt(format!("action {:?}", row.action)))?,
            subject: row.subject,
        })
    }
}

/// Reads the audit log.
pub(crate) struct Audit(pub(crate) Reads);

#[async_trait]
impl AuditReader for Audit {
    async fn entries(
        &self,
        about: Option<String>,
        before: Option<Uuid>,
        limit: u16,
    ) -> Result<Vec<AuditEntry>, StoreError> {
        let (before, limit) = (before.unwrap_or(Uuid::max()), i64::from(limit));
        let rows = if let Some(subject) = about {
            let about = About {
                actor: subject.parse().ok(),
                subject,
                before,
                limit,
            };
            let ask = |lent: std::sync::Arc<crate::transaction::Leased>| async move {
                about.get_results::<EntryRow>(&mut lent.connection()).await
            };
            self.0.ask(ask).await?
        } else {
            let newest = Newest { before, limit };
            self.0
                .ask(|lent| async move { newest.get_results::<EntryRow>(&mut lent.connection()).await })
                .await?
        };
        rows.into_iter().map(AuditEntry::try_from).collect()
    }
}
