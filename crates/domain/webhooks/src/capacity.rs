//! How much a worker can start, and how it is shared among queues. The shares are those of applications' owners, who choose
//! the receivers: an owner with many queues, or with receivers that are slow or fail, takes little from the others, also
//! from those at the same seller.

use std::collections::{BTreeMap, BTreeSet};

use kernel::SellerId;

/// How much a worker can start now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capacity {
    /// Attempts in all; at least 1.
    pub attempts: u16,
    /// Of these, at most this many in failing queues; may be 0.
    pub failing_attempts: u16,
    /// Attempts of one queue; at least 1.
    pub per_queue: u16,
    /// Attempts of one failing queue; at least 1.
    pub per_failing_queue: u16,
    /// Attempts of all queues of one owner's applications, including running ones; at least 1.
    pub per_owner: u16,
    /// Of these, at most this many in failing queues, including running ones; at least 1.
    pub failing_per_owner: u16,
    /// The running attempts, by owner.
    pub under_way: BTreeMap<SellerId, Load>,
    /// Owners who have had their turn in this round: their queues start nothing.
    pub passed_over: BTreeSet<SellerId>,
}

/// Running attempts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Load {
    pub attempts: u16,
    /// Of these, attempts in failing queues.
    pub failing: u16,
    /// Further queues of the owner start one attempt each: a host is full.
    pub one_each: bool,
}

impl Load {
    /// Adds attempts of one queue.
    pub fn add(&mut self, number: u16, failing: bool) {
        self.attempts = self.attempts.saturating_add(number);
        if failing {
            self.failing = self.failing.saturating_add(number);
        }
    }
}

/// A queue that may have due deliveries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DueQueue {
    /// The owner of its application.
    pub owner: SellerId,
    pub failing: bool,
    /// Due first attempts, as far as they were counted.
    pub first_attempts: u16,
    /// Due repeated attempts, as far as they were counted.
    pub repeats: u16,
}

/// What a queue may start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    pub attempts: u16,
    /// Of these, at most this many repeated attempts.
    pub repeats: u16,
}

impl Capacity {
    /// How many more attempts can start in the owner's queues, or in the failing ones.
    pub fn left(&self, owner: SellerId, failing: bool) -> u16 {
        if self.passed_over.contains(&owner) {
            return 0;
        }
        let load = self.under_way.get(&owner).copied().unwrap_or_default();
        let left = self.attempts.min(self.per_owner.saturating_sub(load.attempts));
        if !failing {
            return left;
        }
        left.min(self.failing_attempts)
            .min(self.failing_per_owner.saturating_sub(load.failing))
    }

    /// Takes up to this many attempts for a queue of this owner, and returns how many.
    pub fn take(&mut self, owner: SellerId, failing: bool, wanted: u16) -> u16 {
        let number = wanted.min(self.left(owner, failing));
        self.under_way.entry(owner).or_default().add(number, failing);
        self.attempts = self.attempts.saturating_sub(number);
        if failing {
            self.failing_attempts = self.failing_attempts.saturating_sub(number);
        }
        number
    }

    /// Takes the share of a queue to be claimed; None if deliveries are due and none can start. A queue
    /// without due deliveries has an empty share: only its lease holder puts it to sleep.
    ///
    /// Repeated attempts leave one place to a first one, unless there is only one place.
    pub fn share(&mut self, queue: &DueQueue) -> Option<Share> {
        let most = match self.under_way.get(&queue.owner) {
            Some(load) if load.one_each => 1,
            _ if queue.failing => self.per_failing_queue,
            _ => self.per_queue,
        };
        let repeats = most.saturating_sub(1).max(1);
        let due = queue.first_attempts.saturating_add(queue.repeats.min(repeats));
        let attempts = self.take(queue.owner, queue.failing, due.min(most));
        (attempts > 0 || due == 0).then_some(Share { attempts, repeats })
    }
}

#[cfg(test)]
mod tests;
