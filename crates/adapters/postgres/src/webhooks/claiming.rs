//! A claim of delivery queues, and the lease of deliveries. A claim is one transaction: it locks due queues,
//! shares the capacity among them, and leases those that get something.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use diesel::sql_types::{Array, BigInt, Integer, Nullable, SmallInt, Timestamptz, Uuid as SqlUuid};
use diesel::{NotFound, QueryResult, QueryableByName};
use diesel_async::{AsyncPgConnection, RunQueryDsl as _, SimpleAsyncConnection as _};
use futures_util::join;
use kernel::{SellerId, StoreError};
use parking_lot::Mutex;
use tokio::time::Instant;
use uuid::Uuid;
use webhooks::{
    Capacity, ClaimedQueues, DeliveryId, Due, DueQueue, Examined, FreeAttempts, Lease, Progress, QueueKey,
    Refill, Refilled, SigningSecrets, SubscriptionId, SubscriptionQueue, WebhookUrl,
};

use super::queues::StoredQueues;
use super::search::Searching;
use crate::schema::{deliveries, subscriptions};
use crate::sql::{column, readable};
use crate::statement::statements;

statements! {
    "claiming.sql";
    DUE: (BigInt, BigInt, Timestamptz, Timestamptz, Array<SqlUuid>, Array<SqlUuid>) -> DueRow;
    ABANDONED: (Array<SqlUuid>, Array<SqlUuid>) -> AbandonedRow;
    LOSE: (Array<SqlUuid>, Array<SqlUuid>, Array<SqlUuid>, Array<SmallInt>, Array<SmallInt>, Array<SmallInt>);
    LEASE: (
        Array<SqlUuid>, Array<SqlUuid>, Array<Nullable<SqlUuid>>, Array<SqlUuid>, Array<Integer>, Array<Integer>,
        Array<BigInt>, Array<SqlUuid>
    ) -> LeasedRow;
}

/// Begins a claim. It is committed asynchronously: if a crash loses it, its fence is invalid and the queues
/// are due again. If the process is stopped in it, others wait 3 s for the queues that it has locked.
const BEGIN_CLAIM: &str = "begin isolation level read committed read write; set local synchronous_commit = off; set local jit = off; \
    set local idle_in_transaction_session_timeout = '3s'";
/// How many queues a claim looks at, healthy and failing ones each.
const MOST_QUEUES: u16 = 128;
/// How long a search of the whole index may take. No other claim of the process is made meanwhile.
const WHOLE_SEARCH: Duration = Duration::from_secs(20);
/// The minimum interval between log lines about unreadable queues.
const LOG_EVERY: Duration = Duration::from_mins(1);

/// When the first queues were due, the time of the claim, and a queue, if there is one.
#[derive(QueryableByName)]
struct DueRow {
    #[diesel(sql_type = Timestamptz)]
    first_healthy: DateTime<Utc>,
    #[diesel(sql_type = Timestamptz)]
    first_failing: DateTime<Utc>,
    #[diesel(sql_type = Timestamptz)]
    at: DateTime<Utc>,
    #[diesel(embed)]
    queue: Option<QueueRow>,
}

/// A queue that is due, or whose lease has expired.
#[derive(QueryableByName)]
#[diesel(table_name = subscriptions)]
struct QueueRow {
    seller_id: Uuid,
    id: Uuid,
    client_id: Uuid,
    #[diesel(sql_type = SqlUuid)]
    owner_id: Uuid,
    failing: bool,
    fence: Option<Uuid>,
    url: String,
    secret: Vec<u8>,
    #[diesel(sql_type = Timestamptz)]
    wake_at: DateTime<Utc>,
    #[diesel(sql_type = BigInt)]
    first_attempts: i64,
    #[diesel(sql_type = BigInt)]
    repeats: i64,
}

impl QueueRow {
    fn due(&self) -> DueQueue {
        let count = |number| u16::try_from(number).unwrap_or(u16::MAX);
        DueQueue {
            owner: self.owner_id.into(),
            failing: self.failing,
            first_attempts: count(self.first_attempts),
            repeats: count(self.repeats),
        }
    }
}

/// What a claim has found at this time.
struct LockedQueues {
    queues: Vec<QueueRow>,
    at: DateTime<Utc>,
    healthy: Searching,
    failing: Searching,
}

