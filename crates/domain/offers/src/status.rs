//! The status of an offer, and moderation decisions.

use chrono::{DateTime, Utc};
use kernel::Change;

use crate::{Offer, OfferEvent};

/// The status of an offer (contract: Offer status). Sellers switch between the first two; only moderation sets or
/// leaves the last two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OfferStatus {
    /// Shown on the marketplace.
    Published,
    /// Hidden by its seller.
    Draft,
    /// Waiting for moderation.
    Proposed,
    /// Rejected by moderation, and hidden.
    Rejected,
}

impl OfferStatus {
    /// Every status, in the contract's order.
    pub const ALL: [Self; 4] = [Self::Published, Self::Draft, Self::Proposed, Self::Rejected];

    /// The contract's name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Published => "published",
            Self::Draft => "draft",
            Self::Proposed => "proposed",
            Self::Rejected => "rejected",
        }
    }

    /// The status with this name.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == word)
    }

    /// True if only moderation may change the status.
    pub const fn is_locked(self) -> bool {
        matches!(self, Self::Proposed | Self::Rejected)
    }
}

/// A moderation decision. Each is possible from every status, and idempotent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// The offer awaits review: `proposed`.
    Propose,
    /// The offer is accepted: `published`.
    Approve,
    /// The offer is rejected: `rejected`, and the seller is notified.
    Reject,
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

#[cfg(test)]
mod tests {
    use super::OfferStatus;

    // contract: 3.4
    #[test]
    fn statuses_have_the_contracts_names() {
        let words = ["published", "draft", "proposed", "rejected"];
        assert_eq!(OfferStatus::ALL.map(OfferStatus::as_str), words);
        assert_eq!(words.map(OfferStatus::parse), OfferStatus::ALL.map(Some));
        for other in ["", "Published", "active"] {
            assert_eq!(OfferStatus::parse(other), None, "{other}");
        }
    }
}
