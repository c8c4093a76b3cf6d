//! Counts the calls of applications by status in memory; a worker takes the counts from time to time and stores them.

use std::collections::HashMap;
use std::sync::Arc;

use accounts::{UsageCount, UsageKey};
use parking_lot::Mutex;

/// Counts of calls that are not stored yet. Clones and all server threads share them.
///
/// There is one entry per caller and status since the last take, however many calls there are.
#[derive(Clone, Debug, Default)]
pub struct UsageMeter(Arc<Mutex<HashMap<UsageKey, u32>>>);

impl UsageMeter {
    pub fn count(&self, key: UsageKey) {
        self.add(UsageCount { key, calls: 1 });
    }

    /// Removes and returns the counts.
    pub fn take(&self) -> Vec<UsageCount> {
        let counts = std::mem::take(&mut *self.0.lock());
        counts
            .into_iter()
            .map(|(key, calls)| UsageCount { key, calls })
            .collect()
    }

    /// Puts back counts that could not be stored.
    pub fn put_back(&self, counts: Vec<UsageCount>) {
        for count in counts {
            self.add(count);
        }
    }

    fn add(&self, UsageCount { key, calls }: UsageCount) {
        let mut counts = self.0.lock();
        let sum = counts.entry(key).or_default();
        *sum = sum.saturating_add(calls);
    }
}
