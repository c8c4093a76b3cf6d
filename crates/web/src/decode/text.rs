//! Strings.

use std::ops::RangeInclusive;

use super::bounds::counted;
use super::place::Place;
use super::shape::{Shape, wrong_kind};
use crate::json::Json;

/// The longest URI that is taken anywhere, in characters.
const LONGEST_URI: usize = 2048;

/// Any string; what it must be beyond that is added to it.
pub const fn text() -> Text {
    Text {
        length: 0..=usize::MAX,
        rule: None,
    }
}

/// A string of at most 2048 characters that `is_uri` accepts.
pub const fn uri(is_uri: fn(&str) -> bool) -> Text {
    Text {
        length: 1..=LONGEST_URI,
        rule: Some(Rule {
            test: is_uri,
            name: "an absolute URI, such as https://example.com/page",
        }),
    }
}

/// See [`text`].
#[derive(Clone, Debug)]
pub struct Text {
    length: RangeInclusive<usize>,
    rule: Option<Rule>,
}

#[derive(Clone, Copy, Debug)]
struct Rule {
    test: fn(&str) -> bool,
    name: &'static str,
}

impl Text {
    /// Its length in characters (Unicode scalar values).
    #[must_use]
    pub fn length(self, length: RangeInclusive<usize>) -> Self {
        Self { length, ..self }
    }

    /// It must pass `test`. `rule` says what that is and fits "Must be …": "of letters, digits and hyphens only".
    #[must_use]
    pub fn matching(self, test: fn(&str) -> bool, rule: &'static str) -> Self {
        Self {
            rule: Some(Rule { test, name: rule }),
            ..self
        }
    }

    pub(super) const fn length_range(&self) -> &RangeInclusive<usize> {
        &self.length
    }

    /// What is wrong with `text`, if anything is.
    pub(crate) fn fault(&self, text: &str) -> Option<String> {
        // A text that is far too long is not counted to its end.
        let count = text.chars().take(self.length.end().saturating_add(1)).count();
        if !self.length.contains(&count) {
            return Some(format!("Must have {}.", self.bounds().unwrap_or_default()));
        }
        match self.rule {
            Some(Rule { test, name }) if !test(text) => Some(format!("Must be {name}.")),
            _ => None,
        }
    }

    fn bounds(&self) -> Option<String> {
        counted(&self.length, "character")
    }
}

impl Shape for Text {
    type Value = String;

    fn expected(&self) -> String {
        let length = self
            .bounds()
            .map(|bounds| format!(" of {bounds}"))
            .unwrap_or_default();
        let rule = self
            .rule
            .map(|rule| format!(", {}", rule.name))
            .unwrap_or_default();
        format!("a string{length}{rule}")
    }

    fn read(&self, json: Json, place: &mut Place<'_>) -> Option<String> {
        let Json::String(text) = json else {
            return wrong_kind(self, &json, place);
        };
        match self.fault(&text) {
            None => Some(text),
            Some(fault) => place.refuse(fault),
        }
    }
}
