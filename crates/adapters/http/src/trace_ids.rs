//! Fresh trace ids without asking the operating system for chance at each request.

use std::cell::Cell;
use std::hash::{BuildHasher, RandomState};

use kernel::Randomness;

/// Makes ids of 16 bytes from a counter by a hash whose key nobody knows (`SipHash`, keyed by the system): whoever sees some
/// ids can tell neither the others nor how many there were, since that is the traffic of other clients.
pub(crate) struct TraceIds {
    key: RandomState,
    start: u64,
    next: Cell<u64>,
}

impl TraceIds {
    pub(crate) fn new(randomness: &dyn Randomness) -> Self {
        let start = randomness.secret().first_chunk().copied().unwrap_or_default();
        Self {
            key: RandomState::new(),
            start: u64::from_le_bytes(start),
            next: Cell::new(0),
        }
    }

    pub(crate) fn next(&self) -> [u8; 16] {
        let number = self.next.get();
        self.next.set(number.wrapping_add(1));
        let half = |side: u8| self.key.hash_one((self.start, number, side)).to_be_bytes();
        let mut id = [0; 16];
        let (left, right) = id.split_at_mut(8);
        left.copy_from_slice(&half(0));
        right.copy_from_slice(&half(1));
        id
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use kernel::MockRandomness;

    use super::*;

    fn ids() -> TraceIds {
        let mut randomness = MockRandomness::new();
        randomness.expect_secret().once().returning(|| [0xff; 32]);
        TraceIds::new(&randomness)
    }

    #[test]
    fn ids_do_not_repeat_and_no_part_of_them_stays_the_same() {
        let ids = ids();
        let seen: Vec<_> = (0..10_000).map(|_| ids.next()).collect();
        let halves: HashSet<_> = seen
            .iter()
            .flat_map(|id| [id[..8].to_vec(), id[8..].to_vec()])
            .collect();
        assert_eq!(halves.len(), 20_000);
    }

    #[test]
    fn two_threads_with_the_same_start_make_other_ids() {
        assert_ne!(ids().next(), ids().next());
    }
}
