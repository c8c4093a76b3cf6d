//! Fresh trace ids without asking the operating system for chance at each request.

use std::cell::Cell;

use kernel::Randomness;

/// Makes ids of 8 random bytes, the same for all ids of one thread, and 8 that never repeat within it. They need to be
/// unique, not secret.
pub(crate) struct TraceIds {
    thread: [u8; 8],
    next: Cell<u64>,
}

impl TraceIds {
    pub(crate) fn new(randomness: &dyn Randomness) -> Self {
        let secret = randomness.secret();
        let (thread, rest) = secret.split_first_chunk().unwrap_or((&[0; 8], &[]));
        let start = rest.first_chunk().copied().unwrap_or_default();
        Self {
            thread: *thread,
            next: Cell::new(u64::from_le_bytes(start)),
        }
    }

    pub(crate) fn next(&self) -> [u8; 16] {
        let number = self.next.get();
        self.next.set(number.wrapping_add(1));
        let mut id = [0; 16];
        let (thread, own) = id.split_at_mut(8);
        thread.copy_from_slice(&self.thread);
        own.copy_from_slice(&scattered(number).to_be_bytes());
        id
    }
}

/// A number for each number, near ones far apart, so that two ids can be told from each other at a glance. This is the
/// finalizer of `SplitMix64` (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014).
const fn scattered(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use kernel::MockRandomness;

    use super::*;

    #[test]
    fn ids_never_repeat() {
        let mut randomness = MockRandomness::new();
        randomness.expect_secret().once().returning(|| [0xff; 32]);
        let ids = TraceIds::new(&randomness);
        let seen: HashSet<_> = (0..10_000).map(|_| ids.next()).collect();
        assert_eq!(seen.len(), 10_000);
    }
}
