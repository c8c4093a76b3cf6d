//! The public id of an application.

use std::{fmt, str::FromStr};

use kernel::Invalid;
use uuid::Uuid;

const PREFIX: &str = "psa_";

/// `psa_` and 32 lowercase hexadecimal digits; permanent and public.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientId(Uuid);

impl ClientId {
    /// The stored form.
    pub const fn uuid(self) -> Uuid {
        self.0
    }
}

impl From<Uuid> for ClientId {
    fn from(id: Uuid) -> Self {
        Self(id)
    }
}

impl fmt::Display for ClientId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}", self.0.simple())
    }
}

impl FromStr for ClientId {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let id = text
            .strip_prefix(PREFIX)
            .and_then(|digits| Uuid::try_parse(digits).ok())
            .map(Self);
        id.filter(|id| id.to_string() == text)
            .ok_or_else(|| Invalid::new("is not a client_id"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_id_has_one_spelling() {
        let id = ClientId::from(Uuid::from_u128(0xabc));
        assert_eq!(id.to_string(), "psa_00000000000000000000000000000abc");
        assert_eq!(id.to_string().parse(), Ok(id));
        let text = id.to_string();
        for other in [&text.replace("abc", "ABC"), &text[4..], "psa_", "psa_x"] {
            assert!(other.parse::<ClientId>().is_err(), "{other}");
        }
    }
}
