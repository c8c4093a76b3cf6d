//! Counts of API calls by application.

use accounts::{HourlyUsage, UsageCount, UsageLog};
use async_trait::async_trait;
use chrono::{DateTime, Utc};
use kernel::StoreError;
use oauth::{ClientId, Limiter, Subject};

use crate::connection::pool::Autocommit;
use crate::sql::{column, row, sql};

/// Stores the counts of a process. Each call is one autocommitted statement.
#[async_trait]
impl UsageLog for Autocommit {
    /// Counts by application, and records the last use by seller, to the minute. Each row is written once and in order, so that
    /// concurrent processes cannot deadlock. The commit is asynchronous.
    async fn add_usage(&self, counts: Vec<UsageCount>) -> Result<(), StoreError> {
        if counts.is_empty() {
            return Ok(());
        }
        let statuses = counts.iter().map(|count| i16::try_from(count.key.status));
        let statuses = statuses
            .collect::<Result<Vec<_>, _>>()
            .map_err(StoreError::unexpected)?;
        let sellers = column(&counts, |count| count.key.seller.uuid());
        let clients = column(&counts, |count| count.key.client_id.uuid());
        let calls = column(&counts, |count| i64::from(count.calls));
        self.execute(sql!(():
            "with clock as materialized (select at, date_trunc('hour', at, 'UTC') as hour, mode \
               from (select api_now() as at, set_config('synchronous_commit', 'off', true) as mode) present), \
             counted as materialized (select * from unnest(", sellers, ", ", clients, ", ", statuses, ", ", calls,
            ") as k (seller, client, status, calls) where k.calls > 0), \
             used as (insert into last_uses as l (seller_id, client_id, used_at) \
               select distinct k.seller, k.client, clock.at from clock cross join counted k \
               where not exists (select from last_uses l where l.seller_id = k.seller and l.client_id = k.client \
                 and l.used_at > clock.at - interval '1 minute') order by k.seller, k.client \
               on conflict (seller_id, client_id) do update set used_at = greatest(l.used_at, excluded.used_at)) \
             insert into application_usage as u (client_id, hour, calls, status) \
             select k.client, clock.hour, sum(k.calls)::bigint, k.status from clock cross join counted k \
             group by k.client, clock.hour, k.status order by k.client, k.status \
             on conflict (client_id, hour, status) do update set calls = u.calls + excluded.calls")).await.map(drop)
    }
}

row! {
    struct UsageRow {
        hour: Option<DateTime<Utc>>,
        status: Option<i16>,
        calls: i64,
    }
}

/// An application's hours, in order, and the count of the current minute.
pub(super) async fn read(
    statements: &Autocommit,
    client_id: ClientId,
    since: DateTime<Utc>,
) -> Result<(Vec<HourlyUsage>, u64), StoreError> {
    let of = sql!(UsageRow:
        "(select hour, status, calls from application_usage where client_id = ", client_id.uuid(),
        " and hour > ", since, " - interval '1 hour' order by hour, status) \
         union all select null, null, used from rate_windows where window_start = date_trunc('minute', (select api_now()), 'UTC') \
           and kind = ", Limiter::Api.code(), " and subject = ", Subject::client(client_id).uuid(), "");
    let (mut hours, mut used) = (Vec::new(), 0);
    for row in statements.rows(of).await? {
        let impossible = |reason: String| StoreError::corrupt("application_usage", client_id, reason);
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