/// A leased queue with one or none of its deliveries.
#[derive(QueryableByName)]
#[diesel(table_name = subscriptions)]
struct LeasedRow {
    seller_id: Uuid,
    #[diesel(sql_type = SqlUuid)]
    subscription_id: Uuid,
    #[diesel(sql_type = SqlUuid)]
    fence: Uuid,
    url: String,
    secret: Vec<u8>,
    #[diesel(sql_type = Timestamptz)]
    at: DateTime<Utc>,
    #[diesel(embed)]
    delivery: Option<DeliveryRow>,
}

#[derive(QueryableByName)]
#[diesel(table_name = deliveries)]
struct DeliveryRow {
    id: Uuid,
    event: String,
    body: Vec<u8>,
    attempt: i16,
    lost: i16,
    #[diesel(sql_type = Timestamptz)]
    due_at: DateTime<Utc>,
}

/// A delivery whose worker abandoned it.
#[derive(QueryableByName)]
#[diesel(table_name = deliveries)]
struct AbandonedRow {
    seller_id: Uuid,
    subscription_id: Uuid,
    id: Uuid,
    attempt: i16,
    lost: i16,
}

fn progress(id: Uuid, attempt: i16, lost: i16) -> Result<Progress, StoreError> {
    let count = |name: &str, value: i16| {
        let corrupt = |_| StoreError::corrupt("deliveries", DeliveryId::from(id), format!("{name} {value}"));
        u8::try_from(value).map_err(corrupt)
    };
    Ok(Progress {
        attempt: count("attempt", attempt)?,
        lost: count("lost", lost)?,
    })
}

impl TryFrom<DeliveryRow> for Due {
    type Error = StoreError;

    fn try_from(row: DeliveryRow) -> Result<Self, StoreError> {
        let id = DeliveryId::from(row.id);
        Ok(Self {
            id,
            event: super::event(id, &row.event)?,
            body: Arc::from(row.body),
            due_at: row.due_at,
            progress: progress(row.id, row.attempt, row.lost)?,
        })
    }
}

/// The owners for whom no further attempt can start, in a healthy queue or in a failing one.
fn full_owners(capacity: &Capacity, failing: bool) -> Vec<Uuid> {
    let kind = if failing { &capacity.failing } else { &capacity.all };
    let owners = capacity.under_way.keys().chain(&kind.passed_over);
    let full = owners.filter(|owner| capacity.left(**owner, failing) == 0);
    full.map(|owner| owner.uuid()).collect()
}

pub(super) fn key(seller: Uuid, subscription: Uuid) -> QueueKey {
    QueueKey {
        seller: SellerId::from(seller),
        subscription: SubscriptionId::from(subscription),
    }
}

/// Sellers and subscriptions.
pub(super) fn columns(queues: &[QueueKey]) -> (Vec<Uuid>, Vec<Uuid>) {
    let keys = queues.iter();
    keys.map(|key| (key.seller.uuid(), key.subscription.uuid()))
        .unzip()
}

/// Counts the losses of what the workers of these queues abandoned.
async fn lose(mut connection: &AsyncPgConnection, queues: &[QueueKey]) -> QueryResult<()> {
    let found = ABANDONED.bind(columns(queues));
    let rows = found.get_results::<AbandonedRow>(&mut connection).await?;
    let decided = rows.into_iter().filter_map(|row| {
        let next = readable(progress(row.id, row.attempt, row.lost))?.lose();
        Some((row, i16::from(next.lost)))
    });
    let decided: Vec<_> = decided.collect();
    let lose = LOSE.bind((
        column(&decided, |(row, _)| row.seller_id),
        column(&decided, |(row, _)| row.subscription_id),
        column(&decided, |(row, _)| row.id),
        column(&decided, |(row, _)| row.attempt),
        column(&decided, |(row, _)| row.lost),
        column(&decided, |(_, lost)| *lost),
    ));
    lose.execute(&mut connection).await.map(drop)
}

