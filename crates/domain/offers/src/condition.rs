//! Entity tags of offers, and the condition of a change (RFC 9110 §8.8.3, §13.1.1).

use std::fmt;

use kernel::Invalid;

use crate::Offer;

/// The strong entity tag of an offer's state: made of its id and `updated_at`, so that it changes exactly when a
/// field does that the API returns. Displayed with its quotes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ETag {
    id: u128,
    /// Microseconds since the epoch.
    updated_at: i64,
}

impl fmt::Display for ETag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{:032x}{:016x}\"", self.id, self.updated_at)
    }
}

impl Offer {
    pub fn etag(&self) -> ETag {
        ETag {
            id: self.id.uuid().as_u128(),
            updated_at: self.updated_at.timestamp_micros(),
        }
    }
}

/// The offer's state on which a change is conditional.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IfMatch {
    /// `*`: any state.
    Any,
    /// The state with this tag; None for a tag that no state has.
    Tag(Option<ETag>),
}

impl IfMatch {
    /// Parses `*` or one tag. A weak tag is well-formed and matches nothing.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        if text == "*" {
            return Ok(Self::Any);
        }
        let is_tag_character = |byte| matches!(byte, 0x21 | 0x23..=0x7e | 0x80..);
        let opaque = text.strip_prefix("W/").unwrap_or(text).strip_prefix('"');
        let opaque = opaque.and_then(|rest| rest.strip_suffix('"'));
        match opaque {
            Some(opaque) if opaque.bytes().all(is_tag_character) => {
                let tag = opaque.split_at_checked(32).and_then(|(id, updated_at)| {
                    let id = u128::from_str_radix(id, 16).ok()?;
                    let updated_at = i64::from_str_radix(updated_at, 16).ok()?;
                    Some(ETag { id, updated_at })
                });
                // Only the one spelling is a tag of ours.
                Ok(Self::Tag(tag.filter(|tag| tag.to_string() == text)))
            }
            _ => Err(Invalid::new("must be one entity tag in quotes, or `*`")),
        }
    }

    /// Whether an existing offer is in this state.
    pub fn is_met_by(self, offer: &Offer) -> bool {
        match self {
            Self::Any => true,
            Self::Tag(tag) => tag == Some(offer.etag()),
        }
    }
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;

    use super::*;
    use crate::OfferStatus;
    use crate::patch::tests::offer;

    #[test]
    fn a_tag_is_met_by_the_state_that_has_it() {
        let now = offer(OfferStatus::Draft, None, None);
        let (mut later, mut other) = (now.clone(), now.clone());
        later.updated_at += TimeDelta::microseconds(1);
        other.id = uuid::Uuid::from_u128(3).into();
        let tag = now.etag().to_string();
        let parsed = IfMatch::parse(&tag).unwrap();
        assert!(parsed.is_met_by(&now) && !parsed.is_met_by(&later) && !parsed.is_met_by(&other));
        assert!(IfMatch::parse("*").unwrap().is_met_by(&now));
        let weak = format!("W/{tag}");
        for unmet in [weak.as_str(), "\"\"", "\"a\"", "\"ż!~\"", &tag.to_uppercase()] {
            assert!(!IfMatch::parse(unmet).unwrap().is_met_by(&now), "{unmet}");
        }
        let list = format!("{tag}, {tag}");
        for malformed in ["", "\"", "a", "w/\"a\"", "\"a", "\"a b\"", "**", &list] {
            assert!(IfMatch::parse(malformed).is_err(), "{malformed}");
        }
    }
}
