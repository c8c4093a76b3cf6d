//! How much waits to be done beside requests, and for how long the oldest of it has been due.
//!
//! One statement reads everything, by index entries alone and never more of them than [`QUEUE_LIMIT`] for each queue. The
//! sorts that it asks for are those of the indexes: they keep the planner from scanning a table where it expects to find
//! enough rows soon.

use std::time::Duration;

use kernel::StoreError;
use orders::Carrier;

use crate::{
    connection::pool::Autocommit,
    sql::{column, row, sql},
};

/// The most that is counted of one queue.
pub const QUEUE_LIMIT: i64 = 10_000;
/// Delivery queues among which the oldest delivery is looked for: those that have been due the longest.
const LANES: i64 = 200;

/// How much waits, by queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Queues {
    /// Deliveries of webhooks that nobody has attempted yet.
    pub first_deliveries: Backlog,
    /// Deliveries of webhooks that failed and are to be attempted again.
    pub repeated_deliveries: Backlog,
    /// Mails about shipments.
    pub shipment_mails: Backlog,
    /// Mails about accounts.
    pub account_mails: Backlog,
    /// Parcels that are due to be asked about, by carrier.
    pub parcels: Vec<(Carrier, Backlog)>,
}

/// What waits in one queue.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Backlog {
    /// How much, at most [`QUEUE_LIMIT`].
    pub waiting: u32,
    /// For how long the oldest that is due has been; nothing where nothing is due.
    pub overdue: Duration,
}

row! {
    struct Found {
        queue: String,
        waiting: i64,
        overdue: Option<f64>,
    }
}

impl Found {
    fn backlog(&self) -> Backlog {
        let overdue = self.overdue.unwrap_or_default();
        Backlog {
            waiting: u32::try_from(self.waiting).unwrap_or(u32::MAX),
            // What is due later has been due for no time.
            overdue: Duration::try_from_secs_f64(overdue.max(0.0)).unwrap_or(Duration::MAX),
        }
    }
}

/// Looks at all of them.
pub(crate) async fn read(statements: &Autocommit) -> Result<Queues, StoreError> {
    let asked = Carrier::ALL
        .into_iter()
        .filter(|carrier| *carrier != Carrier::Other);
    let asked = asked.collect::<Vec<_>>();
    let look = sql!(Found:
        "with clock as materialized (select api_now() as at), \
         bounds as materialized (select ", QUEUE_LIMIT, " as most, ", LANES, " as queues), \
         queues as materialized ( \
           (select seller_id, id from subscriptions where wake_at is not null and not failing \
             order by wake_at limit (select queues from bounds)) \
           union all \
           (select seller_id, id from subscriptions where wake_at is not null and failing \
             order by wake_at limit (select queues from bounds))), \
         found (queue, waiting, oldest) as ( \
           select 'first', \
             (select count(*) from (select from deliveries where due_at is not null and attempt = 0 \
               order by seller_id, subscription_id, due_at limit (select most from bounds)) d), \
             (select min(d.due_at) from queues l cross join lateral (select due_at from deliveries \
               where seller_id = l.seller_id and subscription_id = l.id and due_at is not null and attempt = 0 \
               order by due_at limit 1) d) \
           union all select 'repeated', \
             (select count(*) from (select from deliveries where due_at is not null and attempt > 0 \
               order by seller_id, subscription_id, due_at limit (select most from bounds)) d), \
             (select min(d.due_at) from queues l cross join lateral (select due_at from deliveries \
               where seller_id = l.seller_id and subscription_id = l.id and due_at is not null and attempt > 0 \
               order by due_at limit 1) d) \
           union all select 'shipment_mails', count(*), min(due_at) from (select due_at from mails \
             where due_at is not null order by due_at limit (select most from bounds)) m \
           union all select 'account_mails', count(*), min(due_at) from (select due_at from account_mails \
             where due_at is not null order by due_at limit (select most from bounds)) m \
           union all select c.carrier, p.waiting, p.oldest from unnest(",
        column(&asked, |carrier| carrier.as_str()),
        ") as c (carrier) cross join lateral (select count(*) as waiting, min(due_at) as oldest from (select due_at from parcels \
               where carrier = c.carrier and due_at <= (select at from clock) order by due_at \
               limit (select most from bounds)) q) p) \
         select queue, waiting, extract(epoch from (select at from clock) - oldest)::float8 from found");
    let found = statements.rows(look).await?;
    let of = |queue: &str| {
        let row = found.iter().find(|row| row.queue == queue);
        row.map(Found::backlog).unwrap_or_default()
    };
    Ok(Queues {
        first_deliveries: of("first"),
        repeated_deliveries: of("repeated"),
        shipment_mails: of("shipment_mails"),
        account_mails: of("account_mails"),
        parcels: asked
            .iter()
            .map(|carrier| (*carrier, of(carrier.as_str())))
            .collect(),
    })
}
