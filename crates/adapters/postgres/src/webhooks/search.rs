//! Where claims begin to search an index of due queues.
//!
//! Claims pass over the queues of full owners, at a microsecond or two each. So claims of one round go on where the one
//! before ended. A search that came to the end of the index is remembered: later ones skip what it left while its
//! owners are full. A search from the first queue on, now and then, finds what was locked, or committed late.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use parking_lot::Mutex;
use uuid::Uuid;

use crate::searched::{Begin, Searched, UNDER_WAY};

/// The searches of one index.
#[derive(Default)]
pub(super) struct Search {
    pub(super) searched: Searched,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Where the last claim of this round ended.
    ended: DateTime<Utc>,
    /// Owners who were full at a claim of this round.
    full: BTreeSet<Uuid>,
    /// When a claim last came to the end of the index, and the owners of all queues that it left.
    left: Option<(DateTime<Utc>, BTreeSet<Uuid>)>,
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
    /// Whether no due queue stands before its beginning.
    is_from_first: bool,
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
        let Begin { at: first, is_late } = self.searched.next();
        if is_late {
            state.left = None;
        }
        if is_first || is_late {
            state.ended = first;
            state.full.clear();
        }
        let full_now: BTreeSet<_> = full.iter().copied().collect();
        let left = state.left.as_ref();
        let skipped = left.filter(|(_, owners)| owners.is_subset(&full_now));
        let begin = skipped.map_or(state.ended, |(at, _)| state.ended.max(*at - UNDER_WAY));
        state.full.extend(full_now);
        Searching {
            most,
            full,
            begin,
            first: begin,
            end: None,
            is_from_first: begin == first,
        }
    }

    /// Ends the search of a claim of this time, which has succeeded.
    pub(super) fn end(&self, search: &Searching, at: DateTime<Utc>) {
        if search.most == 0 {
            return;
        }
        let mut state = self.state.lock();
        if search.is_from_first {
            self.searched.found(search.first);
        }
        state.ended = search.end.unwrap_or(at).min(at - UNDER_WAY);
        if search.end.is_none() {
            state.left = (!state.full.is_empty()).then(|| (at, state.full.clone()));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::searched::{LATE, LATE_EVERY};

    fn at(second: u64) -> DateTime<Utc> {
        DateTime::UNIX_EPOCH + Duration::from_secs(second)
    }

    /// Begins a claim, passing over these owners unless it is the first of a round, and ends it.
    fn claim(search: &Search, full: &[u128], end: Option<u64>, now: u64) -> DateTime<Utc> {
        let owners = full.iter().map(|owner| Uuid::from_u128(*owner)).collect();
        let mut searching = search.begin(full.is_empty(), 128, owners);
        searching.first = at(5);
        if let Some(end) = end {
            searching.end_at(at(end + 1));
            searching.end_at(at(end));
        }
        search.end(&searching, at(now));
        searching.begin
    }

    #[tokio::test(start_paused = true)]
    async fn a_round_goes_on_where_a_claim_ended_and_what_was_left_is_skipped_while_its_owners_are_full() {
        let search = Search::default();
        let first = at(5) - UNDER_WAY;
        // The whole index, and then on from the last claim.
        assert_eq!(claim(&search, &[], Some(10), 100), at(0));
        assert_eq!(claim(&search, &[1], Some(20), 100), at(10));
        assert_eq!(claim(&search, &[2], None, 100), at(20));
        // Who looks at nothing learns nothing.
        search.end(&search.begin(false, 0, Vec::new()), at(100));
        // The next round begins at the first queue, and skips what is left of all that were full in the last one.
        assert_eq!(claim(&search, &[], Some(11), 101), first);
        assert_eq!(claim(&search, &[2], Some(12), 101), at(11));
        assert_eq!(claim(&search, &[3, 2, 1], None, 102), at(97));
        // Also if that is its first claim. What may be committed late is searched again.
        assert_eq!(claim(&search, &[], Some(11), 103), first);
        assert_eq!(claim(&search, &[1, 2, 3], Some(102), 103), at(99));
        assert_eq!(claim(&search, &[1, 2], None, 103), at(100));
        // Now and then it begins before the first queue, and nothing is skipped.
        tokio::time::advance(LATE_EVERY).await;
        assert_eq!(claim(&search, &[1, 2, 3], Some(11), 120), at(5) - LATE);
        assert_eq!(claim(&search, &[1, 2, 3], None, 120), at(11));
    }
}
