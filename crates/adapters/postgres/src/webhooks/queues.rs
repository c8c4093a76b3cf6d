//! Delivery queues, one per subscription: claimed, refilled, released and woken. Each call is a statement or a
//! transaction of its own over the pool.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use diesel::QueryableByName;
use diesel::sql_types::{Array, BigInt, Binary, Bool, Integer, Text, Timestamptz, Uuid as SqlUuid};
use kernel::{SellerId, StoreError};
use parking_lot::Mutex;
use tokio::time::Instant;
use uuid::Uuid;
use webhooks::{
    ApplicationLoad, AttemptRecord, Capacity, Claimed, DeliveryId, Due, Lease, Phase, Progress, QueueKey,
    Refill, Refilled, Release, SubscriptionId, SubscriptionQueue, SubscriptionQueues,
};

use super::recording::{Asleep, Recording, find_queued};
use crate::connection::pool::{Autocommit, Leased};
use crate::schema::deliveries;
use crate::sealing::Sealing;
use crate::searched::Searched;
use crate::sql::{column, readable};
use crate::statement::statements;

statements! {
    "queues.sql";
    CLAIM: (
        BigInt, BigInt, BigInt, BigInt, BigInt, BigInt, Array<SqlUuid>, Array<SqlUuid>,
        Array<SqlUuid>, Array<Integer>, Array<Integer>, Timestamptz, Timestamptz, SqlUuid
    ) -> ClaimRow;
    REFILL: (
        Array<SqlUuid>, Array<SqlUuid>, Array<SqlUuid>, Array<Integer>, Array<Integer>,
        Array<BigInt>, Array<SqlUuid>
    ) -> RefillRow;
    RECONCILE: ();
    SUSPEND: (Array<SqlUuid>, Array<SqlUuid>);
}

/// The minimum interval between log lines about unreadable queues.
const LOG_EVERY: Duration = Duration::from_mins(1);

#[derive(QueryableByName)]
#[diesel(table_name = deliveries, check_for_backend(diesel::pg::Pg))]
struct DueRow {
    id: Uuid,
    event: String,
    body: Vec<u8>,
    attempt: i16,
    lost: i16,
}

impl TryFrom<DueRow> for Due {
    type Error = StoreError;

    fn try_from(row: DueRow) -> Result<Self, StoreError> {
        let id = DeliveryId::from(row.id);
        let count = |name: &str, value: i16| {
            u8::try_from(value).map_err(|_| StoreError::corrupt("deliveries", id, format!("{name} {value}")))
        };
        Ok(Self {
            id,
            event: super::event(id, &row.event)?,
            body: Arc::from(row.body),
            progress: Progress {
                attempt: count("attempt", row.attempt)?,
                lost: count("lost", row.lost)?,
                phase: Phase::Leased,
            },
        })
    }
}

/// An unreadable delivery is skipped: returned as an error, it would block all deliveries read with it.
fn due(row: Option<DueRow>) -> Vec<Due> {
    readable(row.into_iter().map(Due::try_from))
}

/// Where the search ended, and a queue, if there is one.
#[derive(QueryableByName)]
#[diesel(check_for_backend(diesel::pg::Pg))]
struct ClaimRow {
    #[diesel(sql_type = Timestamptz)]
    first_healthy: DateTime<Utc>,
    #[diesel(sql_type = Timestamptz)]
    first_failing: DateTime<Utc>,
    #[diesel(embed)]
    queue: Option<QueueRow>,
}

/// A queue with one or none of its deliveries.
#[derive(QueryableByName)]
#[diesel(check_for_backend(diesel::pg::Pg))]
struct QueueRow {
    #[diesel(sql_type = SqlUuid)]
    seller_id: Uuid,
    #[diesel(sql_type = SqlUuid)]
    subscription_id: Uuid,
    #[diesel(sql_type = SqlUuid)]
    client_id: Uuid,
    #[diesel(sql_type = Text)]
    state: String,
    /// The same in all rows of a claim.
    #[diesel(sql_type = Bool)]
    more: bool,
    #[diesel(sql_type = Text)]
    url: String,
    #[diesel(sql_type = Binary)]
    secret: Vec<u8>,
    #[diesel(sql_type = Bool)]
    failing: bool,
    #[diesel(embed)]
    due: Option<DueRow>,
}

/// A refilled queue with one or none of its deliveries.
#[derive(QueryableByName)]
#[diesel(check_for_backend(diesel::pg::Pg))]
struct RefillRow {
    #[diesel(sql_type = SqlUuid)]
    seller_id: Uuid,
    #[diesel(sql_type = SqlUuid)]
    subscription_id: Uuid,
    #[diesel(sql_type = SqlUuid)]
    fence: Uuid,
    #[diesel(embed)]
    due: Option<DueRow>,
}

