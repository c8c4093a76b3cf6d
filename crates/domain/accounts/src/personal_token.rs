//! Personal tokens: created by a seller for its own scripts.

use chrono::{DateTime, Utc};
use kernel::{Invalid, Violations};
use oauth::{Scope, ScopeSet};

/// Maximum number of live personal tokens per seller.
pub const PERSONAL_TOKENS_MAX: usize = 20;
const NAME_MAX: usize = 100;

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
pub struct PersonalTokenRules {
    pub name: String,
    pub scopes: ScopeSet,
    pub expires_at: Option<DateTime<Utc>>,
}

impl PersonalTokenRequest {
    /// Checks every rule and reports all violations in field order.
    pub fn check(self, now: DateTime<Utc>) -> Result<PersonalTokenRules, Violations> {
        let mut violations = Violations::new();
        if self.name.trim().is_empty() || self.name.chars().count() > NAME_MAX {
            violations.add(
                "name",
                Invalid::new(format!("must have 1 to {NAME_MAX} characters")),
            );
        }
        if self.scopes.is_empty() {
            violations.add("scopes", Invalid::new("must name at least one scope"));
        }
        for (n, name) in self
            .scopes
            .iter()
            .enumerate()
            .filter(|(_, name)| Scope::parse(name).is_none())
        {
            violations.add(
                format!("scopes[{n}]"),
                Invalid::new(format!("must be a known scope; `{name}` is none")),
            );
        }
        if self.expires_at.is_some_and(|at| at <= now) {
            violations.add(
                "expires_at",
                Invalid::new("must lie in the future, or be absent for a token that does not expire"),
            );
        }
        violations.into_result()?;
        let scopes = self.scopes.iter().filter_map(|name| Scope::parse(name)).collect();
        Ok(PersonalTokenRules {
            name: self.name,
            scopes,
            expires_at: self.expires_at,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_counts_characters() {
        let check = |name: String| {
            let request = PersonalTokenRequest {
                name,
                scopes: vec!["messaging".into()],
                expires_at: None,
            };
            request.check(DateTime::<Utc>::UNIX_EPOCH)
        };
        let longest = "ż".repeat(100);
        assert_eq!(check(longest.clone()).unwrap().name, longest);
        assert!(check("ż".repeat(101)).is_err() && check("ż".repeat(102)).is_err());
    }

    #[test]
    fn every_rule_is_reported() {
        let now = DateTime::<Utc>::UNIX_EPOCH;
        let bad = PersonalTokenRequest {
            name: " ".into(),
            scopes: vec!["x".into()],
            expires_at: Some(now),
        };
        let violations = bad.check(now).unwrap_err();
        assert_eq!(
            violations.iter().map(|(path, _)| path).collect::<Vec<_>>(),
            ["name", "scopes[0]", "expires_at"]
        );
        let fine = PersonalTokenRequest {
            name: "script".into(),
            scopes: vec!["messaging".into()],
            expires_at: None,
        };
        assert_eq!(fine.check(now).unwrap().scopes.to_string(), "messaging");
    }
}
