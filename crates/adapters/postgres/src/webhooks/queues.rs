//! Delivery queues, one per subscription: claimed, refilled, released and woken. Each call is a statement or
//! a transaction of its own over the pool.

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use diesel::QueryableByName;
use diesel::sql_types::{Array, BigInt, Nullable, Uuid as SqlUuid};
use diesel_async::SimpleAsyncConnection as _;
use kernel::StoreError;
use parking_lot::Mutex;
use uuid::Uuid;
use webhooks::{
    AttemptRecord, Capacity, ClaimedQueues, Lease, QueueKey, Refill, Refilled, Release, SubscriptionQueues,
};

use super::Queue;
use super::claiming::{Unreadable, columns};
use super::recording::{self, Asleep, find_queued};
use super::search::Search;
use crate::connection::pool::{Autocommit, Leased};
use crate::sealing::Sealing;
use crate::sql::column;
use crate::statement::statements;

statements! {
    "queues.sql";
    RECONCILE: (SqlUuid, SqlUuid, BigInt) -> Reconciled;
    PUT_TO_SLEEP: (Array<SqlUuid>, Array<SqlUuid>);
}

/// Queues that one statement of a reconciliation passes. A suspended application's waiting queues are passed
/// every time.
const QUEUES_AT_ONCE: i64 = 5_000;

#[derive(QueryableByName)]
struct Reconciled {
    #[diesel(sql_type = BigInt)]
    woken: i64,
    #[diesel(sql_type = Nullable<SqlUuid>)]
    seller_id: Option<Uuid>,
    #[diesel(sql_type = Nullable<SqlUuid>)]
    subscription_id: Option<Uuid>,
}

/// The delivery queues of all subscriptions.
pub(crate) struct StoredQueues {
    pub(super) statements: Autocommit,
    asleep: RecentlyAsleep,
    pub(super) sealing: Sealing,
    pub(super) unreadable: Unreadable,
    /// The indexes of healthy queues, and of failing ones.
    pub(super) searches: (Search, Search),
}

/// Queues that this process has put to sleep while deliveries were being queued.
#[derive(Clone, Default)]
pub(crate) struct RecentlyAsleep(Arc<Mutex<Vec<Asleep>>>);

#[async_trait]
impl SubscriptionQueues for StoredQueues {
    async fn claim(&self, fence: Uuid, capacity: Capacity) -> Result<ClaimedQueues, StoreError> {
        self.wake_asleep(Vec::new()).await;
        self.search_anew().await?;
        let claiming = |leased: Arc<Leased>| async move {
            let mut connection = leased.connection();
            let claimed = self.claim_due(connection, fence, capacity).await;
            if claimed.is_err() {
                // What failed before tells more.
                drop(connection.batch_execute("rollback").await);
            }
            claimed
        };
        let (mut claimed, not_live) = self.statements.ask(claiming).await?;
        if !not_live.is_empty() && self.put_to_sleep(&not_live).await {
            claimed.healthy.more = true;
            if let Some(failing) = &mut claimed.failing {
                failing.more = true;
            }
        }
        Ok(claimed)
    }

    async fn refill(&self, queues: &[Refill]) -> Result<Vec<Refilled>, StoreError> {
        let held = column(queues, |queue| Some(queue.lease.fence));
        let refilling =
            |leased: Arc<Leased>| async move { self.lease(leased.connection(), queues, held).await };
        self.statements.ask(refilling).await
    }

    async fn record(
        &self,
        records: &[AttemptRecord],
        releases: &[Release],
    ) -> Result<BTreeSet<Lease>, StoreError> {
        let sending = |leased: Arc<Leased>| async move {
            Box::pin(recording::send(records, releases, leased.connection())).await
        };
        let (asleep, locked) = self.statements.ask(sending).await?;
        self.wake_asleep(asleep).await;
        let locked: BTreeSet<_> = locked.iter().map(Queue::key).collect();
        let leases = records.iter().map(|record| record.lease);
        let leases = leases.chain(releases.iter().map(|release| release.lease));
        Ok(leases.filter(|lease| locked.contains(&lease.queue)).collect())
    }

    async fn reconcile(&self) -> Result<usize, StoreError> {
        let (mut woken, mut next) = (0, Some((Uuid::nil(), Uuid::nil())));
        while let Some((seller, queue)) = next {
            let walk = RECONCILE.bind((seller, queue, QUEUES_AT_ONCE));
            let Some(found) = self.statements.row(walk).await? else {
                break;
            };
            woken += found.woken;
            next = found.seller_id.zip(found.subscription_id);
        }
        usize::try_from(woken).map_err(StoreError::unexpected)
    }
}

impl StoredQueues {
    pub(crate) fn new(statements: Autocommit, sealing: Sealing, asleep: RecentlyAsleep) -> Self {
        Self {
            statements,
            asleep,
            sealing,
            unreadable: Unreadable::default(),
            searches: Default::default(),
        }
    }

    /// Wakes queues that were put to sleep, now or earlier, and have deliveries that the release did not see.
    /// Those that may get more are examined again before the next claim; reconciliation finds those of a
    /// process that has died or failed here.
    async fn wake_asleep(&self, asleep: Vec<Asleep>) {
        let mut queues = std::mem::take(&mut *self.asleep.0.lock());
        queues.extend(asleep);
        if queues.is_empty() {
            return;
        }
        let finding = |leased: Arc<Leased>| async move { find_queued(&queues, leased.connection()).await };
        match self.statements.ask(finding).await {
            Ok(contended) => self.asleep.0.lock().extend(contended),
            Err(error) => {
                tracing::warn!(error = %error, "delivery queues may sleep until the next reconciliation");
            }
        }
    }

    /// Puts queues to sleep that are not live. The follow-up of the end of a queue stops its deliveries,
    /// which may be any number. Returns whether there were any. A failure here is retried by the next claim,
    /// since the queues stay due.
    async fn put_to_sleep(&self, queues: &[QueueKey]) -> bool {
        let asleep = self.statements.execute(PUT_TO_SLEEP.bind(columns(queues))).await;
        asleep.map_or_else(
            |error| {
                tracing::warn!(error = %error, "delivery queues that are not live could not be put to sleep: it is retried");
                false
            },
            |queues| queues > 0,
        )
    }
}