impl StoredQueues {
    /// Finds the first due queues when the whole index is due to be searched. After hours of an old snapshot this reads millions
    /// of dead entries.
    pub(super) async fn search_anew(&self) -> Result<(), StoreError> {
        let (healthy, failing) = (&self.searches.0.searched, &self.searches.1.searched);
        if !(healthy.begins_anew() | failing.begins_anew()) {
            return Ok(());
        }
        let epoch = DateTime::UNIX_EPOCH;
        let nobody = Vec::<Uuid>::new;
        let none = DUE.bind((0, 0, epoch, epoch, nobody(), nobody()));
        let due = self.statements.clone().within(WHOLE_SEARCH).row(none).await?;
        if let Some(due) = due {
            healthy.found(due.first_healthy);
            failing.found(due.first_failing);
        }
        Ok(())
    }

    /// Locks due queues, leases those that get a share of the capacity, and reads their deliveries. Returns
    /// also those that are not live or cannot be read.
    pub(super) async fn claim_due(
        &self,
        mut connection: &AsyncPgConnection,
        fence: Uuid,
        mut capacity: Capacity,
    ) -> QueryResult<(ClaimedQueues, Vec<QueueKey>)> {
        let mut due = self.lock_due(connection, &capacity).await?;
        let (mut leases, mut held, mut abandoned) = (Vec::new(), Vec::new(), Vec::new());
        let mut claimed = BTreeMap::new();
        let (mut of_healthy, mut of_failing) = (BTreeSet::new(), BTreeSet::new());
        for row in due.queues {
            // Those that get no share stay due.
            let (search, owners) = if row.failing {
                (&mut due.failing, &mut of_failing)
            } else {
                (&mut due.healthy, &mut of_healthy)
            };
            let Some(share) = capacity.share(&row.due()) else {
                search.end_at(row.wake_at);
                continue;
            };
            owners.insert(row.owner_id.into());
            let queue = key(row.seller_id, row.id);
            let lease = Lease { queue, fence };
            abandoned.extend(row.fence.map(|_| queue));
            held.push(row.fence);
            let is_readable = self.open(queue, due.at, &row.url, &row.secret).is_ok();
            leases.push(Refill {
                lease,
                running: Vec::new(),
                capacity: if is_readable { share.attempts } else { 0 },
                repeats: share.repeats,
            });
            claimed.insert(lease, (row, share.more));
        }
        if !abandoned.is_empty() {
            lose(connection, &abandoned).await?;
        }
        let mut queues = Vec::new();
        if !leases.is_empty() {
            for leased in self.lease(connection, &leases, held).await? {
                queues.extend(
                    claimed
                        .remove(&leased.lease)
                        .map(|(row, more)| SubscriptionQueue {
                            lease: leased.lease,
                            client_id: row.client_id.into(),
                            owner: row.owner_id.into(),
                            url: leased.url,
                            secrets: leased.secrets,
                            failing: row.failing,
                            deliveries: leased.deliveries,
                            more,
                        }),
                );
            }
        }
        connection.batch_execute("commit").await?;
        let examined = |search: &Searching, owners| Examined {
            owners,
            more: search.end.is_some(),
        };
        let claimed_queues = ClaimedQueues {
            queues,
            healthy: examined(&due.healthy, of_healthy),
            failing: (due.failing.most > 0).then(|| examined(&due.failing, of_failing)),
        };
        let (healthy, failing) = &self.searches;
        healthy.end(&due.healthy, due.at);
        failing.end(&due.failing, due.at);
        let others = claimed.into_keys().map(|lease| lease.queue);
        Ok((claimed_queues, others.collect()))
    }

