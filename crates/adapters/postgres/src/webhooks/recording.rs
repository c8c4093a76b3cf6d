//! Records the ends of attempts and releases delivery queues.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use diesel::result::Error::SerializationError;
use diesel::sql_types::{
    Array, BigInt, Bool, Integer, Nullable, SmallInt, Text, Timestamptz, Uuid as SqlUuid,
};
use diesel::{QueryResult, QueryableByName};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
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
    ) -> Queue;
    RELEASE: (
        Array<SqlUuid>, Array<SqlUuid>, Array<SqlUuid>, Array<Nullable<Bool>>, Array<BigInt>
    ) -> NotDue;
    CONTENDED: (Array<SqlUuid>, Array<SqlUuid>, Array<Timestamptz>) -> Asleep;
    WAKE: (Array<SqlUuid>, Array<SqlUuid>, Array<Timestamptz>);
}

/// Records the ends of attempts, and then releases queues: statements of their own, so that no lock is held
/// between two of them. Returns the queues that were put to sleep, and those that other transactions have locked.
pub(super) async fn send(
    records: &[AttemptRecord],
    releases: &[Release],
    connection: &AsyncPgConnection,
) -> QueryResult<(Vec<Asleep>, Vec<Queue>)> {
    let mut locked = Vec::new();
    if !records.is_empty() {
        locked = record(records, connection).await?;
    }
    let is_free = |release: &&Release| locked.iter().all(|queue| queue.key() != release.lease.queue);
    let releases: Vec<_> = releases.iter().filter(is_free).collect();
    let mut asleep = Vec::new();
    if !releases.is_empty() {
        for not_due in release(&releases, connection).await? {
            match not_due.resumes {
                Some(resumes) => asleep.push(Asleep {
                    queue: not_due.queue,
                    resumes,
                }),
                None => locked.push(not_due.queue),
            }
        }
    }
    Ok((asleep, locked))
}

/// Records the ends of attempts made under leases that are still valid. Returns the queues that are locked.
async fn record(records: &[AttemptRecord], mut connection: &AsyncPgConnection) -> QueryResult<Vec<Queue>> {
    let leases: BTreeSet<_> = records.iter().map(|record| record.lease).collect();
    let leases: Vec<_> = leases.into_iter().collect();
    let outcomes = records.iter().map(|record| match &record.outcome {
        Outcome::Answered(status) => i16::try_from(*status)
            .map(|status| (Some(status), None))
            .map_err(|invalid| SerializationError(invalid.into())),
        Outcome::Failed(failure) => Ok((None, Some(failure.to_text()))),
    });
    let outcomes = outcomes.collect::<QueryResult<Vec<_>>>()?;
    let delay = |record: &AttemptRecord| match record.phase {
        Phase::Waiting(delay) => Some(microseconds(delay)),
        _ => None,
    };
    let record = RECORD.bind((
        column(&leases, |lease| lease.queue.seller.uuid()),
        column(&leases, |lease| lease.queue.subscription.uuid()),
        column(&leases, |lease| lease.fence),
        column(records, |record| record.lease.queue.seller.uuid()),
        column(records, |record| record.lease.queue.subscription.uuid()),
        column(records, |record| record.delivery.uuid()),
        column(records, |record| i16::from(record.from.attempt)),
        column(records, |record| i16::from(record.from.lost)),
        column(records, |record| i16::from(record.next.attempt)),
        column(records, |record| i16::from(record.next.lost)),
        column(records, |record| record.phase == Phase::Delivered),
        column(records, delay),
        column(records, |record| record.duration_ms),
        column(&outcomes, |(status, _)| *status),
        column(&outcomes, |(_, failure)| failure.as_deref()),
    ));
    record.get_results(&mut connection).await
}

/// Releases queues.
async fn release(releases: &[&Release], mut connection: &AsyncPgConnection) -> QueryResult<Vec<NotDue>> {
    let release = RELEASE.bind((
        column(releases, |release| release.lease.queue.seller.uuid()),
        column(releases, |release| release.lease.queue.subscription.uuid()),
        column(releases, |release| release.lease.fence),
        column(releases, |release| release.failing),
        column(releases, |release| microseconds(release.pause)),
    ));
    release.get_results(&mut connection).await
}

/// A queue that a release has put to sleep, or has left as it was, since another transaction has locked it.
#[derive(QueryableByName)]
struct NotDue {
    #[diesel(embed)]
    queue: Queue,
    /// The end of its pause, or none if it is locked.
    #[diesel(sql_type = Nullable<Timestamptz>)]
    resumes: Option<DateTime<Utc>>,
}

/// A queue that was put to sleep, and for which deliveries may have been queued while it was leased.
#[derive(QueryableByName)]
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
    queues: &[Asleep],
    mut connection: &AsyncPgConnection,
) -> QueryResult<Vec<Asleep>> {
    let columns = |queues: &[&Asleep]| {
        (
            column(queues, |asleep| asleep.queue.seller_id),
            column(queues, |asleep| asleep.queue.id),
            column(queues, |asleep| asleep.resumes),
        )
    };
    let all: Vec<_> = queues.iter().collect();
    let contended = CONTENDED.bind(columns(&all));
    let contended: Vec<Asleep> = contended.get_results(&mut connection).await?;
    let locked: BTreeSet<_> = contended.iter().map(|asleep| asleep.queue.key()).collect();
    let free = all
        .into_iter()
        .filter(|asleep| !locked.contains(&asleep.queue.key()));
    let free: Vec<_> = free.collect();
    if !free.is_empty() {
        let wake = WAKE.bind(columns(&free));
        wake.execute(&mut connection).await?;
    }
    Ok(contended)
}
