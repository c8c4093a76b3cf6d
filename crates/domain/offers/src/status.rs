//! The status of an offer, and the decisions of moderation about it.

use chrono::{DateTime, Utc};
use kernel::Change;

use crate::{Offer, OfferEvent};

/// Where an offer stands (contract: Offer status). Sellers move between the first two; moderation makes every move into
/// and out of the last two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OfferStatus {
    /// Shown on the marketplace.
    Published,
    /// Kept back by its seller.
    Draft,
    /// Waiting for moderation.
    Proposed,
    /// Refused by moderation, and hidden.
    Rejected,
}

impl OfferStatus {
    /// Every status, in the contract's order.
    pub const ALL: [Self; 4] = [Self::Published, Self::Draft, Self::Proposed, Self::Rejected];

    /// The contract's word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Published => "published",
            Self::Draft => "draft",
            Self::Proposed => "proposed",
            Self::Rejected => "rejected",
        }
    }

    /// The status with the given word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == word)
    }

    /// True where moderation alone may change the status.
    pub const fn is_locked(self) -> bool {
        matches!(self, Self::Proposed | Self::Rejected)
    }
}

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

#[cfg(test)]
mod tests {
    use super::OfferStatus;

    #[test]
    fn statuses_go_by_the_contracts_words() {
        let words = ["published", "draft", "proposed", "rejected"];
        assert_eq!(OfferStatus::ALL.map(OfferStatus::as_str), words);
        assert_eq!(words.map(OfferStatus::parse), OfferStatus::ALL.map(Some));
        for other in ["", "Published", "active"] {
            assert_eq!(OfferStatus::parse(other), None, "{other}");
        }
    }
}
