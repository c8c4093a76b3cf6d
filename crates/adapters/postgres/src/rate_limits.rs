//! Counts calls and actions in windows of one clock minute, or one clock hour.

use std::collections::BTreeMap;

use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use diesel::sql_types::{Array, BigInt, Bool, SmallInt, Text, Timestamptz, Uuid as SqlUuid};
use diesel::{QueryResult, QueryableByName};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use kernel::StoreError;
use oauth::{Count, Limiter, RateCounter, Subject};
use uuid::Uuid;

use crate::batch::{BatchQuery, Batcher};
use crate::schema::rate_windows;
use crate::statement::statements;
use crate::unit_of_work::Tx;

statements! {
    "rate_limits.sql";
    COUNT_CALLS: (Array<SmallInt>, Array<SqlUuid>, Array<BigInt>, Text, Bool) -> Counted;
}

/// The length of a window of calls.
pub(crate) const WINDOW: TimeDelta = TimeDelta::minutes(1);

/// The subject's last place in a window.
#[derive(QueryableByName)]
#[diesel(table_name = rate_windows)]
struct Counted {
    kind: i16,
    subject: Uuid,
    used: i64,
    window_start: DateTime<Utc>,
    #[diesel(sql_type = Timestamptz)]
    counted_at: DateTime<Utc>,
}

impl Counted {
    fn count(&self, window: TimeDelta) -> Result<Count, StoreError> {
        let place = u64::try_from(self.used).map_err(StoreError::unexpected)?;
        Ok(Count {
            place,
            resets_at: self.window_start + window,
            counted_at: self.counted_at,
        })
    }
}

/// Counts one action in the action's transaction, so that both are stored or neither.
pub(crate) async fn count_in(tx: &Tx, limiter: Limiter, subject: Subject) -> Result<Count, StoreError> {
    let (unit, window) = if limiter.is_hourly() {
        ("hour", TimeDelta::hours(1))
    } else {
        ("minute", WINDOW)
    };
    let (kinds, subjects, times) = (vec![limiter.code()], vec![subject.uuid()], vec![1_i64]);
    let count = COUNT_CALLS.bind((kinds, subjects, times, unit, false));
    let counted = tx.row(count).await?;
    counted
        .ok_or_else(|| StoreError::unexpected("a count is missing"))?
        .count(window)
}

/// Counts calls of the OAuth endpoints, sign-in attempts, panel pages and journal reads: all in flight on one
/// server thread in one statement.
#[async_trait]
impl RateCounter for Batcher<Calls> {
    async fn count(&self, limiter: Limiter, subject: Subject) -> Result<Count, StoreError> {
        self.ask((limiter, subject)).await
    }
}

/// A batch of calls of any subjects.
pub(crate) struct Calls;

/// The key of a count's row, without its window.
type Counter = (i16, Uuid);

#[async_trait]
impl BatchQuery for Calls {
    const NAME: &'static str = "rate_limits";
    type Question = (Limiter, Subject);
    type Answer = Count;

    /// Counts the calls in one window, in which each limiter and subject has one row.
    async fn answer(
        &self,
        mut connection: &AsyncPgConnection,
        calls: &[(Limiter, Subject)],
    ) -> QueryResult<Vec<Result<Count, StoreError>>> {
        let calls: Vec<Counter> = calls
            .iter()
            .map(|(limiter, subject)| (limiter.code(), subject.uuid()))
            .collect();
        let mut number = BTreeMap::<Counter, i64>::new();
        for call in &calls {
            *number.entry(*call).or_default() += 1;
        }
        let (kinds, subjects): (Vec<_>, Vec<_>) = number.keys().copied().unzip();
        let times: Vec<_> = number.values().copied().collect();
        let rows = COUNT_CALLS.bind((kinds, subjects, times, "minute", true));
        let rows = rows.get_results::<Counted>(&mut connection).await?;
        // From here on: each counter's last place before the batch, and after each call the call's own place.
        let mut places: BTreeMap<Counter, Counted> = rows
            .into_iter()
            .map(|mut counted| {
                let counter = (counted.kind, counted.subject);
                counted.used -= number.get(&counter).copied().unwrap_or_default();
                (counter, counted)
            })
            .collect();
        Ok(calls.iter().map(|call| next_place(&mut places, call)).collect())
    }
}

/// The calls of a counter get their places in the order of arrival.
fn next_place(places: &mut BTreeMap<Counter, Counted>, call: &Counter) -> Result<Count, StoreError> {
    let counted = places
        .get_mut(call)
        .ok_or_else(|| StoreError::unexpected("a count is missing"))?;
    counted.used += 1;
    counted.count(WINDOW)
}
