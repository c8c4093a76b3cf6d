//! Where the look-ups of due rows begin in an index.
//!
//! Each lease moves a row to a later place and leaves a dead entry at the former one. Dead entries stay, and
//! are read, as long as any snapshot in the database is older.

use std::mem::take;
use std::time::Duration;

use chrono::{DateTime, Utc};
use diesel::QueryableByName;
use diesel::sql_types::Timestamptz;
use parking_lot::Mutex;
use tokio::time::Instant;

/// The interval between look-ups for what was committed late, or locked.
pub(crate) const LATE_EVERY: Duration = Duration::from_secs(15);
/// The same while they fail.
const RETRY_EVERY: Duration = Duration::from_secs(5);
/// How long after its `due_at` a row may be committed and still be found by these look-ups.
pub(crate) const LATE: Duration = Duration::from_mins(1);

/// The interval between look-ups in the whole index: a COMMIT may wait for a synchronous standby for any time.
const WHOLE_EVERY: Duration = Duration::from_mins(5);

/// How long after its `due_at` a row may be committed and still be found at once: a transaction may wait two
/// seconds for the journal's row.
pub(crate) const UNDER_WAY: Duration = Duration::from_secs(3);

/// The `due_at` of the first row that the last look-up saw, or the time of that look-up if none was due. The next one begins
/// there, less [`UNDER_WAY`]; now and then one begins [`LATE`] before what the last such one saw, or at the beginning.
/// There is one look-up at a time.
#[derive(Default)]
pub(crate) struct Searched(Mutex<State>);

#[derive(Default)]
struct State {
    first: DateTime<Utc>,
    /// What the last look-up for what is late saw, and when the next one is due.
    late: Option<(DateTime<Utc>, Instant)>,
    is_late: bool,
    whole_at: Option<Instant>,
}

impl State {
    /// Whether a look-up in the whole index is due. If it fails, the next one is due as late, but for the first.
    fn begins_anew(&mut self, now: Instant) -> bool {
        let is_due = self.late.is_none() || self.whole_at.is_none_or(|at| at <= now);
        if is_due {
            self.whole_at = Some(now + WHOLE_EVERY);
        }
        is_due
    }
}

/// Where a look-up begins.
pub(crate) struct Begin {
    pub(crate) at: DateTime<Utc>,
    /// Whether it looks for what is late, too.
    pub(crate) is_late: bool,
}

impl Searched {
    /// Where a look-up begins now.
    pub(crate) fn next(&self) -> Begin {
        let (mut state, now) = (self.0.lock(), Instant::now());
        let begins_anew = state.begins_anew(now);
        let late = state.late.as_mut().filter(|(_, next_at)| *next_at <= now);
        let late = late.map(|(first, next_at)| {
            *next_at = now + RETRY_EVERY;
            *first - LATE
        });
        state.is_late = begins_anew || late.is_some();
        let at = match late {
            _ if begins_anew => DateTime::UNIX_EPOCH,
            Some(at) => at,
            None => state.first - UNDER_WAY,
        };
        Begin {
            at,
            is_late: state.is_late,
        }
    }

    /// Whether a look-up in the whole index is due, which the caller then makes instead of the next one.
    pub(crate) fn begins_anew(&self) -> bool {
        let mut state = self.0.lock();
        let is_due = state.begins_anew(Instant::now());
        state.is_late |= is_due;
        is_due
    }

    pub(crate) fn found(&self, first: DateTime<Utc>) {
        let mut state = self.0.lock();
        state.first = first;
        if take(&mut state.is_late) {
            state.late = Some((first, Instant::now() + LATE_EVERY));
        }
    }

    /// The leased row of a look-up.
    pub(crate) fn leased<R>(&self, found: Option<Found<R>>) -> Option<R> {
        let found = found?;
        self.found(found.first_due);
        found.leased
    }
}

/// The row of a look-up of due rows: when the first of them was due, and the leased one, if there is one.
#[derive(QueryableByName)]
pub(crate) struct Found<R> {
    #[diesel(sql_type = Timestamptz)]
    first_due: DateTime<Utc>,
    #[diesel(embed)]
    leased: Option<R>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn look_ups_begin_where_the_last_one_did_and_now_and_then_earlier() {
        let (searched, first) = (
            Searched::default(),
            DateTime::UNIX_EPOCH + Duration::from_secs(1_000),
        );
        let begin = || searched.next().at;
        // The first ones have failed.
        for _ in 0..3 {
            assert_eq!(begin(), DateTime::UNIX_EPOCH);
        }
        searched.found(first);
        for later in 1..3 {
            let first = first + Duration::from_secs(later);
            searched.found(first);
            assert_eq!(begin(), first - UNDER_WAY);
        }
        tokio::time::advance(LATE_EVERY).await;
        assert_eq!(begin(), first - LATE);
        // It has failed, and is repeated a little later.
        assert_eq!(begin(), first + Duration::from_secs(2) - UNDER_WAY);
        tokio::time::advance(RETRY_EVERY).await;
        assert_eq!(begin(), first - LATE);
        let later = first + Duration::from_secs(90);
        searched.found(later);
        tokio::time::advance(LATE_EVERY).await;
        assert_eq!(begin(), later - LATE);
        // Of the whole index one that fails is not repeated soon.
        tokio::time::advance(WHOLE_EVERY).await;
        assert_eq!([begin(), begin()], [DateTime::UNIX_EPOCH, later - UNDER_WAY]);
        tokio::time::advance(WHOLE_EVERY).await;
        assert!(searched.begins_anew());
        searched.found(first);
        assert_eq!(begin(), first - UNDER_WAY);
    }
}
