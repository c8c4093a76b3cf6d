//! Records the ends of attempts and releases delivery queues.

use std::collections::{BTreeSet, HashSet};

use chrono::{DateTime, Utc};
use diesel::QueryResult;
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use kernel::StoreError;
use uuid::Uuid;
use webhooks::{AttemptRecord, LOSSES_FORGIVEN, NextStep, Outcome, Release};

use super::queues::{due_from, first_due};
use crate::sql::{column, microseconds, sql};

/// Everything recorded in one call.
pub(super) struct Recording {
    records: Vec<Attempt>,
    releases: Vec<Release>,
    /// Queues and fences of the records, each once, in lock order.
    leases: Vec<(Uuid, Uuid, Uuid)>,
}

/// An attempt that has ended.
struct Attempt {
    record: AttemptRecord,
    status: Option<i16>,
    failure: Option<String>,
}

impl Recording {
    pub(super) fn new(records: &[AttemptRecord], releases: &[Release]) -> Result<Self, StoreError> {
        let leases = records.iter().map(|record| record.lease);
        let leases: BTreeSet<_> = leases
            .map(|lease| {
                (
                    lease.queue.seller.uuid(),
                    lease.queue.subscription.uuid(),
                    lease.fence,
                )
            })
            .collect();
        let ended = records.iter().map(|record| {
            let (status, failure) = match &record.outcome {
                Outcome::Answered(status) => (Some(i16::try_from(*status)), None),
                Outcome::Failed(failure) => (None, Some(failure.to_text())),
            };
            Ok(Attempt {
                record: record.clone(),
                status: status.transpose().map_err(StoreError::unexpected)?,
                failure,
            })
        });
        Ok(Self {
            records: ended.collect::<Result<_, StoreError>>()?,
            releases: releases.to_vec(),
            leases: leases.into_iter().collect(),
        })
    }

    /// Sends it: statements of their own, so that no lock is held between two of them. Returns the queues that were put to sleep.
    pub(super) async fn send(self, connection: &AsyncPgConnection) -> QueryResult<Vec<Asleep>> {
        if !self.records.is_empty() {
            self.record(connection).await?;
        }
        if self.releases.is_empty() {
            return Ok(Vec::new());
        }
        self.release_queues(connection).await
    }

    /// Records the ends of attempts made under leases that are still valid.
    ///
    /// Ended attempts are joined with their leases before the delivery row is looked up, so that its whole key comes from one side.
    /// Otherwise the planner treats sellers and subscriptions as independent and may read all deliveries of a queue.
    ///
    /// An attempt whose delivery was stopped meanwhile is recorded like any other, and has no further effect. All queues are locked in the
    /// same order first.
    async fn record(&self, mut connection: &AsyncPgConnection) -> QueryResult<usize> {
        let (leases, ended) = (&self.leases, &self.records);
        let delay = |ended: &Attempt| match ended.record.next {
            NextStep::Retry(delay) => Some(microseconds(delay)),
            NextStep::Delivered | NextStep::Exhausted => None,
        };
        sql!(():
            "with clock as materialized (select api_now() as at), \
             valid as materialized (select s.seller_id, s.id from unnest(", column(leases, |lease| lease.0), ", ",
            column(leases, |lease| lease.1), ", ", column(leases, |lease| lease.2),
            ") k (seller_id, id, fence) join subscriptions s on s.seller_id = k.seller_id and s.id = k.id \
               where s.leased and s.fence = k.fence order by s.seller_id, s.id for no key update of s), \
             ended as materialized (select c.* from unnest(",
            column(ended, |ended| ended.record.lease.queue.seller.uuid()), ", ",
            column(ended, |ended| ended.record.lease.queue.subscription.uuid()), ", ",
            column(ended, |ended| ended.record.delivery.uuid()), ", ",
            column(ended, |ended| i16::from(ended.record.attempt)), ", ",
            column(ended, |ended| ended.record.next == NextStep::Delivered), ", ", column(ended, delay), ", ",
            column(ended, |ended| ended.record.duration_ms), ", ", column(ended, |ended| ended.status), ", ",
            column(ended, |ended| ended.failure.as_deref()),
            ") c (seller_id, queue, id, attempt, delivered, delay, duration, status, failure) \
                 join valid h on h.seller_id = c.seller_id and h.id = c.queue) \
             update deliveries d set attempt = d.attempt + 1, lost = least(d.lost, ",
            i16::from(LOSSES_FORGIVEN),
            "), due_at = case when d.due_at is not null then clock.at + c.delay * interval '1 microsecond' end, delivered_at = case when c.delivered then clock.at end, \
                 duration_ms = c.duration, response_status = c.status, failure = c.failure \
               from clock, ended c \
               where d.seller_id = c.seller_id and d.subscription_id = c.queue and d.id = c.id and d.attempt = c.attempt \
                 and d.delivered_at is null")
        .execute(&mut connection)
        .await
    }

