//! Scopes as people see them.

use oauth::{Scope, ScopeSet};

use crate::texts::Texts;

/// A scope in plain words.
pub(super) struct Granted {
    pub(super) name: &'static str,
    pub(super) label: &'static str,
    pub(super) dangerous: bool,
}

/// A scope that can be ticked.
pub(super) struct Tickable {
    /// The id of its box; the first one's is what the summary of errors leads to.
    pub(super) id: String,
    pub(super) name: &'static str,
    pub(super) label: &'static str,
    pub(super) dangerous: bool,
    pub(super) ticked: bool,
}

/// Scopes that stand together: those in use, or those that are reserved for announced resources.
pub(super) struct Group {
    pub(super) reserved: bool,
    pub(super) boxes: Vec<Tickable>,
}

/// What changes something, or shows buyers' personal data.
pub(super) const fn is_dangerous(scope: Scope) -> bool {
    match scope {
        Scope::OffersWrite
        | Scope::OrdersRead
        | Scope::ShipmentsWrite
        | Scope::SettingsWrite
        | Scope::OrdersWrite
        | Scope::ReturnsRead
        | Scope::ReturnsWrite
        | Scope::PricelistsWrite
        | Scope::PoliciesWrite
        | Scope::Messaging => true,
        Scope::OffersRead
        | Scope::SettingsRead
        | Scope::ShipmentsRead
        | Scope::PricelistsRead
        | Scope::PoliciesRead
        | Scope::BillingRead
        | Scope::ProfileRead => false,
    }
}

/// The scopes of a set.
pub(super) fn granted(scopes: ScopeSet, t: &Texts) -> Vec<Granted> {
    let shown = |scope: Scope| Granted {
        name: scope.as_str(),
        label: (t.scope)(scope),
        dangerous: is_dangerous(scope),
    };
    scopes.iter().map(shown).collect()
}

/// Every scope, ticked where its name is among these.
pub(super) fn tickable(ticked: &[String], t: &Texts) -> Vec<Group> {
    let shown = |(place, scope): (usize, &Scope)| Tickable {
        id: match place {
            0 => "scopes".to_owned(),
            _ => format!("scopes-{place}"),
        },
        name: scope.as_str(),
        label: (t.scope)(*scope),
        dangerous: is_dangerous(*scope),
        ticked: ticked.iter().any(|name| name == scope.as_str()),
    };
    let group = |reserved: bool| Group {
        reserved,
        boxes: Scope::ALL
            .iter()
            .enumerate()
            .filter(|(_, scope)| Scope::IN_USE.contains(scope) != reserved)
            .map(shown)
            .collect(),
    };
    vec![group(false), group(true)]
}

/// The names of a set's scopes.
pub(super) fn names(scopes: ScopeSet) -> Vec<String> {
    scopes.iter().map(|scope| scope.as_str().to_owned()).collect()
}
