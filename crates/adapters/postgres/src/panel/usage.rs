//! How often applications have called the API.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use diesel::{
    Queryable,
    sql_types::{Array, BigInt, Nullable, SmallInt, Timestamptz, Uuid as SqlUuid},
};
use diesel_async::RunQueryDsl;
use kernel::StoreError;
use oauth::{ClientId, HourlyUsage, UsageCount, UsageLog};
use uuid::Uuid;

use crate::{reads::Reads, statement::statement};

/// Adds to the counters of the present hour, each row once and in order, so that processes that add at the same moment do not
/// wait in a circle. The commit does not wait for the disk.
struct Add {
    sellers: Vec<Uuid>,
    clients: Vec<Uuid>,
    statuses: Vec<i16>,
    calls: Vec<i64>,
}

statement!(Add => ():
    "with clock as materialized (select at, date_trunc('hour', at, 'UTC') as hour, mode \
       from (select api_now() as at, set_config('synchronous_commit', 'off', true) as mode) present) \
     insert into api_usage as u (seller_id, client_id, hour, status, calls, last_at) \
     select k.seller, k.client, clock.hour, k.status, sum(k.calls)::bigint, clock.at from clock cross join unnest(",
    sellers: Array<SqlUuid>,
    ", ", clients: Array<SqlUuid>,
    ", ", statuses: Array<SmallInt>,
    ", ", calls: Array<BigInt>,
    ") as k (seller, client, status, calls) where k.calls > 0 group by k.seller, k.client, clock.hour, k.status, clock.at \
     order by k.seller, k.client, k.status \
     on conflict (seller_id, client_id, hour, status) do update set calls = u.calls + excluded.calls, \
       last_at = greatest(u.last_at, excluded.last_at)");

/// Takes the counts of a process. Each call is one statement with its own transaction.
pub(crate) struct Usage(pub(crate) Reads);

#[async_trait]
impl UsageLog for Usage {
    async fn add_usage(&self, counts: Vec<UsageCount>) -> Result<(), StoreError> {
        if counts.is_empty() {
            return Ok(());
        }
        let statuses = counts.iter().map(|count| i16::try_from(count.key.status));
        let add = Add {
            sellers: counts.iter().map(|count| count.key.seller.uuid()).collect(),
            clients: counts.iter().map(|count| count.key.client_id.uuid()).collect(),
            statuses: statuses
                .collect::<Result<_, _>>()
                .map_err(StoreError::unexpected)?,
            calls: counts.iter().map(|count| i64::from(count.calls)).collect(),
        };
        self.0
            .ask(|lent| async move { add.execute(&mut lent.connection()).await })
            .await?;
        Ok(())
    }
}

/// An application's hours over all sellers, and how far it is in the present minute.
pub(super) struct Of {
    pub(super) client: Uuid,
    pub(super) since: DateTime<Utc>,
    pub(super) kind: i16,
    pub(super) subject: Uuid,
}

statement!(Of => (Nullable<Timestamptz>, Nullable<SmallInt>, BigInt):
    "(select hour, status, sum(calls)::bigint from api_usage where client_id = ", client: SqlUuid,
    " and hour > ", since: Timestamptz,
    " - interval '1 hour' group by hour, status order by hour, status) \
     union all select null, null, used from rate_windows where window_start = date_trunc('minute', (select api_now()), 'UTC') \
       and kind = ", kind: SmallInt,
    " and subject = ", subject: SqlUuid, "");

#[derive(Queryable)]
pub(super) struct UsageRow {
    hour: Option<DateTime<Utc>>,
    status: Option<i16>,
    calls: i64,
}

/// The hours in order, and what the present minute has counted.
pub(super) fn usage(client_id: ClientId, rows: Vec<UsageRow>) -> Result<(Vec<HourlyUsage>, u64), StoreError> {
    let (mut hours, mut used) = (Vec::with_capacity(rows.len()), 0);
    for row in rows {
        let impossible = |reason: String| StoreError::corrupt("api_usage", client_id, reason);
        let calls = u64::try_from(row.calls).map_err(|_| impossible(format!("calls {}", row.calls)))?;
        match (row.hour, row.status) {
            (Some(hour), Some(status)) => hours.push(HourlyUsage {
                hour,
                status: u16::try_from(status).map_err(|_| impossible(format!("status {status}")))?,
                calls,
            }),
            _ => used = calls,
        }
    }
    Ok((hours, used))
}
