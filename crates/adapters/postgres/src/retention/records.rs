//! Clearing what orders and changes leave behind.

use diesel::sql_types::BigInt;
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use kernel::StoreError;

use super::BATCH;
use crate::{statement::statement, transaction::Tx};

/// What one batch has cleared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ClearedRecords {
    /// Claims on idempotency keys that were made over 25 hours ago and ended over an hour ago.
    pub claims: usize,
    /// Items of the change feed older than 30 days.
    pub changes: usize,
    /// Mails that were sent, or given up, over 30 days ago.
    pub mails: usize,
    /// Deliveries that are done, older than 30 days and not among the last 100 of their subscription, and those whose
    /// subscription has been removed.
    pub deliveries: usize,
    /// True when more is left than one batch holds.
    pub more: bool,
}

/// The end of a claim moves, so they are found by their beginning. A completed one ends 24 hours after its completion, and
/// the hour is for clocks and requests that are late.
struct Claims {
    batch: i64,
}

statement!(Claims => ():
    "delete from idempotency where (seller_id, key) in (select seller_id, key from idempotency \
       where created_at < (select api_now()) - interval '25 hours' and expires_at < (select api_now()) - interval '1 hour' \
       order by created_at limit ", batch: BigInt, " for update skip locked)");

/// The feed's order is, but for transactions that were long under way, the order of time: the first rows are looked at, and
/// no index by time is needed.
struct Changes {
    batch: i64,
}

statement!(Changes => ():
    "delete from changes where (seller_id, id) in (select seller_id, id from \
       (select seller_id, id, at from changes order by xid, id limit ", batch: BigInt,
    ") oldest where at < (select api_now()) - interval '30 days')");

struct Mails {
    batch: i64,
}

statement!(Mails => ():
    "delete from mails where id in (select id from mails where due_at is null \
       and coalesce(sent_at, dead_at) < (select api_now()) - interval '30 days' order by coalesce(sent_at, dead_at) limit ",
    batch: BigInt, " for update skip locked)");

/// Clears one batch of each kind in a transaction of the caller's.
pub(crate) async fn clear_records(tx: &Tx) -> Result<ClearedRecords, StoreError> {
    let mut connection: &AsyncPgConnection = tx.connection();
    let batch = BATCH;
    let claims = tx.run(Claims { batch }.execute(&mut connection)).await?;
    let changes = tx.run(Changes { batch }.execute(&mut connection)).await?;
    let mails = tx.run(Mails { batch }.execute(&mut connection)).await?;
    let (deliveries, more_deliveries) = super::deliveries::clear(tx).await?;
    let full = usize::try_from(batch).map_err(StoreError::unexpected)?;
    Ok(ClearedRecords {
        claims,
        changes,
        mails,
        deliveries,
        more: more_deliveries || [claims, changes, mails].iter().any(|rows| *rows >= full),
    })
}
