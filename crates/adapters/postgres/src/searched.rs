//! Where the look-ups of due rows begin in an index.
//!
//! Each lease moves a row to a later place and leaves a dead entry at the former one. Dead entries stay, and
//! are read, as long as any snapshot in the database is older.

use std::time::Duration;

use chrono::{DateTime, Utc};
use diesel::QueryableByName;
use diesel::sql_types::Timestamptz;
use parking_lot::Mutex;
use tokio::time::Instant;

/// The interval between look-ups that search the whole index.
const WHOLE_EVERY: Duration = Duration::from_secs(5);

/// When the first row was due that the last look-up saw, or the time of that look-up if it is earlier. The
/// next one begins there, less a second for transactions that were under way. Every five seconds one searches
/// the whole index, for a row that a slower transaction or a clock that stepped back has put before that
/// place.
pub(crate) struct Searched(Mutex<(DateTime<Utc>, Option<Instant>)>);

impl Default for Searched {
    /// The first look-up searches the whole index. If it fails, look-ups find nothing until the next such one.
    fn default() -> Self {
        Self(Mutex::new((DateTime::<Utc>::MAX_UTC, None)))
    }
}

impl Searched {
    /// Where a look-up begins now.
    pub(crate) fn next(&self) -> DateTime<Utc> {
        let (mut state, now) = (self.0.lock(), Instant::now());
        if state.1.is_some_and(|whole_at| now < whole_at) {
            return state.0;
        }
        state.1 = Some(now + WHOLE_EVERY);
        DateTime::UNIX_EPOCH
    }

    pub(crate) fn found(&self, first: DateTime<Utc>) {
        self.0.lock().0 = first;
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
