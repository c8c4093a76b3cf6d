//! The amount of pending background work, and how long its oldest item has been due.
//!
//! One statement reads all queues, and at most [`QUEUE_LIMIT`] items of each.

use std::time::Duration;

use diesel::sql_types::{Array, BigInt, Double, Integer, Nullable, Text};
use kernel::StoreError;
use orders::Carrier;

use crate::database::Database;
use crate::layout::Layout;
use crate::statement::{Only, statements};

statements! {
    "backlog.sql";
    QUEUES: (BigInt, Array<Text>) -> BacklogRow;
    OLDEST_SNAPSHOT: () -> Only<Double, f64>;
    WORKERS: () -> Workers;
}

/// The largest count reported per queue.
pub const QUEUE_LIMIT: i64 = 10_000;

/// Pending work by queue.
pub struct Queues(Vec<BacklogRow>);

impl Queues {
    /// Of the `first` attempts of webhook deliveries, or of `repeated` ones; of `shipment_mails` or
    /// `account_mails`; of the parcels of a carrier that are due for a look-up.
    pub fn of(&self, queue: &str) -> Backlog {
        let row = self.0.iter().find(|row| row.queue == queue);
        row.map(BacklogRow::backlog).unwrap_or_default()
    }
}

/// The pending work of one queue.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Backlog {
    /// The number of items, at most [`QUEUE_LIMIT`].
    pub waiting: u32,
    /// How long the oldest due item has been due, deliveries to failing receivers left out; zero if none is.
    pub overdue: Duration,
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

#[derive(diesel::QueryableByName)]
struct BacklogRow {
    #[diesel(sql_type = Text)]
    queue: String,
    #[diesel(sql_type = BigInt)]
    waiting: i64,
    /// In seconds.
    #[diesel(sql_type = Nullable<Double>)]
    overdue: Option<f64>,
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

impl Database {
    /// The amount of pending background work; for monitoring, not for every request.
    pub async fn queues(&self) -> Result<Queues, StoreError> {
        let queues = QUEUES.bind((QUEUE_LIMIT, Carrier::ALL.map(Carrier::as_str).to_vec()));
        Ok(Queues(self.autocommit("queues").rows(queues).await?))
    }

    /// The age of the oldest transaction in the server, prepared or not, that holds a snapshot or has written:
    /// what was deleted or changed since then stays in tables and indexes.
    pub async fn oldest_snapshot(&self) -> Result<Duration, StoreError> {
        let oldest = self.autocommit("queues").row(OLDEST_SNAPSHOT.bind(())).await?;
        let seconds = oldest.map_or(0.0, |oldest| oldest.0);
        Ok(Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(Duration::MAX))
    }

    /// The state of the workers of a Citus cluster; None in the other layout.
    pub async fn workers(&self) -> Result<Option<Workers>, StoreError> {
        if self.units.context.layout == Layout::Single {
            return Ok(None);
        }
        self.autocommit("queues").row(WORKERS.bind(())).await
    }
}
