//! Delivery queues, one per subscription: claimed, refilled, released and woken. Each call is a statement or a
//! transaction of its own over the pool.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use kernel::{SellerId, StoreError};
use parking_lot::Mutex;
use tokio::time::Instant;
use uuid::Uuid;
use webhooks::{
    ApplicationLoad, AttemptRecord, Capacity, Claimed, DeliveryId, Due, Lease, QueueKey, Refill, Refilled,
    Release, SubscriptionId, SubscriptionQueue, SubscriptionQueues,
};

use super::recording::{Asleep, Recording, find_queued};
use super::{queue_state, queues_with};
use crate::connection::pool::{Autocommit, Leased};
use crate::sealing::Sealing;
use crate::searched::Searched;
use crate::sql::{column, readable, row, sql};

/// The minimum interval between log lines about unreadable queues.
const LOG_EVERY: Duration = Duration::from_mins(1);

/// The instant from which on the deliveries of a subscription `s` are read: the stored one, and half a minute ago at most, since a
/// transaction may be as old as that, and clocks step back.
macro_rules! due_from {
    () => {
        "least(coalesce(s.none_due_before, '-infinity'), (select at from clock) - interval '30 seconds')"
    };
}
pub(super) use due_from;

/// When the first delivery that waits for a subscription `s` is due.
macro_rules! first_due {
    () => {
        concat!(
            "(select min(w.due_at) from (\
          (select due_at from deliveries d where d.seller_id = s.seller_id and d.subscription_id = s.id \
             and d.due_at is not null and d.attempt = 0 and d.due_at >= ",
            due_from!(),
            " order by due_at limit 1) union all \
          (select due_at from deliveries d where d.seller_id = s.seller_id and d.subscription_id = s.id \
             and d.due_at is not null and d.attempt > 0 and d.due_at >= ",
            due_from!(),
            " order by due_at limit 1)) w)"
        )
    };
}
pub(super) use first_due;

/// Up to `capacity` due deliveries of each queue `l`, except those `running`, ordered by `place`: three first attempts
/// for each repeated one, beginning with a first one, and at most `repeats` repeated ones. Each index is read only that
/// far, however much is waiting, and from `l.due_from` on. The constant limits are for the planner, which cannot see the others.
macro_rules! due_in_queue {
    () => {
        "(select u.* from (\
      (select f.*, 2 * row_number() over (order by f.due_at) as place from (select d.id, d.event, d.body, d.attempt, d.lost, d.due_at \
        from deliveries d where d.seller_id = l.seller_id and d.subscription_id = l.id and d.due_at is not null and d.attempt = 0 \
          and d.due_at >= l.due_from and d.due_at <= (select at from clock) and d.id <> all(l.running) order by d.due_at limit 128) f limit l.capacity) \
      union all \
      (select f.*, 6 * row_number() over (order by f.due_at) - 3 as place from (select d.id, d.event, d.body, d.attempt, d.lost, d.due_at \
        from deliveries d where d.seller_id = l.seller_id and d.subscription_id = l.id and d.due_at is not null and d.attempt > 0 \
          and d.due_at >= l.due_from and d.due_at <= (select at from clock) and d.id <> all(l.running) order by d.due_at limit 128) f limit l.repeats)\
    ) u order by u.place limit l.capacity)"
    };
}

row! {
    struct DueRow {
        id: Uuid,
        event: String,
        body: Vec<u8>,
        attempt: i16,
        lost: i16,
    }
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
            attempt: count("attempt", row.attempt)?,
            lost: count("lost", row.lost)?,
        })
    }
}

/// An unreadable delivery is skipped: returned as an error, it would block all deliveries read with it.
fn due(row: Option<DueRow>) -> Vec<Due> {
    readable(row.into_iter().map(Due::try_from))
}

