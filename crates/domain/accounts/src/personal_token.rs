//! Personal tokens: created by a seller for its own scripts.

use chrono::{DateTime, Utc};
use kernel::BrokenRules;
use oauth::ScopeSet;

use crate::Rule;

/// Maximum number of live personal tokens per seller.
pub const MAX_PERSONAL_TOKENS: usize = 20;
const MAX_NAME: usize = 100;

/// A request for a personal token, not validated yet.
#[derive(Debug, Clone, Default)]
pub struct PersonalTokenRequest {
    /// A label of 1 to 100 characters.
    pub name: String,
    /// At least one; reserved ones are allowed.
    pub scopes: Vec<String>,
    /// In the future; None for a token that does not expire.
    pub expires_at: Option<DateTime<Utc>>,
}

/// A validated request. Only the limit of live tokens is left for the store to check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValidPersonalToken {
    pub name: String,
    pub scopes: ScopeSet,
    pub expires_at: Option<DateTime<Utc>>,
}

/// The name of a token: a label of 1 to 100 characters, not only white space.
pub fn token_name(name: String) -> Result<String, Rule> {
    if name.trim().is_empty() || name.chars().count() > MAX_NAME {
        return Err(Rule::TokenName(MAX_NAME));
    }
    Ok(name)
}

impl PersonalTokenRequest {
    /// Checks every rule and reports all violations in field order.
    pub fn check(self, now: DateTime<Utc>) -> Result<ValidPersonalToken, BrokenRules<Rule>> {
        let mut violations = BrokenRules::new();
        let name = violations.check("name", token_name(self.name));
        let scopes = oauth::scopes(&self.scopes, &mut violations);
        if self.expires_at.is_some_and(|at| at <= now) {
            violations.add("expires_at", Rule::FutureExpiry);
        }
        let token = name.zip(scopes).map(|(name, scopes)| ValidPersonalToken {
            name,
            scopes,
            expires_at: self.expires_at,
        });
        violations.into_result(token)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_violation_is_reported() {
        let now = DateTime::<Utc>::UNIX_EPOCH;
        let request = |name: String, scope: &str, expires_at| PersonalTokenRequest {
            name,
            scopes: vec![scope.to_owned()],
            expires_at,
        };
        let violations = request(" ".into(), "x", Some(now)).check(now).unwrap_err();
        let paths = violations.iter().map(|(path, _)| path).collect::<Vec<_>>();
        assert_eq!(paths, ["name", "scopes[0]", "expires_at"]);
        // Lengths count characters.
        let longest = "ż".repeat(100);
        let valid = request(longest.clone(), "messaging", None).check(now).unwrap();
        assert_eq!(valid.scopes.to_string(), "messaging");
        assert_eq!(valid.name, longest);
        for length in [101, 102] {
            assert!(request("ż".repeat(length), "messaging", None).check(now).is_err());
        }
    }
}