/// The applications that have used up their share, and those whose failing queues have used up theirs.
fn full_applications(capacity: &Capacity) -> (Vec<Uuid>, Vec<Uuid>) {
    let is_full = |of: &ApplicationLoad| of.attempts >= capacity.per_application;
    let is_full_of_failing =
        |of: &ApplicationLoad| is_full(of) || of.failing >= capacity.failing_per_application;
    let applications = |which: &dyn Fn(&ApplicationLoad) -> bool| {
        let chosen = capacity.under_way.iter().filter(|of| which(of));
        chosen.map(|of| of.client_id.uuid()).collect()
    };
    (applications(&is_full), applications(&is_full_of_failing))
}

/// The delivery queues of all subscriptions.
pub(crate) struct StoredQueues {
    statements: Autocommit,
    sealing: Sealing,
    asleep: RecentlyAsleep,
    unreadable: Unreadable,
    /// The indexes of healthy queues, and of failing ones.
    searched: (Searched, Searched),
}

/// Queues that this process has put to sleep while deliveries were being queued.
#[derive(Clone, Default)]
pub(crate) struct RecentlyAsleep(Arc<Mutex<Vec<Asleep>>>);

#[async_trait]
impl SubscriptionQueues for StoredQueues {
    /// Each index is read from its first queue at the last claim on: see [`Searched`].
    async fn claim(&self, fence: Uuid, capacity: Capacity) -> Result<Claimed, StoreError> {
        self.wake_asleep(Vec::new()).await;
        let (full, full_of_failing) = full_applications(&capacity);
        let under_way = &capacity.under_way;
        let claim = CLAIM.bind((
            i64::from(capacity.attempts),
            i64::from(capacity.failing_attempts),
            i64::from(capacity.per_queue),
            i64::from(capacity.per_failing_queue),
            i64::from(capacity.per_application),
            i64::from(capacity.failing_per_application),
            full,
            full_of_failing,
            column(under_way, |of| of.client_id.uuid()),
            column(under_way, |of| i32::from(of.attempts)),
            column(under_way, |of| i32::from(of.failing)),
            self.searched.0.next(),
            self.searched.1.next(),
            fence,
        ));
        let rows = self.statements.rows(claim).await?;
        if let Some(row) = rows.first() {
            self.searched.0.found(row.first_healthy);
            self.searched.1.found(row.first_failing);
        }
        let rows: Vec<_> = rows.into_iter().filter_map(|row| row.queue).collect();
        let more = rows.iter().any(|row| row.more);
        let (live, others): (Vec<_>, Vec<_>) = rows.into_iter().partition(|row| row.state == "live");
        let has_suspended = !others.is_empty() && self.suspend(&others).await;
        Ok(Claimed {
            queues: self.queues(fence, live),
            more: more || has_suspended,
        })
    }

    async fn refill(&self, queues: &[Refill]) -> Result<Vec<Refilled>, StoreError> {
        let running: Vec<_> = queues
            .iter()
            .zip(1_i64..)
            .flat_map(|(queue, n)| queue.running.iter().map(move |delivery| (n, delivery.uuid())))
            .collect();
        let refill = REFILL.bind((
            column(queues, |queue| queue.lease.queue.seller.uuid()),
            column(queues, |queue| queue.lease.queue.subscription.uuid()),
            column(queues, |queue| queue.lease.fence),
            column(queues, |queue| i32::from(queue.capacity)),
            column(queues, |queue| i32::from(queue.repeats)),
            column(&running, |(n, _)| *n),
            column(&running, |(_, delivery)| *delivery),
        ));
        // Rows of one queue are adjacent.
        let mut filled = Vec::<Refilled>::new();
        for row in self.statements.rows(refill).await? {
            let lease = lease(row.seller_id, row.subscription_id, row.fence);
            if filled.last().is_none_or(|queue| queue.lease != lease) {
                let deliveries = Vec::new();
                filled.push(Refilled { lease, deliveries });
            }
            if let Some(queue) = filled.last_mut() {
                queue.deliveries.extend(due(row.due));
            }
        }
        Ok(filled)
    }

    async fn record(&self, records: &[AttemptRecord], releases: &[Release]) -> Result<(), StoreError> {
        if records.is_empty() && releases.is_empty() {
            return Ok(());
        }
        let recording = Recording::new(records, releases)?;
        let sending =
            |leased: Arc<Leased>| async move { Box::pin(recording.send(leased.connection())).await };
        let asleep = self.statements.ask(sending).await?;
        self.wake_asleep(asleep).await;
        Ok(())
    }

