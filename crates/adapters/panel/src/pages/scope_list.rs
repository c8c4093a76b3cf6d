//! The boxes of a form that scopes are ticked in.

use oauth::{Scope, ScopeSet};

/// Scopes that stand together: those in use, or those that are reserved for announced resources.
pub(super) struct Group {
    pub(super) reserved: bool,
    pub(super) boxes: Vec<Tickable>,
}

/// A scope that can be ticked.
pub(super) struct Tickable {
    /// The id of its box; the first one's is what the summary of errors leads to.
    pub(super) id: String,
    pub(super) scope: Scope,
    pub(super) ticked: bool,
}

/// Every scope, ticked where its name is among these.
pub(super) fn tickable(ticked: &[String]) -> [Group; 2] {
    let shown = |(place, scope): (usize, &Scope)| Tickable {
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

/// The names of a set's scopes.
pub(super) fn names(scopes: ScopeSet) -> Vec<String> {
    scopes.iter().map(|scope| scope.as_str().to_owned()).collect()
}
