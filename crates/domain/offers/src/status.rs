//! The status of an offer.

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
