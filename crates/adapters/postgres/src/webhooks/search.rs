//! Where claims begin to search an index of due queues.
//!
//! Claims pass over the queues of full owners, at a microsecond or two each. So those that pass over owners go on
//! where the one before ended, and come round again once one has found all; and whoever is as full as when a claim
//! came to the end is not passed over again.

use chrono::{DateTime, Utc};
use parking_lot::Mutex;
use tokio::time::Instant;
use uuid::Uuid;

use crate::searched::{Searched, UNDER_WAY, WHOLE_EVERY};

/// The searches of one index.
#[derive(Default)]
pub(super) struct Search {
    searched: Searched,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Where the last claim of this round ended.
    ended: DateTime<Utc>,
    left: Option<Left>,
}

/// What a claim that came to the end of the index has left before it: queues of owners that were full.
struct Left {
    at: DateTime<Utc>,
    owners: Vec<Uuid>,
    /// The last search that skipped nothing. One that does misses queues that were locked, or committed late.
    whole_at: Instant,
}

/// The search of a claim.
pub(super) struct Searching {
    /// How many queues it looks at.
    pub(super) most: u16,
    /// The owners whose queues it passes over.
    pub(super) full: Vec<Uuid>,
    pub(super) begin: DateTime<Utc>,
    /// When the first queue that it saw was due.
    pub(super) first: DateTime<Utc>,
    /// Where it ended; none at the end of the index.
    pub(super) end: Option<DateTime<Utc>>,
    is_first: bool,
    /// If it begins behind what was left: when a search last did not.
    whole_at: Option<Instant>,
}

impl Searching {
    /// The queue that was due then is left to a later claim, or is the last that this one looked at.
    pub(super) fn end_at(&mut self, due: DateTime<Utc>) {
        self.end = Some(self.end.map_or(due, |end| end.min(due)));
    }
}

impl Search {
    /// Begins the first claim of a round, or a later one.
    pub(super) fn begin(&self, is_first: bool, most: u16, full: Vec<Uuid>) -> Searching {
        let mut state = self.state.lock();
        if is_first {
            state.ended = self.searched.next();
        }
        let still_full = |left: &&Left| {
            left.whole_at.elapsed() < WHOLE_EVERY
                && left.at - UNDER_WAY > state.ended
                && left.owners.iter().all(|owner| full.contains(owner))
        };
        let left = state.left.as_ref().filter(still_full);
        let begin = left.map_or(state.ended, |left| left.at - UNDER_WAY);
        Searching {
            most,
            begin,
            first: begin,
            end: None,
            is_first,
            whole_at: left.map(|left| left.whole_at),
            full,
        }
    }

    /// Ends the search of a claim of this time, which has succeeded.
    pub(super) fn end(&self, search: Searching, at: DateTime<Utc>) {
        if search.most == 0 {
            return;
        }
        let mut state = self.state.lock();
        if search.is_first && search.whole_at.is_none() {
            self.searched.found(search.first);
        }
        state.ended = search.end.unwrap_or(at);
        if search.end.is_none() {
            state.left = (!search.full.is_empty()).then(|| Left {
                at,
                owners: search.full,
                whole_at: search.whole_at.unwrap_or_else(Instant::now),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn at(second: u64) -> DateTime<Utc> {
        DateTime::UNIX_EPOCH + Duration::from_secs(second)
    }

    /// Begins a claim, passing over these owners unless it is the first of a round, and ends it.
    fn claim(search: &Search, full: &[u128], end: Option<u64>, now: u64) -> DateTime<Utc> {
        let owners = full.iter().map(|owner| Uuid::from_u128(*owner)).collect();
        let mut searching = search.begin(full.is_empty(), 128, owners);
        let begin = searching.begin;
        searching.first = at(5);
        if let Some(end) = end {
            searching.end_at(at(end + 1));
            searching.end_at(at(end));
        }
        search.end(searching, at(now));
        begin
    }

    #[tokio::test(start_paused = true)]
    async fn a_round_goes_on_where_a_claim_ended_and_what_was_left_is_skipped_while_its_owners_are_full() {
        let search = Search::default();
        // The whole index, and then on from the last claim.
        assert_eq!(claim(&search, &[], Some(10), 100), at(0));
        assert_eq!(claim(&search, &[1], Some(20), 100), at(10));
        assert_eq!(claim(&search, &[1, 2], None, 100), at(20));
        // Without a limit of its own nothing is searched, and nothing learned.
        search.end(search.begin(false, 0, Vec::new()), at(100));
        // The next round begins at its first queue, and skips what is left of the same owners.
        assert_eq!(claim(&search, &[], Some(11), 101), at(5) - UNDER_WAY);
        assert_eq!(claim(&search, &[1], Some(12), 101), at(11));
        assert_eq!(claim(&search, &[3, 2, 1], None, 102), at(100) - UNDER_WAY);
        assert_eq!(claim(&search, &[1, 2], Some(12), 103), at(102));
        assert_eq!(claim(&search, &[1, 2, 3], None, 103), at(102) - UNDER_WAY);
        // Now and then nothing is skipped.
        tokio::time::advance(WHOLE_EVERY).await;
        assert_eq!(claim(&search, &[], Some(11), 120), at(0));
        assert_eq!(claim(&search, &[1, 2, 3], None, 120), at(11));
        assert_eq!(claim(&search, &[1, 2, 3], None, 121), at(120));
        assert_eq!(claim(&search, &[], Some(11), 121), at(5) - UNDER_WAY);
        assert_eq!(claim(&search, &[1, 2, 3], Some(119), 122), at(121) - UNDER_WAY);
    }
}
