//! The rules for registering an application (contract: Application registration).

use kernel::BrokenRules;

use crate::application::BUILT_IN_NAME;
use crate::{ClientType, Purpose, Rule, Scope, ScopeSet, documentation_link, redirect_uri};

const NAME: std::ops::RangeInclusive<usize> = 3..=40;
const MAX_DESCRIPTION: usize = 2000;
/// Maximum number of redirect URIs of an application.
pub const MAX_REDIRECT_URIS: usize = 20;

/// A submitted registration, not validated yet.
#[derive(Debug, Clone, Default)]
pub struct RawRegistration {
    /// See [`application_name`].
    pub name: String,
    /// Visible only to the owner; empty means none; at most 2000 characters.
    pub description: Option<String>,
    /// See [`documentation_link`].
    pub documentation_url: String,
    /// A name of [`Purpose`].
    pub purpose: String,
    /// A name of [`ClientType`].
    pub client_type: String,
    /// At most 20, without duplicates; see [`redirect_uri`].
    pub redirect_uris: Vec<String>,
    /// At least one; duplicates are merged.
    pub scopes: Vec<String>,
    /// Must be true.
    pub accept_terms: bool,
}

/// A valid registration. Only the uniqueness of its name is left for the store to check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registration {
    /// See [`application_name`].
    pub name: String,
    /// Visible only to the owner.
    pub description: Option<String>,
    /// An `https` URL.
    pub documentation_url: String,
    pub purpose: Purpose,
    /// Whether it gets a secret.
    pub client_type: ClientType,
    pub redirect_uris: Vec<String>,
    /// At least one.
    pub scopes: ScopeSet,
}

impl RawRegistration {
    /// Checks every rule and reports all violations in field order.
    pub fn check(self) -> Result<Registration, BrokenRules<Rule>> {
        let mut violations = BrokenRules::default();
        let name = violations.check("name", application_name(self.name));
        let description = violations.check("description", description(self.description));
        let documentation_url =
            violations.check("documentation_url", documentation_link(self.documentation_url));
        let purpose = violations.check(
            "purpose",
            one_of(&self.purpose, Purpose::parse, &Purpose::ALL.map(Purpose::as_str)),
        );
        let client_type = violations.check(
            "client_type",
            one_of(
                &self.client_type,
                ClientType::parse,
                &ClientType::ALL.map(ClientType::as_str),
            ),
        );
        let redirect_uris = redirect_uris(self.redirect_uris, &mut violations);
        let scopes = scopes(&self.scopes, &mut violations);
        if !self.accept_terms {
            violations.add("accept_terms", Rule::TermsAccepted);
        }
        let registration = || {
            Some(Registration {
                name: name?,
                description: description?,
                documentation_url: documentation_url?,
                purpose: purpose?,
                client_type: client_type?,
                redirect_uris,
                scopes: scopes?,
            })
        };
        violations.into_result(registration())
    }
}

/// A name of 3 to 40 characters: ASCII letters, digits, `.`, `_`, `-`, and single spaces between them.
pub fn application_name(name: String) -> Result<String, Rule> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, ' ' | '.' | '_' | '-');
    let spaces = name.starts_with(' ') || name.ends_with(' ') || name.contains("  ");
    if !NAME.contains(&name.chars().count()) || !name.chars().all(allowed) || spaces {
        return Err(Rule::Name);
    }
    if name.eq_ignore_ascii_case(BUILT_IN_NAME) {
        return Err(Rule::NameReserved);
    }
    Ok(name)
}

/// A description, which only the owner sees: at most 2000 characters; an empty text means none.
pub fn description(text: Option<String>) -> Result<Option<String>, Rule> {
    let text = text.filter(|text| !text.is_empty());
    if text
        .as_ref()
        .is_some_and(|text| text.chars().count() > MAX_DESCRIPTION)
    {
        return Err(Rule::MaxCharacters(MAX_DESCRIPTION));
    }
    Ok(text)
}

fn one_of<T>(word: &str, parse: impl Fn(&str) -> Option<T>, words: &[&str]) -> Result<T, Rule> {
    parse(word).ok_or_else(|| Rule::OneOf(words.join(", ")))
}

