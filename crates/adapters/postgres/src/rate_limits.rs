//! Counts calls and actions in windows of one clock minute, or one clock hour.

use std::{collections::BTreeMap, sync::Arc};

use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use diesel::QueryResult;
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use kernel::StoreError;
use oauth::{Count, Limiter, RateCounter, Subject};
use uuid::Uuid;

use crate::batch::{BatchQuery, Batcher};
use crate::connection::Connector;
use crate::sql::sql;
use crate::unit_of_work::Tx;

/// The length of a window of calls.
pub(crate) const WINDOW: TimeDelta = TimeDelta::minutes(1);

/// A count's row: the subject's last place, the window's start, and the time.
type Counted = (i64, DateTime<Utc>, DateTime<Utc>);

fn count((used, window_start, counted_at): Counted, window: TimeDelta) -> Result<Count, StoreError> {
    let place = u64::try_from(used).map_err(StoreError::unexpected)?;
    Ok(Count {
        place,
        resets_at: window_start + window,
        counted_at,
    })
}

/// Counts one action in the action's transaction, so that both are stored or neither.
pub(crate) async fn count_in(tx: &Tx, limiter: Limiter, subject: Subject) -> Result<Count, StoreError> {
    let (unit, window) = if limiter.is_hourly() {
        ("hour", TimeDelta::hours(1))
    } else {
        ("minute", WINDOW)
    };
    let counted = sql!(Counted:
        "with clock as materialized (select at, date_trunc(", unit, ", at, 'UTC') as window_start from (select api_now() as at) present), \
         counted as (insert into rate_windows as w (window_start, kind, subject, used) \
           select window_start, ", limiter.code(), ", ", subject.uuid(),
        ", 1 from clock on conflict (window_start, kind, subject) do update set used = w.used + 1 returning used) \
         select counted.used, clock.window_start, clock.at from counted cross join clock");
    let counted = tx.row(counted).await?;
    count(
        counted.ok_or_else(|| StoreError::unexpected("a count is missing"))?,
        window,
    )
}

/// Counts calls of the OAuth endpoints and attempts to sign in: all in flight on one server thread in one statement.
pub(crate) struct Rates(Batcher<Calls>);

impl Rates {
    pub(crate) fn new(connector: &Arc<Connector>) -> Self {
        Self(Batcher::new(Calls, Arc::clone(connector)))
    }
}

#[async_trait]
impl RateCounter for Rates {
    async fn count(&self, limiter: Limiter, subject: Subject) -> Result<Count, StoreError> {
        self.0.ask((limiter, subject)).await
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

    /// Counts the calls in one window. Each limiter and subject has one row in it, and rows are locked in order;
    /// otherwise two batches with the same subjects could deadlock. The commit is asynchronous: a server crash may lose
    /// the latest counts, which nothing else depends on.
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
        let kinds: Vec<_> = number.keys().map(|(kind, _)| *kind).collect();
        let subjects: Vec<_> = number.keys().map(|(_, subject)| *subject).collect();
        let times: Vec<_> = number.values().copied().collect();
        let rows = sql!((i16, Uuid, i64, DateTime<Utc>, DateTime<Utc>):
            "with clock as materialized (select at, date_trunc('minute', at, 'UTC') as window_start, mode \
               from (select api_now() as at, set_config('synchronous_commit', 'off', true) as mode) present), \
             counted as (insert into rate_windows as w (window_start, kind, subject, used) \
               select clock.window_start, k.kind, k.subject, k.times from unnest((select ", kinds,
            "::smallint[]), (select ", subjects, "::uuid[]), (select ", times,
            "::bigint[])) as k (kind, subject, times) cross join clock order by k.kind, k.subject \
               on conflict (window_start, kind, subject) do update set used = w.used + excluded.used returning kind, subject, used) \
             select counted.kind, counted.subject, counted.used, clock.window_start, clock.at from counted cross join clock");
        let rows = rows
            .get_results::<(i16, Uuid, i64, DateTime<Utc>, DateTime<Utc>)>(&mut connection)
            .await?;
        // From here on: each counter's last place before the batch, and after each call the call's own place.
        let mut places: BTreeMap<Counter, Counted> = rows
            .into_iter()
            .map(|(kind, subject, used, start, at)| {
                let own = number.get(&(kind, subject)).copied().unwrap_or_default();
                ((kind, subject), (used - own, start, at))
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
    counted.0 += 1;
    count(*counted, WINDOW)
}
