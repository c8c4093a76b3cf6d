//! Rejected input: what is wrong with a value, in words that tell the caller what to do.

use std::fmt;

/// Why one value is rejected. The text is a predicate about the value, in English, without a full stop ("must
/// be at least 3 characters"), so that an adapter can put the field's name before it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Invalid(String);

impl Invalid {
    pub fn new(reason: impl Into<String>) -> Self {
        Self(reason.into())
    }
}

/// All rules that a record breaks, in its field order. The reason is an enum where a reader has to tell the
/// rules apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrokenRules<R = Invalid>(Vec<(String, R)>);

impl<R> Default for BrokenRules<R> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<R> BrokenRules<R> {
    /// Adds a broken rule for `path` (such as `price.amount` or `redirect_uris[2]`).
    pub fn add(&mut self, path: impl Into<String>, reason: R) {
        self.0.push((path.into(), reason));
    }

    /// The value, or None after adding the reason.
    pub fn check<T>(&mut self, path: impl Into<String>, result: Result<T, R>) -> Option<T> {
        result.map_err(|reason| self.add(path, reason)).ok()
    }

    /// The record, if no rule is broken. Without a record one must be.
    pub fn into_result<T>(self, record: Option<T>) -> Result<T, Self> {
        record.filter(|_| self.0.is_empty()).ok_or(self)
    }

    /// Each path with its reason.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &R)> {
        self.0.iter().map(|(path, reason)| (path.as_str(), reason))
    }
}

impl<R: fmt::Display> fmt::Display for BrokenRules<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rules = self.iter().map(|(path, reason)| format!("{path} {reason}"));
        f.write_str(&rules.collect::<Vec<_>>().join("; "))
    }
}

impl<R: fmt::Debug + fmt::Display> std::error::Error for BrokenRules<R> {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_violation_is_returned_in_field_order() {
        let mut violations = BrokenRules::default();
        assert_eq!(violations.check("title", Ok("Kettle")), Some("Kettle"));
        let negative = Err::<i64, _>(Invalid::new("must not be negative"));
        assert_eq!(violations.check("stock", negative), None);
        violations.add("urls[2]", Invalid::new("must be absolute"));

        let paths = violations.iter().map(|(path, _)| path);
        assert!(paths.eq(["stock", "urls[2]"]));
        let text = "stock must not be negative; urls[2] must be absolute";
        assert_eq!(violations.to_string(), text);
        assert_eq!(violations.clone().into_result(Some(())), Err(violations));
        let mut violations = BrokenRules::<Invalid>::default();
        assert_eq!(violations.check("stock", Ok(3)), Some(3));
        assert_eq!(violations.into_result(Some(())), Ok(()));
    }
}
