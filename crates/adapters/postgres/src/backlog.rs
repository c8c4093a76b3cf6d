//! The amount of pending background work, and how long its oldest item has been due.
//!
//! One statement reads all queues, and at most [`QUEUE_LIMIT`] items of each.

use diesel::sql_types::{Array, BigInt, Double, Integer, Nullable, Text};
use kernel::StoreError;
use orders::Carrier;

use crate::database::Database;
use crate::layout::Layout;
use crate::statement::{Only, statements};

statements! {
    "backlog.sql";
    QUEUES: (BigInt, Array<Text>) -> Backlog;
    OLDEST_SNAPSHOT: () -> Only<Nullable<Double>, Option<f64>>;
    WORKERS: () -> Workers;
}

/// The largest count reported per queue.
pub const QUEUE_LIMIT: i64 = 10_000;

/// Pending work by queue.
pub struct Queues(Vec<Backlog>);

impl Queues {
    /// Of the `first` attempts of webhook deliveries, or of `repeated` ones; of `shipment_mails` or
    /// `account_mails`; of the parcels of a carrier that are due for a look-up.
    pub fn of(&self, queue: &str) -> Option<&Backlog> {
        self.0.iter().find(|row| row.queue == queue)
    }
}

/// The pending work of one queue.
#[derive(diesel::QueryableByName)]
pub struct Backlog {
    #[diesel(sql_type = Text)]
    queue: String,
    /// The number of items, at most [`QUEUE_LIMIT`].
    #[diesel(sql_type = Integer)]
    pub waiting: i32,
    /// How many seconds the oldest due item has been due, deliveries to failing receivers left out; zero if none
    /// is.
    #[diesel(sql_type = Double)]
    pub overdue: f64,
}

/// The workers of a Citus cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, diesel::QueryableByName)]
pub struct Workers {
    /// Those that the coordinator does not reach.
    #[diesel(sql_type = Integer)]
    pub unreachable: i32,
    /// Prepared transactions on the others that are older than half a minute, and have not been recovered.
    #[diesel(sql_type = Integer)]
    pub in_doubt: i32,
}

impl Database {
    /// The amount of pending background work; for monitoring, not for every request.
    pub async fn queues(&self) -> Result<Queues, StoreError> {
        let queues = QUEUES.bind((QUEUE_LIMIT, Carrier::ALL.map(Carrier::as_str).to_vec()));
        Ok(Queues(self.autocommit("queues").rows(queues).await?))
    }

    /// The age in seconds of the oldest transaction in the server, prepared or not, that holds a snapshot or has
    /// written: what was deleted or changed since then stays in tables and indexes. None if the role may not see
    /// others' and its own are young.
    pub async fn oldest_snapshot(&self) -> Result<Option<f64>, StoreError> {
        let oldest = self.autocommit("queues").row(OLDEST_SNAPSHOT.bare()).await?;
        Ok(oldest.and_then(|age| age.0))
    }

    /// The state of the workers of a Citus cluster; None in the other layout.
    pub async fn workers(&self) -> Result<Option<Workers>, StoreError> {
        if self.units.layout == Layout::Single {
            return Ok(None);
        }
        self.autocommit("queues").row(WORKERS.bare()).await
    }
}