pub(crate) fn redirect_uris(given: Vec<String>, violations: &mut BrokenRules<Rule>) -> Vec<String> {
    if given.len() > MAX_REDIRECT_URIS {
        violations.add("redirect_uris", Rule::MaxAddresses(MAX_REDIRECT_URIS));
    }
    let mut valid = Vec::new();
    for (n, uri) in given.into_iter().take(MAX_REDIRECT_URIS).enumerate() {
        let path = format!("redirect_uris[{n}]");
        let repeated = valid.contains(&uri);
        match redirect_uri(uri) {
            Ok(_) if repeated => violations.add(path, Rule::Unique),
            Ok(uri) => valid.push(uri),
            Err(reason) => violations.add(path, reason),
        }
    }
    valid
}

/// Maximum number of unknown scopes that are reported, each by its name.
const MAX_UNKNOWN_SCOPES: usize = 20;

/// The named scopes. Adds a violation for each of the first 20 unknown ones, and one if no scope is given.
pub fn scopes<R: From<Rule>>(given: &[String], violations: &mut BrokenRules<R>) -> Option<ScopeSet> {
    let known: Vec<_> = given.iter().filter_map(|name| Scope::parse(name)).collect();
    let unknown = given
        .iter()
        .enumerate()
        .filter(|(_, name)| Scope::parse(name).is_none());
    for (n, name) in unknown.take(MAX_UNKNOWN_SCOPES) {
        violations.add(format!("scopes[{n}]"), Rule::KnownScope(name.clone()).into());
    }
    if given.is_empty() {
        violations.add("scopes", Rule::AnyScope.into());
    }
    (!known.is_empty()).then(|| known.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw() -> RawRegistration {
        RawRegistration {
            name: "Stock Sync".to_owned(),
            description: None,
            documentation_url: "https://docs.example".to_owned(),
            purpose: "own_use".to_owned(),
            client_type: "confidential".to_owned(),
            redirect_uris: vec!["https://app.example/cb".to_owned()],
            scopes: vec!["offers:read".to_owned(), "offers:read".to_owned()],
            accept_terms: true,
        }
    }

    fn paths(raw: RawRegistration) -> Vec<String> {
        raw.check()
            .unwrap_err()
            .iter()
            .map(|(path, _)| path.to_owned())
            .collect()
    }

    #[test]
    fn a_valid_registration_passes() {
        let registration = raw().check().unwrap();
        assert_eq!(registration.scopes.to_string(), "offers:read");
        assert_eq!(registration.redirect_uris, ["https://app.example/cb"]);
        let mut full = raw();
        full.description = Some("ż".repeat(2000));
        full.redirect_uris = (0..20).map(|n| format!("https://a.example/{n}")).collect();
        let registration = full.clone().check().unwrap();
        assert_eq!(registration.description, full.description);
        assert_eq!(registration.redirect_uris, full.redirect_uris);
    }

    #[test]
    fn every_violation_is_reported_in_field_order() {
        let all = RawRegistration {
            description: Some("x".repeat(2001)),
            ..RawRegistration::default()
        };
        let expected = "name description documentation_url purpose client_type scopes accept_terms";
        assert_eq!(paths(all).join(" "), expected);
        let mut some = raw();
        some.redirect_uris = ["https://a.example", "http://b.example", "https://a.example"]
            .map(str::to_owned)
            .into();
        some.scopes = vec!["offers:read".into(), "no:such".into()];
        assert_eq!(paths(some), ["redirect_uris[1]", "redirect_uris[2]", "scopes[1]"]);
        let mut many = raw();
        many.redirect_uris = (0..21).map(|n| format!("https://a.example/{n}")).collect();
        many.scopes = vec!["no:such".to_owned(); 21];
        assert_eq!(paths(many).len(), 1 + 20);
    }

    #[test]
    fn names() {
        for fine in ["abc", "Stock Sync 2.0", "a_b-c.d", &"x".repeat(40)] {
            assert!(application_name(fine.to_owned()).is_ok(), "{fine}");
        }
        let refused = [
            "",
            "ab",
            " abc",
            "abc ",
            "a  b",
            "żółw",
            "a/b",
            "a\tb",
            "personal TOKENS",
        ];
        for refused in refused.into_iter().chain([&*"x".repeat(41)]) {
            assert!(application_name(refused.to_owned()).is_err(), "{refused}");
        }
    }
}
