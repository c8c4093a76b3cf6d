//! The audit log: written within a transaction, read outside.

use std::net::IpAddr;

use accounts::{Action, Actor, AuditEntry, AuditFilter, AuditReader};
use async_trait::async_trait;
use chrono::{DateTime, Utc};
use kernel::StoreError;
use serde_json::Value;
use uuid::Uuid;

use crate::connection::pool::Autocommit;
use crate::sql::{row, sql};
use crate::unit_of_work::{Write, changing};

/// The write of an entry. Its id is a UUIDv7 (RFC 9562 §5.7) with the fraction of the millisecond in the twelve bits after the version
/// (§6.2, method 3), so that the entries of one transaction keep the order in which they were written.
pub(crate) fn entry(
    actor: Actor,
    address: Option<IpAddr>,
    action: Action,
    subject: &str,
    changes: Option<Value>,
    os_user: Option<String>,
) -> Box<dyn Write> {
    let insert = sql!(():
        "insert into audit_log (id, at, actor, actor_id, address, action, subject, changes, os_user) \
         select encode(overlay(overlay(uuid_send(gen_random_uuid()) placing substring(int8send(t.us / 1000) from 3) from 1 for 6) \
           placing int2send((28672 + t.us % 1000 * 4096 / 1000)::int2) from 7 for 2), 'hex')::uuid, t.at, ",
        actor.kind(), ", ", actor.id(), ", ", address.map(|address| address.to_string()), ", ", action.as_str(),
        ", ", subject.to_owned(), ", ", changes.map(|changes| changes.to_string()), "::json, ", os_user,
        " from (select at, (extract(epoch from at) * 1000000)::bigint as us from (select api_now() as at) clock) t");
    changing("audit_log", 1, insert)
}

/// The lowest id of an entry from this instant on; of none, `otherwise`.
fn first_id(instant: Option<DateTime<Utc>>, otherwise: Uuid) -> Uuid {
    let Some(instant) = instant else { return otherwise };
    let us = u128::try_from(instant.timestamp_micros()).unwrap_or_default();
    Uuid::from_u128((us / 1000) << 80 | (28_672 + us % 1000 * 4096 / 1000) << 64)
}

row! {
    struct EntryRow {
        id: Uuid,
        at: DateTime<Utc>,
        actor: String,
        actor_id: Option<Uuid>,
        address: Option<String>,
        action: String,
        subject: String,
        changes: Option<String>,
        os_user: Option<String>,
    }
}

impl TryFrom<EntryRow> for AuditEntry {
    type Error = StoreError;

    fn try_from(row: EntryRow) -> Result<Self, StoreError> {
        let corrupt = |reason: String| StoreError::corrupt("audit_log", row.id, reason);
        let address = row.address.as_deref().map(str::parse::<IpAddr>).transpose();
        let changes = row.changes.as_deref().map(serde_json::from_str).transpose();
        Ok(Self {
            id: row.id,
            at: row.at,
            actor: Actor::read(&row.actor, row.actor_id)
                .ok_or_else(|| corrupt(format!("actor {:?}", row.actor)))?,
            address: address.map_err(|_| corrupt(format!("address {:?}", row.address)))?,
            action: Action::parse(&row.action).ok_or_else(|| corrupt(format!("action {:?}", row.action)))?,
            subject: row.subject,
            changes: changes.map_err(|_| corrupt("changes".to_owned()))?,
            os_user: row.os_user,
        })
    }
}

#[async_trait]
impl AuditReader for Autocommit {
    async fn entries(&self, filter: AuditFilter, limit: u16) -> Result<Vec<AuditEntry>, StoreError> {
        let from = first_id(filter.since, Uuid::nil());
        let before = first_id(filter.until, Uuid::max()).min(filter.before.unwrap_or(Uuid::max()));
        let limit = i64::from(limit);
        let rows = match filter.about {
            None => {
                self
                    .rows(sql!(EntryRow:
                        "select id, at, actor, actor_id, address, action, subject, changes::text, os_user from audit_log where id >= ",
                        from, " and id < ", before, " order by id desc limit ", limit, ""))
                    .await?
            }
            // Each half is a range of its own index.
            Some(subject) => {
                let actor = subject.parse::<Uuid>().ok();
                self
                    .rows(sql!(EntryRow:
                        "(select id, at, actor, actor_id, address, action, subject, changes::text, os_user from audit_log where subject = ",
                        subject, " and id >= ", from, " and id < ", before, " order by id desc limit ", limit,
                        ") union (select id, at, actor, actor_id, address, action, subject, changes::text, os_user from audit_log \
                           where actor_id = ",
                        actor, " and id >= ", from, " and id < ", before, " order by id desc limit ", limit, ") order by id desc limit ",
                        limit, ""))
                    .await?
            }
        };
        rows.into_iter().map(AuditEntry::try_from).collect()
    }
}
