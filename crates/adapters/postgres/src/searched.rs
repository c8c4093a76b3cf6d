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

/// The interval between look-ups for what others do not find: rows that were committed late, or locked.
pub(crate) const LATE_EVERY: Duration = Duration::from_secs(15);
/// The same while they fail.
const RETRY_EVERY: Duration = Duration::from_secs(5);
/// How long after its `due_at` a row may be committed and still be found by them: no transaction lasts as long.
pub(crate) const LATE: Duration = Duration::from_mins(1);

/// How long after its `due_at` a row may be committed and still be found at once: a transaction may wait two
/// seconds for the journal's row.
pub(crate) const UNDER_WAY: Duration = Duration::from_secs(3);

/// The `due_at` of the first row that the last look-up saw, locked or not, or the time of that look-up if none was due. The
/// next one begins there, less [`UNDER_WAY`]; now and then one begins a minute before the first that such a one saw. The
/// first of a process searches the whole index.
#[derive(Default)]
pub(crate) struct Searched(Mutex<State>);

#[derive(Default)]
struct State {
    first: DateTime<Utc>,
    late: Option<Late>,
    is_late: bool,
}

/// The look-ups for what is late.
#[derive(Clone, Copy)]
struct Late {
    first: DateTime<Utc>,
    next_at: Instant,
}

/// Where a look-up begins.
#[derive(Clone, Copy)]
pub(crate) struct Begin {
    pub(crate) at: DateTime<Utc>,
    /// Whether it looks for what is late, too.
    pub(crate) is_late: bool,
}

impl Searched {
    /// Where a look-up begins now.
    pub(crate) fn next(&self) -> Begin {
        let (mut state, now) = (self.0.lock(), Instant::now());
        state.is_late = state.late.is_none_or(|late| late.next_at <= now);
        let at = match &mut state.late {
            None => DateTime::UNIX_EPOCH,
            Some(late) if late.next_at <= now => {
                late.next_at = now + RETRY_EVERY;
                late.first - LATE
            }
            Some(_) => state.first - UNDER_WAY,
        };
        Begin {
            at,
            is_late: state.is_late,
        }
    }

    /// Whether no look-up has succeeded yet.
    pub(crate) fn is_new(&self) -> bool {
        self.0.lock().late.is_none()
    }

    pub(crate) fn found(&self, first: DateTime<Utc>) {
        let mut state = self.0.lock();
        state.first = first;
        if take(&mut state.is_late) || state.late.is_none() {
            let next_at = Instant::now() + LATE_EVERY;
            state.late = Some(Late { first, next_at });
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
    async fn the_whole_index_is_searched_until_that_succeeds_and_then_now_and_then_what_is_late() {
        let (searched, first) = (
            Searched::default(),
            DateTime::UNIX_EPOCH + Duration::from_secs(1_000),
        );
        let begin = || (searched.next().at, searched.is_new());
        // The first one has failed.
        for _ in 0..2 {
            assert_eq!(begin(), (DateTime::UNIX_EPOCH, true));
        }
        searched.found(first);
        for later in 1..3 {
            let first = first + Duration::from_secs(later);
            searched.found(first);
            assert_eq!(begin(), (first - UNDER_WAY, false));
        }
        tokio::time::advance(LATE_EVERY).await;
        assert_eq!(begin().0, first - LATE);
        // It has failed, and is repeated a little later.
        assert_eq!(begin().0, first + Duration::from_secs(2) - UNDER_WAY);
        tokio::time::advance(RETRY_EVERY).await;
        assert_eq!(begin().0, first - LATE);
        let later = first + Duration::from_secs(90);
        searched.found(later);
        tokio::time::advance(LATE_EVERY).await;
        assert_eq!(begin().0, later - LATE);
    }
}
