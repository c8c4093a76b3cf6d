//! Counting single calls.

use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use diesel::sql_types::{BigInt, SmallInt, Timestamptz, Uuid as SqlUuid};
use diesel_async::RunQueryDsl;
use kernel::StoreError;
use oauth::{Count, Limiter, RateCounter, Subject};
use uuid::Uuid;

use crate::{reads::Reads, statement::statement};

/// The length of a window.
pub(crate) const WINDOW: TimeDelta = TimeDelta::minutes(1);

/// Counts one call. Its commit does not wait for the disk: a crash of the server may lose the counts of its last moment, and
/// nothing else rests on them.
pub(crate) struct CountOne {
    kind: i16,
    subject: Uuid,
}

statement!(CountOne => (BigInt, Timestamptz, Timestamptz):
    "with clock as materialized (select at, date_trunc('minute', at, 'UTC') as window_start, mode \
       from (select api_now() as at, set_config('synchronous_commit', 'off', true) as mode) present), \
     counted as (insert into rate_windows as w (window_start, kind, subject, used) \
       select window_start, ", kind: SmallInt, ", ", subject: SqlUuid,
    ", 1 from clock on conflict (window_start, kind, subject) do update set used = w.used + 1 returning used) \
     select counted.used, clock.window_start, clock.at from counted cross join clock");

/// What a statement says of a count: the subject's last place, the window's start, and the time.
pub(crate) type Counted = (i64, DateTime<Utc>, DateTime<Utc>);

impl CountOne {
    pub(crate) fn new(limiter: Limiter, subject: Subject) -> Self {
        Self {
            kind: limiter.code(),
            subject: subject.uuid(),
        }
    }
}

/// The count of a call whose place is `used`.
pub(crate) fn count((used, window_start, counted_at): Counted) -> Result<Count, StoreError> {
    let place = u64::try_from(used).map_err(StoreError::unexpected)?;
    Ok(Count {
        place,
        resets_at: window_start + WINDOW,
        counted_at,
    })
}

/// Counts calls of the OAuth endpoints.
pub(crate) struct Rates(pub(crate) Reads);

#[async_trait]
impl RateCounter for Rates {
    async fn count(&self, limiter: Limiter, subject: Subject) -> Result<Count, StoreError> {
        let one = CountOne::new(limiter, subject);
        let ask = self
            .0
            .ask(|lent| async move { one.get_result::<Counted>(&mut lent.connection()).await });
        count(ask.await?)
    }
}
