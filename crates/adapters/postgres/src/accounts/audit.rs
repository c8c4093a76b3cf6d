//! The audit log: written within a transaction, read outside.

use std::{cmp::Reverse, net::IpAddr};

use accounts::{Action, Actor, AuditEntry, AuditFilter};
use chrono::{DateTime, Utc};
use diesel::pg::Pg;
use diesel::prelude::*;
use diesel::sql_types::{Json, Nullable, Text, Uuid as SqlUuid};
use kernel::StoreError;
use serde_json::Value;
use uuid::Uuid;

use crate::database::Database;
use crate::schema::audit_log;
use crate::statement::statements;
use crate::unit_of_work::{Write, changing};

statements! {
    "../accounts.sql";
    ADD_AUDIT_ENTRY: (Text, Nullable<SqlUuid>, Nullable<Text>, Text, Text, Nullable<Json>, Nullable<Text>);
}

/// The write of an entry.
pub(crate) fn entry(
    actor: Actor,
    address: Option<IpAddr>,
    action: Action,
    subject: &str,
    changes: Option<Value>,
    os_user: Option<String>,
) -> Write {
    let address = address.map(|address| address.to_string());
    let (kind, id, action, subject) = (actor.kind(), actor.id(), action.as_str(), subject.to_owned());
    let add = ADD_AUDIT_ENTRY.bind((kind, id, address, action, subject, changes, os_user));
    changing("audit_log", 1, add)
}

/// The lowest id of an entry from this instant on; of none, `otherwise`.
fn first_id(instant: Option<DateTime<Utc>>, otherwise: Uuid) -> Uuid {
    let Some(instant) = instant else { return otherwise };
    let us = u128::try_from(instant.timestamp_micros()).unwrap_or_default();
    Uuid::from_u128((us / 1000) << 80 | (28_672 + us % 1000 * 4096 / 1000) << 64)
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = audit_log, check_for_backend(Pg))]
struct EntryRow {
    id: Uuid,
    at: DateTime<Utc>,
    actor: String,
    actor_id: Option<Uuid>,
    address: Option<String>,
    action: String,
    subject: String,
    changes: Option<Value>,
    os_user: Option<String>,
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
            changes: row.changes,
            os_user: row.os_user,
        })
    }
}

impl Database {
    /// Up to `limit` of these entries of the audit log, newest first.
    pub async fn audit_entries(
        &self,
        filter: AuditFilter,
        limit: u16,
    ) -> Result<Vec<AuditEntry>, StoreError> {
        let AuditFilter {
            about,
            since,
            until,
            before,
        } = filter;
        let from = first_id(since, Uuid::nil());
        let before = first_id(until, Uuid::max()).min(before.unwrap_or(Uuid::max()));
        let statements = self.autocommit("audit");
        let all = || {
            audit_log::table
                .filter(audit_log::id.ge(from))
                .filter(audit_log::id.lt(before))
                .order(audit_log::id.desc())
                .limit(i64::from(limit))
                .select(EntryRow::as_select())
                .into_boxed::<Pg>()
        };
        let Some(subject) = about else {
            let rows = statements.rows(all()).await?;
            return rows.into_iter().map(AuditEntry::try_from).collect();
        };
        let actor = subject.parse::<Uuid>();
        // Each is a range of its own index.
        let about = all().filter(audit_log::subject.eq(subject));
        let mut rows = statements.rows(about).await?;
        if let Ok(actor) = actor {
            let by = all().filter(audit_log::actor_id.eq(actor));
            rows.extend(statements.rows(by).await?);
            rows.sort_unstable_by_key(|row| Reverse(row.id));
            rows.dedup_by_key(|row| row.id);
            rows.truncate(limit.into());
        }
        rows.into_iter().map(AuditEntry::try_from).collect()
    }
}
