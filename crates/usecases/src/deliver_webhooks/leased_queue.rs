//! A leased queue, and how many more deliveries it may get.

use std::sync::Arc;

use kernel::SellerId;
use oauth::ClientId;
use webhooks::{DeliveryId, SigningSecrets, WebhookUrl};

use crate::deliver_webhooks::Slots;

/// Consecutive failures after which a queue that has succeeded counts as failing.
const FAILURES_IN_A_ROW: u16 = 8;

/// Capacity reserved for asking whether more deliveries of a queue have become due. No other queue gets it
/// until the store has answered, so it is small. A queue that fills it gets its whole share the next time.
const PROBE: u16 = 2;

/// First attempts that a failing queue gets beyond those of its claim. Then it is released, so that its
/// retries get their turn.
const BEFORE_RETRIES: u16 = 8;

/// A delivery whose attempt is running, or whose end is not recorded yet.
pub(super) struct InHand {
    pub(super) id: DeliveryId,
    pub(super) is_retry: bool,
}

pub(super) struct LeasedQueue {
    pub(super) client_id: ClientId,
    /// The application's owner.
    pub(super) owner: SellerId,
    pub(super) url: WebhookUrl,
    pub(super) secrets: Arc<SigningSecrets>,
    /// Whether the queue counted as failing when it was claimed.
    pub(super) failing: bool,
    /// Deliveries that the store must not give out again.
    pub(super) in_hand: Vec<InHand>,
    /// Of `in_hand`, those whose attempt has not ended.
    pub(super) running: usize,
    /// Those that the store still counts as in hand: if this worker crashed, each would count as a lost attempt.
    pub(super) postponed: Vec<DeliveryId>,
    /// First attempts since it began to fail, while no retry was in hand.
    pub(super) ahead_of_retries: u16,
    /// The last round of refills that it was part of.
    pub(super) round: u64,
    /// Whether an attempt has succeeded under this lease.
    pub(super) succeeded: bool,
    /// Consecutive failures since the last success.
    pub(super) failures: u16,
    pub(super) outlook: Outlook,
    pub(super) call: StoreCall,
    /// Whether it was refilled since an end was recorded: further ends are recorded before the next refill.
    pub(super) refilled_last: bool,
}

/// Whether a queue is expected to have more due deliveries.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Outlook {
    /// The last response left something, or filled the capacity.
    MoreLikely,
    /// The last response left capacity unused.
    CapacityLeft,
    /// An attempt could not begin; no other attempt begins under this lease.
    Postponed,
}

impl Outlook {
    pub(super) const fn of(more: bool) -> Self {
        if more {
            Self::MoreLikely
        } else {
            Self::CapacityLeft
        }
    }
}

/// The store call in progress for a queue. There is one at a time: calls skip what another transaction has locked.
#[derive(PartialEq, Eq)]
pub(super) enum StoreCall {
    None,
    Refill,
    Record,
    /// No call until the next beat: the queue was locked, or the store failed.
    UntilBeat,
}

impl LeasedQueue {
    /// Whether the queue counts as failing, as far as is known.
    pub(super) const fn fails(&self) -> bool {
        if self.succeeded {
            self.failures >= FAILURES_IN_A_ROW
        } else {
            self.failing || self.failures > 0
        }
    }

    /// An attempt has ended.
    pub(super) const fn end(&mut self, is_success: bool) {
        self.running = self.running.saturating_sub(1);
        if is_success {
            self.succeeded = true;
            self.failures = 0;
        } else {
            self.failures = self.failures.saturating_add(1);
        }
    }

    pub(super) fn is_free(&self) -> bool {
        self.call == StoreCall::None
    }

    pub(super) fn may_refill(&self) -> bool {
        let has_ended = self.in_hand.len() > self.running;
        self.is_free() && self.running > 0 && !(self.refilled_last && has_ended)
    }

    pub(super) fn retries(&self) -> usize {
        self.in_hand.iter().filter(|delivery| delivery.is_retry).count()
    }

    /// Whether to ask the store for more: of `all` queues, or only of those that probably have more and are
    /// half empty now.
    pub(super) fn wants_more(&self, all: bool, slots: Slots) -> bool {
        let free = left(self.max_in_hand(slots), self.in_hand.len());
        let is_half_empty =
            self.outlook == Outlook::MoreLikely && (self.fails() || free > slots.per_queue / 2);
        let yields = self.fails() && self.ahead_of_retries >= BEFORE_RETRIES;
        free > 0 && (all || is_half_empty) && !yields && self.outlook != Outlook::Postponed
    }

    /// The maximum number of concurrent attempts.
    pub(super) fn max_in_hand(&self, slots: Slots) -> u16 {
        if self.fails() {
            slots.per_failing_queue.min(slots.per_queue)
        } else {
            slots.per_queue
        }
    }

    /// How many more deliveries it asks for.
    pub(super) fn wanted(&self, slots: Slots) -> u16 {
        let free = left(self.max_in_hand(slots), self.in_hand.len());
        match self.outlook {
            Outlook::MoreLikely => free,
            Outlook::CapacityLeft | Outlook::Postponed => free.min(PROBE),
        }
    }

    /// How many more retries it may get: one place is reserved for a first attempt.
    pub(super) fn capacity_for_retries(&self, slots: Slots) -> u16 {
        if self.fails() {
            0
        } else {
            left(slots.per_queue.saturating_sub(1), self.retries())
        }
    }
}

pub(super) fn left(slots: u16, used: usize) -> u16 {
    slots.saturating_sub(u16::try_from(used).unwrap_or(u16::MAX))
}