    /// Releases queues: asleep if nothing waits, due with the next delivery, and at the back if one is due now; never
    /// before its pause is over. Returns those that are not due now.
    ///
    /// From then on no delivery that waits is due before the first one found, or before half a minute ago, since a transaction that is under way
    /// may still queue one that is due since it began.
    ///
    /// A transaction that queues deliveries meanwhile leaves a leased queue to its lease holder to wake. This statement does not see those
    /// deliveries; [`find_queued`] finds them afterwards. The commit is asynchronous: a release that is lost ends with its lease.
    async fn release_queues(&self, mut connection: &AsyncPgConnection) -> QueryResult<Vec<Asleep>> {
        let releases = &self.releases;
        let asleep = sql!((Uuid, Uuid, DateTime<Utc>):
            "with clock as materialized (select api_now() as at, set_config('synchronous_commit', 'off', true) as mode), \
             leases as materialized (select s.seller_id, s.id, s.fence, s.none_due_before, k.failing, \
                 clock.at + k.pause * interval '1 microsecond' as resumes from clock cross join unnest(",
            column(releases, |release| release.lease.queue.seller.uuid()), ", ",
            column(releases, |release| release.lease.queue.subscription.uuid()), ", ",
            column(releases, |release| release.lease.fence), ", ", column(releases, |release| release.failing), ", ",
            column(releases, |release| microseconds(release.pause)),
            concat!(") k (seller_id, id, fence, failing, pause) join subscriptions s on s.seller_id = k.seller_id and s.id = k.id \
               where s.leased and s.fence = k.fence order by s.seller_id, s.id for no key update of s), \
             released as (update subscriptions s set leased = false, fence = null, in_hand = '{}', failing = coalesce(n.failing, s.failing), \
                 none_due_before = least(n.first_due, clock.at - interval '30 seconds'), \
                 wake_at = case when n.first_due is not null then greatest(n.first_due, n.resumes) end \
               from clock, (select s.*, ", first_due!(), " as first_due from leases s) n \
               where s.seller_id = n.seller_id and s.id = n.id and s.leased and s.fence = n.fence \
               returning s.seller_id, s.id, s.wake_at, n.resumes) \
             select seller_id, id, resumes from released, clock where wake_at is null or wake_at > clock.at"))
        .get_results::<(Uuid, Uuid, DateTime<Utc>)>(&mut connection)
        .await?;
        let asleep = asleep.into_iter().map(|(seller, id, resumes)| Asleep {
            queue: (seller, id),
            resumes,
        });
        Ok(asleep.collect())
    }
}

/// A queue that was put to sleep, and for which deliveries may have been queued while it was leased.
pub(super) struct Asleep {
    queue: (Uuid, Uuid),
    /// The end of its pause.
    resumes: DateTime<Utc>,
}

/// Wakes those queues for which deliveries were queued by transactions that saw them leased, and returns those for which there may be more:
/// such a transaction has not ended.
///
/// Each of them holds a lock on the queue until its end, which the first statement finds without waiting, and without holding one itself when
/// it has ended. The commits are asynchronous, so that a transaction that queues deliveries waits for no disk. The second one sees what they have queued. All later transactions see the queue asleep, and wake it.
pub(super) async fn find_queued(
    mut queues: Vec<Asleep>,
    mut connection: &AsyncPgConnection,
) -> QueryResult<Vec<Asleep>> {
    let (sellers, ids) = (
        column(&queues, |asleep| asleep.queue.0),
        column(&queues, |asleep| asleep.queue.1),
    );
    let contended = sql!((Uuid, Uuid):
        "with setting as materialized (select set_config('synchronous_commit', 'off', true) as mode), \
         free as materialized (select s.seller_id, s.id from setting cross join unnest(", sellers.clone(), ", ", ids.clone(),
        ") k (seller_id, id) join subscriptions s on s.seller_id = k.seller_id and s.id = k.id for update of s skip locked) \
         select s.seller_id, s.id from unnest(", sellers.clone(), ", ", ids.clone(),
        ") k (seller_id, id) join subscriptions s on s.seller_id = k.seller_id and s.id = k.id \
         where not s.leased and not exists (select from free f where f.seller_id = s.seller_id and f.id = s.id)");
    let contended = contended.get_results::<(Uuid, Uuid)>(&mut connection).await?;
    let contended = contended.into_iter().collect::<HashSet<_>>();
    sql!(():
        concat!("with clock as materialized (select api_now() as at, set_config('synchronous_commit', 'off', true) as mode), \
         found as materialized (select s.seller_id, s.id, greatest(s.first_due, s.resumes, s.now) as due_at from (\
             select s.seller_id, s.id, k.resumes, clock.at as now, ", first_due!(), " as first_due from clock cross join unnest("),
        sellers, ", ", ids, ", ", column(&queues, |asleep| asleep.resumes),
        ") k (seller_id, id, resumes) join subscriptions s on s.seller_id = k.seller_id and s.id = k.id where not s.leased) s \
           where s.first_due is not null), \
         queued as materialized (select s.seller_id, s.id, f.due_at from found f join subscriptions s on s.seller_id = f.seller_id and s.id = f.id \
           where not s.leased and (s.wake_at is null or s.wake_at > f.due_at) order by s.seller_id, s.id for no key update of s) \
         update subscriptions s set wake_at = q.due_at from queued q \
         where s.seller_id = q.seller_id and s.id = q.id and not s.leased \
           and (s.wake_at is null or s.wake_at > q.due_at)")
    .execute(&mut connection)
    .await?;
    queues.retain(|asleep| contended.contains(&asleep.queue));
    Ok(queues)
}