    async fn reconcile(&self) -> Result<usize, StoreError> {
        self.statements.execute(RECONCILE.bind(())).await
    }
}

impl StoredQueues {
    pub(crate) fn new(statements: Autocommit, sealing: Sealing, asleep: RecentlyAsleep) -> Self {
        Self {
            statements,
            sealing,
            asleep,
            unreadable: Unreadable::default(),
            searched: Default::default(),
        }
    }

    /// Wakes queues that were put to sleep, now or earlier, and have deliveries that the release did not see. Those that may get more are
    /// examined again before the next claim; reconciliation finds those of a process that has died or failed here.
    async fn wake_asleep(&self, asleep: Vec<Asleep>) {
        let mut queues = std::mem::take(&mut *self.asleep.0.lock());
        queues.extend(asleep);
        if queues.is_empty() {
            return;
        }
        let finding = |leased: Arc<Leased>| async move { find_queued(queues, leased.connection()).await };
        match self.statements.ask(finding).await {
            Ok(contended) => self.asleep.0.lock().extend(contended),
            Err(error) => {
                tracing::warn!(error = %error, "delivery queues may sleep until the next reconciliation");
            }
        }
    }

    /// Puts queues to sleep that are not live. The follow-up of the end of a queue stops its deliveries, which may be any number. Returns
    /// whether there were any. A failure here is retried by the next claim, since the queues stay due.
    async fn suspend(&self, rows: &[QueueRow]) -> bool {
        let suspend = SUSPEND.bind((
            column(rows, |row| row.seller_id),
            column(rows, |row| row.subscription_id),
        ));
        let asleep = self.statements.execute(suspend).await;
        asleep.map_or_else(
            |error| {
                tracing::warn!(error = %error, "delivery queues that may not be worked on could not be put to sleep");
                false
            },
            |queues| queues > 0,
        )
    }

    /// Rows of one queue are adjacent. A queue whose URL or secret is unreadable is logged and left until its lease expires.
    fn queues(&self, fence: Uuid, rows: Vec<QueueRow>) -> Vec<SubscriptionQueue> {
        let mut queues = Vec::<SubscriptionQueue>::new();
        let mut unreadable = None;
        for row in rows {
            let lease = lease(row.seller_id, row.subscription_id, fence);
            if unreadable == Some(lease) {
                continue;
            }
            if queues.last().is_none_or(|queue| queue.lease != lease) {
                match self.queue(lease, &row) {
                    Ok(queue) => queues.push(queue),
                    Err(error) => {
                        self.unreadable.note(&error);
                        unreadable = Some(lease);
                        continue;
                    }
                }
            }
            if let Some(queue) = queues.last_mut() {
                queue.deliveries.extend(due(row.due));
            }
        }
        queues
    }

    fn queue(&self, lease: Lease, row: &QueueRow) -> Result<SubscriptionQueue, StoreError> {
        let QueueKey { seller, subscription } = lease.queue;
        Ok(SubscriptionQueue {
            lease,
            client_id: row.client_id.into(),
            url: super::url(subscription, &row.url)?,
            secret: super::open_secret(&self.sealing, seller, subscription, &row.secret)?,
            failing: row.failing,
            deliveries: Vec::new(),
        })
    }
}

fn lease(seller: Uuid, subscription: Uuid, fence: Uuid) -> Lease {
    Lease {
        queue: QueueKey {
            seller: SellerId::from(seller),
            subscription: SubscriptionId::from(subscription),
        },
        fence,
    }
}

/// When queues with an unreadable URL or secret were last logged. Each comes up again with every lease, and with a wrong sealing key all of
/// them do.
#[derive(Default)]
struct Unreadable(Mutex<Option<Instant>>);

impl Unreadable {
    fn note(&self, error: &StoreError) {
        metrics::counter!("webhook_lanes_unreadable_total").increment(1);
        if self.is_logged(Instant::now()) {
            tracing::error!(
                error = %error,
                "webhooks wait: their address or their secret cannot be read. Is `keys.sealing` what it is elsewhere?"
            );
        }
    }

    /// Whether another log line is due.
    fn is_logged(&self, now: Instant) -> bool {
        let mut last = self.0.lock();
        let is_due = last.is_none_or(|last| now.duration_since(last) >= LOG_EVERY);
        if is_due {
            *last = Some(now);
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unreadable_queues_are_logged_once_a_minute() {
        let (unreadable, begin) = (Unreadable::default(), Instant::now());
        let logged = (0..=121).filter(|after| unreadable.is_logged(begin + Duration::from_secs(*after)));
        assert_eq!(logged.collect::<Vec<_>>(), [0, 60, 120]);
    }
}