row! {
    /// A queue with one or none of its deliveries.
    struct QueueRow {
        seller_id: Uuid,
        id: Uuid,
        client_id: Uuid,
        state: String,
        /// Some due queues were not examined, or one got no capacity. The same in all rows of a claim.
        more: bool,
        url: String,
        secret: Vec<u8>,
        failing: bool,
        due: Option<DueRow>,
    }
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
    /// Leases due queues, the longest waiting first, and reads their due deliveries.
    ///
    /// - Failing queues have an index of their own: however many wait, the others are found without passing over them.
    /// - As many queues are locked as there is capacity for attempts. Those that get no capacity stay due.
    /// - An application has a share of the capacity, and a smaller one within it for its failing queues, so that they
    ///   use up nothing reserved for its healthy ones.
    /// - Queues of an application that has used up its share are skipped. Each costs some microseconds, which bounds
    ///   how much an application with unresponsive receivers can delay others.
    /// - A queue without due deliveries is leased too: only its lease holder puts it to sleep.
    /// - A queue with an expired lease was abandoned by its worker. Deliveries that this worker had in hand and did not
    ///   report count one more loss: those given out were due 30 s before the lease's end, and those rescheduled by an
    ///   attempt were not.
    /// - A lock shows the newest version of a row, but deliveries are read as they were when the statement began. A queue that another
    ///   worker has leased and released in between, which changes `wake_at`, is left to the next claim: its deliveries may be sent already.
    /// - A locked row is found again by its place: its key leads past every version that an old snapshot keeps.
    /// - Queues that are not live are returned with their state, unchanged.
    /// - Each index is read from its first queue at the last claim on: see [`Searched`].
    ///
    /// The commit is asynchronous: if a crash loses the claim, its fence is invalid and the queues are due again.
    async fn claim(&self, fence: Uuid, capacity: Capacity) -> Result<Claimed, StoreError> {
        self.wake_asleep(Vec::new()).await;
        let (full, full_of_failing) = full_applications(&capacity);
        let (attempts, failing_attempts) =
            (i32::from(capacity.attempts), i32::from(capacity.failing_attempts));
        let under_way = &capacity.under_way;
        let (healthy, failing) = (self.searched.0.next(), self.searched.1.next());
        let claim = sql!((DateTime<Utc>, DateTime<Utc>, Option<QueueRow>):
            "with clock as materialized (select api_now() as at, set_config('synchronous_commit', 'off', true) as mode), \
             searched as materialized (select least(", healthy, ", at) - interval '1 second' as healthy, least(", failing,
            ", at) - interval '1 second' as failing from clock), \
             firsts as materialized (select \
               least((select wake_at from subscriptions where wake_at >= (select healthy from searched) and not failing \
                 order by wake_at limit 1), at) as healthy, \
               least((select wake_at from subscriptions where wake_at >= (select failing from searched) and failing \
                 order by wake_at limit 1), at) as failing from clock), \
             healthy as materialized (select * from (select seller_id, id, client_id, connection_generation, active, leased, failing, \
                 wake_at, in_hand, none_due_before, url, secret, ctid as place from subscriptions where wake_at >= (select healthy from searched) \
                 and wake_at <= (select at from clock) and not failing \
                 and client_id <> all(", full, ") order by wake_at limit 128 for no key update skip locked) s limit ",
            attempts,
            "), failing_queues as materialized (select * from (select seller_id, id, client_id, connection_generation, active, leased, failing, \
                 wake_at, in_hand, none_due_before, url, secret, ctid as place from subscriptions where wake_at >= (select failing from searched) \
                 and wake_at <= (select at from clock) and failing \
                 and client_id <> all(", full_of_failing,
            ") order by wake_at limit 128 for no key update skip locked) s limit least(", failing_attempts, ", ",
            attempts,
            ")), queues as materialized (select s.*, greatest(s.capacity - 1, 1) as repeats from (select s.*, '{}'::uuid[] as running, case when s.failing then ",
            i32::from(capacity.per_failing_queue), " else ", i32::from(capacity.per_queue),
            concat!(" end as capacity, ", due_from!(), " as due_from, ", queue_state!(), " as state from (select * from healthy union all select * from failing_queues) s) s \
               where exists (select from subscriptions o where o.ctid = s.place and o.wake_at = s.wake_at)), \
             due as materialized (select l.failing, l.wake_at, l.client_id, l.seller_id, l.id as queue, w.* \
               from queues l cross join lateral ", due_in_queue!(), " w where l.state = 'live'), \
             within_failing_share as materialized (select d.*, coalesce(u.number, 0) as under_way from (\
                 select *, row_number() over (partition by client_id, failing order by wake_at, seller_id, queue, place) as turn from due) d \
               left join unnest("), column(under_way, |of| of.client_id.uuid()), ", ",
            column(under_way, |of| i32::from(of.attempts)), ", ", column(under_way, |of| i32::from(of.failing)),
            ") u (client_id, number, failing) on u.client_id = d.client_id \
               where not d.failing or d.turn + coalesce(u.failing, 0) <= ", i32::from(capacity.failing_per_application),
            "), within_share as materialized (select d.* from (select failing, wake_at, client_id, seller_id, queue, id, event, body, attempt, lost, place, \
                   under_way, row_number() over (partition by client_id order by wake_at, seller_id, queue, place) as turn from within_failing_share) d \
               where d.turn + d.under_way <= ", i32::from(capacity.per_application),
            "), within_capacity as materialized (select *, row_number() over (order by wake_at, seller_id, queue, place) as n from (\
                 select *, row_number() over (partition by failing order by wake_at, seller_id, queue, place) as nth from within_share) d \
               where not failing or nth <= ", failing_attempts,
            "), chosen as materialized (select * from within_capacity where n <= ", attempts,
            "), claimed as materialized (select l.*, g.ids from queues l \
               left join (select distinct seller_id, queue from due) d on d.seller_id = l.seller_id and d.queue = l.id \
               left join (select seller_id, queue, array_agg(id) as ids from chosen group by seller_id, queue) g \
                 on g.seller_id = l.seller_id and g.queue = l.id \
               where l.state = 'live' and (d.queue is null or g.ids is not null)), \
             leased as (update subscriptions s set leased = true, fence = ", fence,
            ", wake_at = clock.at + interval '30 seconds', in_hand = coalesce(t.ids, '{}') from claimed t, clock \
               where s.ctid = t.place), \
             lost as (update deliveries d set lost = d.lost + 1 from claimed t where t.leased and d.seller_id = t.seller_id \
                 and d.subscription_id = t.id and d.id = any(t.in_hand) and d.due_at <= t.wake_at - interval '30 seconds' \
               returning d.seller_id, d.subscription_id, d.id, d.lost) \
             select f.healthy, f.failing, l.seller_id, l.id, l.client_id, l.state, (select count(*) from healthy) >= least(128, ", attempts,
            ") or (select count(*) from failing_queues) >= greatest(1, least(128, ", failing_attempts, ", ", attempts,
            ")) or exists (select from due d where not exists (select from chosen g where g.seller_id = d.seller_id and g.queue = d.queue)), l.url, l.secret, l.failing, g.id, g.event, g.body, g.attempt, coalesce(x.lost, g.lost) \
             from firsts f left join (queues l left join claimed t on t.seller_id = l.seller_id and t.id = l.id \
               left join chosen g on g.seller_id = l.seller_id and g.queue = l.id \
               left join lost x on x.seller_id = l.seller_id and x.subscription_id = l.id and x.id = g.id) \
               on t.id is not null or l.state <> 'live' order by l.wake_at, l.seller_id, l.id, g.place");
        let rows = self.statements.rows(claim).await?;
        if let Some((healthy, failing, _)) = rows.first() {
            self.searched.0.found(*healthy);
            self.searched.1.found(*failing);
        }
        let rows = rows.into_iter().filter_map(|(_, _, row)| row).collect::<Vec<_>>();
        let more = rows.iter().any(|row| row.more);
        let (live, others): (Vec<_>, Vec<_>) = rows.into_iter().partition(|row| row.state == "live");
        let has_suspended = !others.is_empty() && self.suspend(&others).await;
        Ok(Claimed {
            queues: self.queues(fence, live),
            more: more || has_suspended,
        })
    }

    /// Extends leases to the full duration and reads further due deliveries. Afterwards the worker has in hand the
    /// deliveries that it reported and those that are returned. As for a claim, the commit is asynchronous.
    async fn refill(&self, queues: &[Refill]) -> Result<Vec<Refilled>, StoreError> {
        let running: Vec<_> = queues
            .iter()
            .zip(1_i64..)
            .flat_map(|(queue, n)| queue.running.iter().map(move |delivery| (n, delivery.uuid())))
            .collect();
        let extend = sql!((Uuid, Uuid, Uuid, Option<DueRow>):
            "with clock as materialized (select api_now() as at, set_config('synchronous_commit', 'off', true) as mode), \
             valid as materialized (select s.seller_id, s.id, s.fence, s.client_id, s.connection_generation, s.active, k.capacity, k.repeats, k.n, \
                 s.none_due_before from unnest(", column(queues, |queue| queue.lease.queue.seller.uuid()), ", ",
            column(queues, |queue| queue.lease.queue.subscription.uuid()), ", ", column(queues, |queue| queue.lease.fence),
            ", ", column(queues, |queue| i32::from(queue.capacity)), ", ", column(queues, |queue| i32::from(queue.repeats)),
            concat!(") with ordinality k (seller_id, id, fence, capacity, repeats, n) \
               join subscriptions s on s.seller_id = k.seller_id and s.id = k.id where s.leased and s.fence = k.fence \
               order by s.seller_id, s.id for no key update of s), \
             queues as materialized (select s.seller_id, s.id, s.fence, s.capacity, s.repeats, ",
            due_from!(), " as due_from, ", first_due!(), " as first_due, array(select r.id from unnest("),
            column(&running, |(n, _)| *n), ", ", column(&running, |(_, delivery)| *delivery),
            concat!(") r (n, id) where r.n = s.n) as running from valid s where ", queue_state!(), " = 'live'), \
             chosen as materialized (select l.seller_id, l.id as queue, w.* from queues l cross join lateral ", due_in_queue!(), " w), \
             leased as (update subscriptions s set wake_at = clock.at + interval '30 seconds', \
                 none_due_before = least(l.first_due, clock.at - interval '30 seconds'), in_hand = l.running || array(select g.id from chosen g where g.seller_id = l.seller_id and g.queue = l.id) \
               from queues l, clock where s.seller_id = l.seller_id and s.id = l.id) \
             select l.seller_id, l.id, l.fence, g.id, g.event, g.body, g.attempt, g.lost \
             from queues l left join chosen g on g.seller_id = l.seller_id and g.queue = l.id order by l.seller_id, l.id, g.place"));
        // Rows of one queue are adjacent.
        let mut filled = Vec::<Refilled>::new();
        for (seller, subscription, fence, row) in self.statements.rows(extend).await? {
            let lease = lease(seller, subscription, fence);
            if filled.last().is_none_or(|queue| queue.lease != lease) {
                let deliveries = Vec::new();
                filled.push(Refilled { lease, deliveries });
            }
            if let Some(queue) = filled.last_mut() {
                queue.deliveries.extend(due(row));
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

    /// Wakes queues that are neither leased nor due although one of their deliveries is. A queue that is due within a
    /// few seconds is not stuck: it is paused because its host had no capacity. Each queue is looked up by its key, however many there are.
    async fn reconcile(&self) -> Result<usize, StoreError> {
        self.statements.execute(sql!(():
            concat!("with recursive clock as materialized (select api_now() as at), asked as materialized (select null::uuid as seller), ",
            queues_with!("first", "due_at", "due_at is not null and attempt = 0"), ", ",
            queues_with!("repeated", "due_at", "due_at is not null and attempt > 0"),
            ", due as materialized (select seller_id, subscription_id from first, clock where value <= at \
               union select seller_id, subscription_id from repeated, clock where value <= at), \
             forgotten as materialized (select s.place from due d cross join lateral (select s.ctid as place from subscriptions s cross join clock \
               where s.seller_id = d.seller_id and s.id = d.subscription_id and s.active and not s.leased \
                 and (s.wake_at is null or s.wake_at > clock.at + interval '5 seconds') and ", queue_state!(), " = 'live' \
               limit 1 for no key update of s skip locked) s) \
             update subscriptions s set wake_at = clock.at, none_due_before = null from forgotten f, clock where s.ctid = f.place"))).await
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

    /// Puts queues to sleep: those of suspended applications until reinstatement wakes them, ended ones for ever. The follow-up of their end
    /// stops their deliveries, which may be any number. Returns whether there were any. A failure here is retried by the next claim, since
    /// the queues stay due.
    ///
    /// A suspended queue is put to sleep under a lock on its application: one that is being reinstated is skipped, and one already reinstated
    /// is no longer suspended. Other awake, unleased queues of the same applications are put to sleep too, so that few claims meet them,
    /// however many there are. Locked rows are skipped and examined the next time.
    async fn suspend(&self, rows: &[QueueRow]) -> bool {
        let suspend = sql!(():
            "with clock as materialized (select api_now() as at), \
             locked as materialized (select s.seller_id, s.id, s.client_id, s.active, s.connection_generation \
               from unnest(", column(rows, |row| row.seller_id), ", ", column(rows, |row| row.id),
            concat!(") k (seller_id, id) join subscriptions s on s.seller_id = k.seller_id and s.id = k.id \
               where s.wake_at <= (select at from clock) order by s.seller_id, s.id for no key update of s skip locked), \
             queues as materialized (select s.*, ", queue_state!(), " as state from locked s), \
             applications_asleep as materialized (select a.client_id from applications a where a.status = 'suspended' \
               and a.client_id = any(array(select client_id from queues where state = 'suspended')) for share skip locked), \
             sleeping as materialized (select l.seller_id, l.id from queues l left join applications_asleep r on r.client_id = l.client_id \
                 where l.state = 'ended' or (l.state = 'suspended' and r.client_id is not null) \
               union select o.seller_id, o.id from (select s.seller_id, s.id from applications_asleep r join subscriptions s on s.client_id = r.client_id \
                 where s.active and not s.leased and s.wake_at is not null limit 2000 for no key update of s skip locked) o) \
             update subscriptions s set wake_at = null, leased = false, fence = null, in_hand = '{}' from sleeping h \
               where s.seller_id = h.seller_id and s.id = h.id"));
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
            let lease = lease(row.seller_id, row.id, fence);
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
