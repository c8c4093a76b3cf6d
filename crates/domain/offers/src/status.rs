//! The status of an offer, and moderation decisions.

use chrono::{DateTime, Utc};
use kernel::Change;

use crate::{Offer, OfferEvent};

kernel::words! {
    /// The status of an offer (contract: Offer status). Sellers switch between the first two; only moderation
    /// sets or leaves the last two.
    pub enum OfferStatus {
        /// Shown on the marketplace.
        Published = "published",
        /// Hidden by its seller.
        Draft = "draft",
        /// Waiting for moderation.
        Proposed = "proposed",
        /// Rejected by moderation, and hidden.
        Rejected = "rejected",
    }
}

impl OfferStatus {
    /// True if only moderation may change the status.
    pub(crate) const fn is_locked(self) -> bool {
        matches!(self, Self::Proposed | Self::Rejected)
    }
}

kernel::words! {
    /// A moderation decision. Each is possible from every status, and idempotent.
    pub enum Decision {
        /// The offer awaits review: `proposed`.
        Propose = "propose",
        /// The offer is accepted: `published`.
        Approve = "approve",
        /// The offer is rejected: `rejected`, and the seller is notified.
        Reject = "reject",
    }
}

impl Decision {
    /// The resulting status.
    pub const fn status(self) -> OfferStatus {
        match self {
            Self::Propose => OfferStatus::Proposed,
            Self::Approve => OfferStatus::Published,
            Self::Reject => OfferStatus::Rejected,
        }
    }
}

impl Offer {
    pub fn moderate(self, decision: Decision, now: DateTime<Utc>) -> Change<Self, OfferEvent> {
        let after = Self {
            status: decision.status(),
            ..self.clone()
        };
        self.changed(after, now)
    }
}
