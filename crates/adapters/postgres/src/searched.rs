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

/// The interval between look-ups that search the whole index. Beside an old snapshot each may take a second.
pub(crate) const WHOLE_EVERY: Duration = Duration::from_secs(15);
/// The same while they fail.
const RETRY_EVERY: Duration = Duration::from_secs(5);

/// How long after its `due_at` a row may be committed and still be found at once: a transaction may wait two
/// seconds for the journal's row. Later ones are found by a search of the whole index.
pub(crate) const UNDER_WAY: Duration = Duration::from_secs(3);

/// The `due_at` of the first row that the last look-up saw, or the time of that look-up if none was due. The
/// next one begins there, less [`UNDER_WAY`]. Now and then the whole index is searched: this finds rows that
/// were committed late, dated back by a clock, or locked at the last look-up.
pub(crate) struct Searched(Mutex<State>);

struct State {
    first: DateTime<Utc>,
    whole_at: Option<Instant>,
    is_whole: bool,
}

impl Default for Searched {
    /// The first look-up searches the whole index. If it fails, look-ups find nothing until the next such one.
    fn default() -> Self {
        Self(Mutex::new(State {
            first: DateTime::<Utc>::MAX_UTC,
            whole_at: None,
            is_whole: false,
        }))
    }
}

impl Searched {
    /// Where a look-up begins now.
    pub(crate) fn next(&self) -> DateTime<Utc> {
        let (mut state, now) = (self.0.lock(), Instant::now());
        state.is_whole = state.whole_at.is_none_or(|whole_at| whole_at <= now);
        if !state.is_whole {
            return state.first - UNDER_WAY;
        }
        state.whole_at = Some(now + RETRY_EVERY);
        DateTime::UNIX_EPOCH
    }

    pub(crate) fn found(&self, first: DateTime<Utc>) {
        let mut state = self.0.lock();
        state.first = first;
        if take(&mut state.is_whole) {
            state.whole_at = Some(Instant::now() + WHOLE_EVERY);
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
    async fn the_whole_index_is_searched_at_first_after_a_failure_and_now_and_then() {
        let (searched, first) = (
            Searched::default(),
            DateTime::UNIX_EPOCH + Duration::from_secs(1_000),
        );
        let (whole, narrow) = (DateTime::UNIX_EPOCH, first - UNDER_WAY);
        assert_eq!(searched.next(), whole);
        // It has failed: nothing is known, but rows that are due are not passed for long.
        assert!(searched.next() > first);
        tokio::time::advance(RETRY_EVERY).await;
        assert_eq!(searched.next(), whole);
        searched.found(first);
        tokio::time::advance(RETRY_EVERY).await;
        for _ in 0..2 {
            assert_eq!(searched.next(), narrow);
            searched.found(first);
        }
        tokio::time::advance(WHOLE_EVERY).await;
        assert_eq!(searched.next(), whole);
    }
}
