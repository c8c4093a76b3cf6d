//! How much a worker can start, and how it is shared among queues. The shares are those of applications' owners, who choose
//! the receivers: an owner with many queues, or with receivers that are slow or fail, takes little from the others, also
//! from those at the same seller.

use std::collections::{BTreeMap, BTreeSet};

use kernel::SellerId;

/// How much a worker can start now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capacity {
    pub all: FreeAttempts,
    /// Of `all`, those in failing queues.
    pub failing: FreeAttempts,
    /// Attempts of one queue; at least 1.
    pub per_queue: u16,
    /// Attempts of one failing queue; at least 1.
    pub per_failing_queue: u16,
    /// [`Load::window`] of owners who are not in `under_way`; at least 1.
    pub first_window: u16,
    /// The same while seven eighths are open.
    pub first_window_of_idle: u16,
    pub under_way: BTreeMap<SellerId, Load>,
}

/// Free attempts of a kind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FreeAttempts {
    pub attempts: u16,
    /// The free ones beyond a reserve for owners without any under way.
    pub open: u16,
    /// The same while none is under way.
    pub of: u16,
    /// Owners who have had their turn in this round: their queues of this kind start nothing.
    pub passed_over: BTreeSet<SellerId>,
}

/// Running attempts of an owner's queues, and the limit of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Load {
    pub attempts: u16,
    /// Of these, attempts in failing queues.
    pub failing: u16,
    /// How many attempts the owner may have while half of all are open; at least 1. In failing queues half as many.
    pub window: u16,
    /// A host is full: how many further attempts are tried, one in each queue.
    pub tries: Option<u16>,
}

impl Load {
    /// No attempts.
    pub const fn none(window: u16) -> Self {
        Self {
            attempts: 0,
            failing: 0,
            window,
            tries: None,
        }
    }

    /// Adds attempts of one queue.
    pub fn add(&mut self, number: u16, failing: bool) {
        self.attempts = self.attempts.saturating_add(number);
        if failing {
            self.failing = self.failing.saturating_add(number);
        }
        self.tries = self.tries.map(|tries| tries.saturating_sub(number));
    }
}

impl FreeAttempts {
    /// How many more can start for an owner with `has` under way. Once less than half is open, the window shrinks in proportion,
    /// so that later owners find some. The reserve gives only an owner's first.
    fn left(&self, window: u16, has: u16) -> u16 {
        let most = (2 * u32::from(window) * u32::from(self.open)).div_ceil(u32::from(self.of).max(1));
        let most = u16::try_from(most).unwrap_or(window).clamp(1, window.max(1));
        self.attempts.min(most.saturating_sub(has))
    }

    fn take(&mut self, number: u16) {
        self.attempts = self.attempts.saturating_sub(number);
        self.open = self.open.saturating_sub(number);
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
    /// Whether more is due.
    pub more: bool,
}

impl Capacity {
    fn load(&self, owner: SellerId) -> Load {
        let load = self.under_way.get(&owner).copied();
        load.unwrap_or_else(|| {
            let is_idle = u32::from(self.all.open) * 8 >= u32::from(self.all.of) * 7;
            Load::none(if is_idle {
                self.first_window_of_idle
            } else {
                self.first_window
            })
        })
    }

    /// How many more attempts can start in the owner's healthy queues, or in the failing ones.
    pub fn left(&self, owner: SellerId, failing: bool) -> u16 {
        let kind = if failing { &self.failing } else { &self.all };
        if kind.passed_over.contains(&owner) {
            return 0;
        }
        let load = self.load(owner);
        let left = self.all.left(load.window, load.attempts);
        let left = left.min(load.tries.unwrap_or(left));
        if !failing {
            return left;
        }
        left.min(self.failing.left(load.window.div_ceil(2), load.failing))
    }

    /// Takes up to this many attempts for a queue of this owner, and returns how many.
    pub fn take(&mut self, owner: SellerId, failing: bool, wanted: u16) -> u16 {
        let number = wanted.min(self.left(owner, failing));
        let mut load = self.load(owner);
        load.add(number, failing);
        self.under_way.insert(owner, load);
        self.all.take(number);
        if failing {
            self.failing.take(number);
        }
        number
    }

    /// Takes the share of a queue to be claimed; None if deliveries are due and none can start. A queue
    /// without due deliveries has an empty share: only its lease holder puts it to sleep.
    ///
    /// Repeated attempts leave one place to a first one, unless there is only one place.
    pub fn share(&mut self, queue: &DueQueue) -> Option<Share> {
        let most = match self.load(queue.owner).tries {
            Some(_) => 1,
            None if queue.failing => self.per_failing_queue,
            None => self.per_queue,
        };
        let repeats = most.saturating_sub(1).max(1);
        let due = queue.first_attempts.saturating_add(queue.repeats.min(repeats));
        let attempts = self.take(queue.owner, queue.failing, due.min(most));
        let more = attempts < queue.first_attempts.saturating_add(queue.repeats);
        (attempts > 0 || due == 0).then_some(Share {
            attempts,
            repeats,
            more,
        })
    }
}

#[cfg(test)]
mod tests;
