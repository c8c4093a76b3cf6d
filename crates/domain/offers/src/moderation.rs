//! Moderation of the product card.

use chrono::{DateTime, Utc};
use kernel::Change;

use crate::{Offer, OfferEvent, OfferStatus};

/// What moderation decides. Each is possible from every status, and repeating one is harmless.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// The card waits for a look: `proposed`.
    Propose,
    /// The card is fine: `published`.
    Approve,
    /// The card is refused: `rejected`, and the seller hears of it.
    Reject,
}

impl Decision {
    /// The status that a decision leads to.
    pub const fn status(self) -> OfferStatus {
        match self {
            Self::Propose => OfferStatus::Proposed,
            Self::Approve => OfferStatus::Published,
            Self::Reject => OfferStatus::Rejected,
        }
    }
}

impl Offer {
    /// Applies a decision of moderation.
    pub fn moderate(self, decision: Decision, now: DateTime<Utc>) -> Change<Self, OfferEvent> {
        let after = Self {
            status: decision.status(),
            ..self.clone()
        };
        self.changed(after, now)
    }
}
