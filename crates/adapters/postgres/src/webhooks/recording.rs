//! Records the ends of attempts and releases delivery queues.

use std::collections::{BTreeSet, HashSet};

use chrono::{DateTime, Utc};
use diesel::sql_types::{
    Array, BigInt, Bool, Integer, Nullable, SmallInt, Text, Timestamptz, Uuid as SqlUuid,
};
use diesel::{QueryResult, QueryableByName};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use kernel::StoreError;
use uuid::Uuid;
use webhooks::{AttemptRecord, Outcome, Phase, Release};

use super::Queue;
use crate::sql::{column, microseconds};
use crate::statement::statements;

statements! {
    "recording.sql";
    RECORD: (
        Array<SqlUuid>, Array<SqlUuid>, Array<SqlUuid>,
        Array<SqlUuid>, Array<SqlUuid>, Array<SqlUuid>, Array<SmallInt>, Array<SmallInt>, Array<SmallInt>,
        Array<SmallInt>, Array<Bool>, Array<Nullable<BigInt>>, Array<Integer>, Array<Nullable<SmallInt>>,
        Array<Nullable<Text>>
    );
    RELEASE: (
        Array<SqlUuid>, Array<SqlUuid>, Array<SqlUuid>, Array<Nullable<Bool>>, Array<BigInt>
    ) -> Asleep;
    CONTENDED: (Array<SqlUuid>, Array<SqlUuid>) -> Queue;
    WAKE: (Array<SqlUuid>, Array<SqlUuid>, Array<Timestamptz>);
}

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

    /// Sends it: statements of their own, so that no lock is held between two of them. Returns the queues
    /// that were put to sleep.
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
    async fn record(&self, mut connection: &AsyncPgConnection) -> QueryResult<usize> {
        let (leases, ended) = (&self.leases, &self.records);
        let delay = |ended: &Attempt| match ended.record.next.phase {
            Phase::Waiting(delay) => Some(microseconds(delay)),
            _ => None,
        };
        let record = RECORD.bind((
            column(leases, |lease| lease.0),
            column(leases, |lease| lease.1),
            column(leases, |lease| lease.2),
            column(ended, |ended| ended.record.lease.queue.seller.uuid()),
            column(ended, |ended| ended.record.lease.queue.subscription.uuid()),
            column(ended, |ended| ended.record.delivery.uuid()),
            column(ended, |ended| i16::from(ended.record.from.attempt)),
            column(ended, |ended| i16::from(ended.record.from.lost)),
            column(ended, |ended| i16::from(ended.record.next.attempt)),
            column(ended, |ended| i16::from(ended.record.next.lost)),
            column(ended, |ended| ended.record.next.phase == Phase::Delivered),
            column(ended, delay),
            column(ended, |ended| ended.record.duration_ms),
            column(ended, |ended| ended.status),
            column(ended, |ended| ended.failure.as_deref()),
        ));
        record.execute(&mut connection).await
    }

    /// Releases queues, and returns those that are not due now.
    async fn release_queues(&self, mut connection: &AsyncPgConnection) -> QueryResult<Vec<Asleep>> {
        let releases = &self.releases;
        let release = RELEASE.bind((
            column(releases, |release| release.lease.queue.seller.uuid()),
            column(releases, |release| release.lease.queue.subscription.uuid()),
            column(releases, |release| release.lease.fence),
            column(releases, |release| release.failing),
            column(releases, |release| microseconds(release.pause)),
        ));
        release.get_results(&mut connection).await
    }
}

/// A queue that was put to sleep, and for which deliveries may have been queued while it was leased.
#[derive(QueryableByName)]
#[diesel(check_for_backend(diesel::pg::Pg))]
pub(super) struct Asleep {
    #[diesel(embed)]
    queue: Queue,
    /// The end of its pause.
    #[diesel(sql_type = Timestamptz)]
    resumes: DateTime<Utc>,
}

/// Wakes those queues for which deliveries were queued by transactions that saw them leased, and returns
/// those for which there may be more: such a transaction has not ended.
///
/// Each of them holds a lock on the queue until its end, which the first statement finds. The second one sees
/// what those that have ended have queued. All later transactions see the queue asleep, and wake it.
pub(super) async fn find_queued(
    mut queues: Vec<Asleep>,
    mut connection: &AsyncPgConnection,
) -> QueryResult<Vec<Asleep>> {
    let (sellers, ids) = (
        column(&queues, |asleep| asleep.queue.seller_id),
        column(&queues, |asleep| asleep.queue.id),
    );
    let contended = CONTENDED.bind((&sellers, &ids));
    let contended: Vec<Queue> = contended.get_results(&mut connection).await?;
    let contended: HashSet<_> = contended.into_iter().collect();
    let resumes = column(&queues, |asleep| asleep.resumes);
    let wake = WAKE.bind((sellers, ids, resumes));
    wake.execute(&mut connection).await?;
    queues.retain(|asleep| contended.contains(&asleep.queue));
    Ok(queues)
}
