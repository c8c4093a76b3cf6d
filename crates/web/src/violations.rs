//! Collects all violations of a request instead of stopping at the first.

use std::borrow::Cow;

use crate::problem::{Entry, MAX_ENTRIES, Problem};

/// Entries in the order in which they are reported. Each part of a request (headers, query, body) has its
/// own; [`both`] joins them. No more are kept than a response can carry.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct Violations {
    found: Vec<Entry>,
    unknown: Vec<Entry>,
}

impl Violations {
    pub fn push(&mut self, entry: Entry) {
        if !self.is_full() {
            self.found.push(entry);
        }
    }

    /// Whether an answer has no room for what else is found.
    pub(crate) fn is_full(&self) -> bool {
        self.found.len() >= MAX_ENTRIES
    }

    /// Adds an entry about an unknown name; these come after all others of the same part (D112). `describe`
    /// is called only if there is room left.
    pub(crate) fn push_unknown(&mut self, describe: impl FnOnce() -> Entry) {
        if self.unknown.len() < MAX_ENTRIES {
            self.unknown.push(describe());
        }
    }

    pub fn is_empty(&self) -> bool {
        self.found.is_empty() && self.unknown.is_empty()
    }

    /// `value` if there are no violations.
    pub fn or<T>(self, value: T) -> Result<T, Self> {
        if self.is_empty() { Ok(value) } else { Err(self) }
    }

    /// The entries, unknown names last, at most [`MAX_ENTRIES`].
    pub fn into_entries(self) -> Vec<Entry> {
        let mut entries = self.found;
        entries.extend(self.unknown);
        entries.truncate(MAX_ENTRIES);
        entries
    }

    pub(crate) fn sort_found_by_key<K: Ord>(&mut self, key: impl FnMut(&Entry) -> K) {
        self.found.sort_by_key(key);
    }

    fn then(self, next: Self) -> Self {
        let mut entries = self.into_entries();
        entries.extend(next.into_entries());
        Self {
            found: entries,
            unknown: Vec::new(),
        }
    }
}

impl From<Entry> for Violations {
    fn from(entry: Entry) -> Self {
        Self {
            found: vec![entry],
            unknown: Vec::new(),
        }
    }
}

impl From<Violations> for Problem {
    fn from(violations: Violations) -> Self {
        Self::of(violations.into_entries())
    }
}

/// Both values, or the violations of both parts, those of the first part first.
pub fn both<A, B>(first: Result<A, Violations>, second: Result<B, Violations>) -> Result<(A, B), Violations> {
    match (first, second) {
        (Ok(a), Ok(b)) => Ok((a, b)),
        (Err(a), Err(b)) => Err(a.then(b)),
        (Err(only), Ok(_)) | (Ok(_), Err(only)) => Err(only),
    }
}

/// A message, static or formatted.
pub(crate) type Message = Cow<'static, str>;
