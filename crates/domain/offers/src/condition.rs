//! Entity tags of offers, and the condition of a change (RFC 9110 §8.8.3, §13.1.1).

use kernel::Invalid;

use crate::Offer;

impl Offer {
    /// The strong entity tag of its state, with the quotes: made of its id and `updated_at`, so that it changes
    /// exactly when a field does that the API returns.
    pub fn etag(&self) -> String {
        let (id, updated_at) = (self.id.uuid().as_u128(), self.updated_at.timestamp_micros());
        format!("\"{id:032x}{updated_at:016x}\"")
    }
}

/// The offer's state on which a change is conditional: `*` for any, or the tag that it has, spelled exactly so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IfMatch(String);

impl IfMatch {
    /// Parses `*` or one tag. A weak tag is well-formed and matches nothing.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let is_tag_character = |byte| matches!(byte, 0x21 | 0x23..=0x7e | 0x80..);
        let opaque = text.strip_prefix("W/").unwrap_or(text).strip_prefix('"');
        match opaque.and_then(|rest| rest.strip_suffix('"')) {
            Some(opaque) if opaque.bytes().all(is_tag_character) => Ok(Self(text.to_owned())),
            None if text == "*" => Ok(Self(text.to_owned())),
            _ => Err(Invalid::new("must be one entity tag in quotes, or `*`")),
        }
    }

    /// Whether an existing offer is in this state.
    pub fn is_met_by(&self, offer: &Offer) -> bool {
        self.0 == "*" || self.0 == offer.etag()
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
        let tag = now.etag();
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
