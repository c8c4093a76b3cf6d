//! The amount of pending background work, and how long its oldest item has been due.
//!
//! One statement reads all queues from index entries only, and at most [`QUEUE_LIMIT`] per queue. Its sort orders are
//! those of the indexes: they keep the planner from scanning a table in which it expects to find enough rows soon.

use std::time::Duration;

use kernel::StoreError;
use orders::Carrier;

use crate::connection::pool::Autocommit;
use crate::sql::{column, row, sql};

/// The largest count reported per queue.
pub const QUEUE_LIMIT: i64 = 10_000;
/// How many failing delivery queues, and how many others, are searched for the oldest delivery: those that have been due longest.
const QUEUES: i64 = 200;

/// Pending work by queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Queues {
    /// Webhook deliveries without an attempt yet.
    pub first_deliveries: Backlog,
    /// Failed webhook deliveries that will be retried.
    pub repeated_deliveries: Backlog,
    /// Mails about shipments.
    pub shipment_mails: Backlog,
    /// Mails about accounts.
    pub account_mails: Backlog,
    /// Parcels that are due for a look-up, by carrier.
    pub parcels: Vec<(Carrier, Backlog)>,
}

/// The pending work of one queue.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Backlog {
    /// The number of items, at most [`QUEUE_LIMIT`].
    pub waiting: u32,
    /// How long the oldest due item has been due; zero if none is.
    pub overdue: Duration,
}

/// The workers of a Citus cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Workers {
    /// Those that the coordinator does not reach.
    pub unreachable: u32,
    /// Prepared transactions on the others that are older than half a minute, and have not been recovered.
    pub in_doubt: u32,
}

pub(crate) async fn read_workers(statements: &Autocommit) -> Result<Workers, StoreError> {
    let count = sql!((i64, i64):
        "select count(*) filter (where not success), coalesce(sum(case when success then result::bigint end), 0)::bigint \
         from run_command_on_workers($$select count(*) from pg_prepared_xacts where prepared < now() - interval '30 s'$$)");
    let (unreachable, in_doubt) = statements.row(count).await?.unwrap_or_default();
    Ok(Workers {
        unreachable: u32::try_from(unreachable).map_err(StoreError::unexpected)?,
        in_doubt: u32::try_from(in_doubt).map_err(StoreError::unexpected)?,
    })
}

/// The age of the oldest snapshot that a session or a prepared transaction holds. Sessions of other roles show theirs to members of
/// `pg_read_all_stats` alone.
pub(crate) async fn read_oldest_snapshot(statements: &Autocommit) -> Result<Duration, StoreError> {
    let age = sql!(f64:
        "select extract(epoch from (select api_now()) - least( \
           (select min(xact_start) from pg_stat_activity where backend_xmin is not null), \
           (select min(prepared) from pg_prepared_xacts), (select api_now())))::float8");
    let age = statements.row(age).await?.unwrap_or_default();
    Ok(Duration::try_from_secs_f64(age.max(0.0)).unwrap_or(Duration::MAX))
}

row! {
    struct BacklogRow {
        queue: String,
        waiting: i64,
        overdue: Option<f64>,
    }
}

impl BacklogRow {
    fn backlog(&self) -> Backlog {
        let overdue = self.overdue.unwrap_or_default();
        Backlog {
            waiting: u32::try_from(self.waiting).unwrap_or(u32::MAX),
            // An item that is due later counts as zero.
            overdue: Duration::try_from_secs_f64(overdue.max(0.0)).unwrap_or(Duration::MAX),
        }
    }
}

pub(crate) async fn read(statements: &Autocommit) -> Result<Queues, StoreError> {
    let carriers = Carrier::ALL
        .into_iter()
        .filter(|carrier| *carrier != Carrier::Other);
    let carriers = carriers.collect::<Vec<_>>();
    let count = sql!(BacklogRow:
        "with clock as materialized (select api_now() as at), \
         bounds as materialized (select ", QUEUE_LIMIT, " as most, ", QUEUES, " as queues), \
         queues as materialized ( \
           (select seller_id, id from subscriptions where wake_at is not null and not failing \
             order by wake_at limit (select queues from bounds)) \
           union all \
           (select seller_id, id from subscriptions where wake_at is not null and failing \
             order by wake_at limit (select queues from bounds))), \
         backlog (queue, waiting, oldest) as ( \
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
        column(&carriers, |carrier| carrier.as_str()),
        ") as c (carrier) cross join lateral (select count(*) as waiting, min(due_at) as oldest from (select due_at from parcels \
               where carrier = c.carrier and due_at <= (select at from clock) order by due_at \
               limit (select most from bounds)) q) p) \
         select queue, waiting, extract(epoch from (select at from clock) - oldest)::float8 from backlog");
    let rows = statements.rows(count).await?;
    let of = |queue: &str| {
        let row = rows.iter().find(|row| row.queue == queue);
        row.map(BacklogRow::backlog).unwrap_or_default()
    };
    Ok(Queues {
        first_deliveries: of("first"),
        repeated_deliveries: of("repeated"),
        shipment_mails: of("shipment_mails"),
        account_mails: of("account_mails"),
        parcels: carriers
            .iter()
            .map(|carrier| (*carrier, of(carrier.as_str())))
            .collect(),
    })
}
