//! The checkboxes for scopes.

use oauth::{Scope, ScopeSet};

/// A group of scopes: those in use, or those reserved for announced resources.
pub(super) struct Group {
    pub(super) reserved: bool,
    pub(super) boxes: Vec<ScopeOption>,
}

/// A scope that can be ticked.
pub(super) struct ScopeOption {
    /// The id of its checkbox; the summary of errors links to the first one's.
    pub(super) id: String,
    pub(super) scope: Scope,
    pub(super) ticked: bool,
}

/// Every scope, ticked if its name is among these.
pub(super) fn scope_options(ticked: &[String]) -> [Group; 2] {
    let shown = |(place, scope): (usize, &Scope)| ScopeOption {
        id: match place {
            0 => "scopes".to_owned(),
            _ => format!("scopes-{place}"),
        },
        scope: *scope,
        ticked: ticked.iter().any(|name| name == scope.as_str()),
    };
    [false, true].map(|reserved| {
        let all = Scope::ALL.iter().enumerate();
        let boxes = all.filter(|(_, scope)| Scope::IN_USE.contains(scope) != reserved);
        let boxes = boxes.map(shown).collect();
        Group { reserved, boxes }
    })
}

pub(super) fn names(scopes: ScopeSet) -> Vec<String> {
    scopes.iter().map(|scope| scope.as_str().to_owned()).collect()
}
