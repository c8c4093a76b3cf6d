//! Records the ends of attempts and releases delivery queues.

use std::collections::BTreeSet;

use diesel::QueryResult;
use diesel_async::{AsyncPgConnection, RunQueryDsl, SimpleAsyncConnection};
use futures_util::join;
use kernel::StoreError;
use uuid::Uuid;
use webhooks::{AttemptRecord, LOSSES_FORGIVEN, NextStep, Outcome, Release};

use super::queues::{due_from, first_due};
use crate::{
    sql::{column, microseconds, sql},
    unit_of_work::BEGIN,
};

/// Everything recorded in one call.
pub(super) struct Recording {
    records: Vec<Attempt>,
    releases: Vec<Release>,
    /// Queues and fences of both, each once, in lock order.
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
        let leases = leases.chain(releases.iter().map(|release| release.lease));
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

    /// Sends it: as one autocommitted statement if no queue is released, else as a transaction.
    pub(super) async fn send(self, mut connection: &AsyncPgConnection) -> QueryResult<()> {
        if self.releases.is_empty() {
            self.record(connection).await?;
            return Ok(());
        }
        let sent = self.send_in_transaction(connection).await;
        if sent.is_err() {
            connection.batch_execute("rollback").await?;
        }
        sent
    }

    async fn send_in_transaction(&self, connection: &AsyncPgConnection) -> QueryResult<()> {
        let (mut begin, mut commit) = (connection, connection);
        let (started, uncontended) = join!(begin.batch_execute(BEGIN), self.record(connection));
        started?;
        self.release_queues(&uncontended?, connection).await?;
        commit.batch_execute("commit").await
    }

    /// Records the ends of attempts made under leases that are still valid. Returns which of the queues to release have no transaction
    /// queueing deliveries for them; their rows are locked against that until the transaction ends.
    ///
    /// Ended attempts are joined with their leases before the delivery row is looked up, so that its whole key comes from one side.
    /// Otherwise the planner treats sellers and subscriptions as independent and may read all deliveries of a queue.
    ///
    /// An attempt whose delivery was stopped meanwhile is recorded like any other, and has no further effect.
    ///
    /// All queues are locked in the same order first. The stronger lock skips locked rows: an order transaction that hangs does not delay
    /// other sellers' deliveries.
    async fn record(&self, mut connection: &AsyncPgConnection) -> QueryResult<Vec<(Uuid, Uuid)>> {
        let (leases, ended, releases) = (&self.leases, &self.records, &self.releases);
        let delay = |ended: &Attempt| match ended.record.next {
            NextStep::Retry(delay) => Some(microseconds(delay)),
            NextStep::Delivered | NextStep::Exhausted => None,
        };
        sql!((Uuid, Uuid):
            "with clock as materialized (select api_now() as at), \
             valid as materialized (select s.seller_id, s.id, s.ctid as place from unnest(", column(leases, |lease| lease.0), ", ",
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
                 join valid h on h.seller_id = c.seller_id and h.id = c.queue), \
             recorded as (update deliveries d set attempt = d.attempt + 1, lost = least(d.lost, ",
            i16::from(LOSSES_FORGIVEN),
            "), due_at = case when d.due_at is not null then clock.at + c.delay * interval '1 microsecond' end, delivered_at = case when c.delivered then clock.at end, \
                 duration_ms = c.duration, response_status = c.status, failure = c.failure \
               from clock, ended c \
               where d.seller_id = c.seller_id and d.subscription_id = c.queue and d.id = c.id and d.attempt = c.attempt \
                 and d.delivered_at is null) \
             select s.seller_id, s.id from unnest(", column(releases, |release| release.lease.queue.seller.uuid()), ", ",
            column(releases, |release| release.lease.queue.subscription.uuid()),
            ") r (seller_id, id) join valid h on h.seller_id = r.seller_id and h.id = r.id \
               join subscriptions s on s.ctid = h.place for update of s skip locked")
        .get_results(&mut connection)
        .await
    }

    /// Releases queues: asleep if nothing waits, due with the next delivery, and at the back if one is due now; never
    /// before its pause is over. A queue with deliveries being queued stays awake and is examined again after a moment,
    /// since those transactions leave the waking of a leased queue to its lease holder.
    ///
    /// From then on no delivery that waits is due before the first one found, or before half a minute ago, since a transaction that is under way
    /// may still queue one that is due since it began.
    ///
    /// A locked row is found again by its place: its key leads past every version that an old snapshot keeps.
    ///
    /// It must see everything committed before the rows were locked, so it is a separate statement.
    async fn release_queues(
        &self,
        uncontended: &[(Uuid, Uuid)],
        mut connection: &AsyncPgConnection,
    ) -> QueryResult<usize> {
        let releases = &self.releases;
        let queue = |release: &Release| {
            (
                release.lease.queue.seller.uuid(),
                release.lease.queue.subscription.uuid(),
            )
        };
        sql!(():
            concat!("with clock as materialized (select api_now() as at) \
             update subscriptions s set leased = false, fence = null, in_hand = '{}', failing = coalesce(n.failing, s.failing), \
               none_due_before = least(n.first_due, clock.at - interval '30 seconds'), \
               wake_at = case when n.uncontended then n.due_at \
                 else least(n.due_at, clock.at + interval '20 milliseconds') end \
             from clock, (select q.*, case when q.first_due is not null \
                 then greatest(q.first_due, c.at + q.rest * interval '1 microsecond') end as due_at \
               from clock c, (select r.*, ", first_due!(), " as first_due, s.ctid as place from unnest("),
            column(releases, |release| queue(release).0), ", ",
            column(releases, |release| queue(release).1), ", ", column(releases, |release| release.lease.fence), ", ",
            column(releases, |release| release.failing), ", ", column(releases, |release| microseconds(release.pause)),
            ", ", column(releases, |release| uncontended.contains(&queue(release))),
            ") r (seller_id, id, fence, failing, rest, uncontended) \
                 join subscriptions s on s.seller_id = r.seller_id and s.id = r.id) q) n \
             where s.ctid = n.place and s.leased and s.fence = n.fence")
        .execute(&mut connection)
        .await
    }
}
