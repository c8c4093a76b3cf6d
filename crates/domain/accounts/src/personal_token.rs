//! Personal tokens: created by a seller for its own scripts.

use chrono::{DateTime, Utc};
use kernel::BrokenRules;
use oauth::ScopeSet;

use crate::Rule;
use crate::account::is_name;

/// Maximum number of live personal tokens per seller.
pub const MAX_PERSONAL_TOKENS: usize = 20;
const MAX_NAME: usize = 100;

/// A token to be created. Only what needs the database is left to check: that its expiry is in the future, and
/// the limit of live tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewPersonalToken {
    /// See [`token_name`].
    pub name: String,
    /// At least one; reserved ones are allowed.
    pub scopes: ScopeSet,
    /// None for a token that does not expire.
    pub expires_at: Option<DateTime<Utc>>,
}

/// The name of a token: a label of 1 to 100 characters, at least one of them visible, without control characters.
pub fn token_name(name: String) -> Result<String, Rule> {
    if !is_name(&name, MAX_NAME) {
        return Err(Rule::TokenName(MAX_NAME));
    }
    Ok(name)
}

impl NewPersonalToken {
    /// Checks the values of a form and reports all violations in field order.
    pub fn check(
        name: String,
        scopes: &[String],
        expires_at: Option<DateTime<Utc>>,
    ) -> Result<Self, BrokenRules<Rule>> {
        let mut violations = BrokenRules::default();
        let name = violations.check("name", token_name(name));
        let scopes = oauth::scopes(scopes, &mut violations);
        let token = name.zip(scopes).map(|(name, scopes)| Self {
            name,
            scopes,
            expires_at,
        });
        violations.into_result(token)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_violation_is_reported() {
        let check = |name: String, scope: &str| NewPersonalToken::check(name, &[scope.to_owned()], None);
        let violations = check(" ".into(), "x").unwrap_err();
        let paths = violations.iter().map(|(path, _)| path).collect::<Vec<_>>();
        assert_eq!(paths, ["name", "scopes[0]"]);
        // Lengths count characters.
        let longest = "ż".repeat(100);
        let valid = check(longest.clone(), "messaging").unwrap();
        assert_eq!(valid.scopes.to_string(), "messaging");
        assert_eq!(valid.name, longest);
        for refused in ["ż".repeat(101), "\u{200b}\u{202e}".to_owned(), "a\nb".to_owned()] {
            assert!(check(refused, "messaging").is_err());
        }
    }
}