    /// Leases queues, which have these fences now, and returns the live ones with their due deliveries. An
    /// unreadable delivery is skipped: returned as an error, it would block all deliveries read with it. So is
    /// an unreadable queue, which gets no delivery until its lease expires.
    pub(super) async fn lease(
        &self,
        mut connection: &AsyncPgConnection,
        queues: &[Refill],
        held: Vec<Option<Uuid>>,
    ) -> QueryResult<Vec<Refilled>> {
        let running = queues.iter().zip(1_i64..);
        let running = running.flat_map(|(queue, n)| queue.running.iter().map(move |id| (n, id.uuid())));
        let (numbers, running): (Vec<_>, Vec<_>) = running.unzip();
        let lease = LEASE.bind((
            column(queues, |queue| queue.lease.queue.seller.uuid()),
            column(queues, |queue| queue.lease.queue.subscription.uuid()),
            held,
            column(queues, |queue| queue.lease.fence),
            column(queues, |queue| i32::from(queue.capacity)),
            column(queues, |queue| i32::from(queue.repeats)),
            numbers,
            running,
        ));
        // Rows of one queue are adjacent.
        let mut leased = Vec::<Refilled>::new();
        for row in lease.get_results::<LeasedRow>(&mut connection).await? {
            let lease = Lease {
                queue: key(row.seller_id, row.subscription_id),
                fence: row.fence,
            };
            if leased.last().is_none_or(|queue| queue.lease != lease) {
                let opened = self.open(lease.queue, row.at, &row.url, &row.secret);
                let opened = opened.inspect_err(|error| self.unreadable.note(error));
                let Ok((url, secrets)) = opened else { continue };
                leased.push(Refilled {
                    lease,
                    url,
                    secrets,
                    deliveries: Vec::new(),
                });
            }
            if let Some(queue) = leased.last_mut() {
                let delivery = row.delivery.map(Due::try_from);
                queue.deliveries.extend(delivery.and_then(readable));
            }
        }
        Ok(leased)
    }

    /// Begins the transaction, and locks queues that are due.
    async fn lock_due(
        &self,
        connection: &AsyncPgConnection,
        capacity: &Capacity,
    ) -> QueryResult<LockedQueues> {
        let most = capacity.all.attempts.min(MOST_QUEUES);
        let most_failing = capacity.failing.attempts.min(most);
        // Without attempts for failing queues every owner counts as full, and no failing queue is searched.
        let full_of_failing = match most_failing {
            0 => Vec::new(),
            _ => full_owners(capacity, true),
        };
        let (healthy, failing) = &self.searches;
        let begins = |kind: &FreeAttempts| kind.passed_over.is_empty();
        let mut healthy = healthy.begin(begins(&capacity.all), most, full_owners(capacity, false));
        let mut failing = failing.begin(begins(&capacity.failing), most_failing, full_of_failing);
        let due = DUE.bind((
            i64::from(most),
            i64::from(most_failing),
            healthy.begin,
            failing.begin,
            healthy.full.clone(),
            failing.full.clone(),
        ));
        let start = async { (&mut { connection }).batch_execute(BEGIN_CLAIM).await };
        let (started, due) = join!(start, due.get_results::<DueRow>(&mut { connection }));
        started?;
        let due = due?;
        let first = due.as_slice().first().ok_or(NotFound)?;
        let at = first.at;
        (healthy.first, failing.first) = (first.first_healthy, first.first_failing);
        let queues: Vec<_> = due.into_iter().filter_map(|row| row.queue).collect();
        for (search, is_failing) in [(&mut healthy, false), (&mut failing, true)] {
            let mut found = queues.iter().filter(|row| row.failing == is_failing);
            let last = search.most.checked_sub(1);
            if let Some(last) = last.and_then(|before| found.nth(before.into())) {
                search.end_at(last.wake_at);
            }
        }
        Ok(LockedQueues {
            queues,
            at,
            healthy,
            failing,
        })
    }

    /// The URL of a queue, and its secrets at this time.
    fn open(
        &self,
        queue: QueueKey,
        at: DateTime<Utc>,
        url: &str,
        secret: &[u8],
    ) -> Result<(WebhookUrl, SigningSecrets), StoreError> {
        let QueueKey { seller, subscription } = queue;
        let url = super::url(subscription, url)?;
        let secrets = self.sealing.open_secrets(seller, subscription, secret)?;
        Ok((url, secrets.at(at)))
    }
}

/// When queues with an unreadable URL or secret were last logged. Each comes up again with every lease, and
/// with a wrong sealing key all of them do.
#[derive(Default)]
pub(super) struct Unreadable(Mutex<Option<Instant>>);

impl Unreadable {
    fn note(&self, error: &StoreError) {
        metrics::counter!("webhook_queues_unreadable_total").increment(1);
        if self.is_logged(Instant::now()) {
            tracing::error!(
                error = %error,
                "webhooks wait: their URL or secret cannot be read: compare `keys.sealing` with that of other processes"
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
