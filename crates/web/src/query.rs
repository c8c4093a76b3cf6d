//! Query strings: strict about names and encoding, all violations together (D11, D17, D21, D22, D118).
//!
//! A `+` is a plus sign, as RFC 3986 has it, not a space: no parameter of ours has a use for a space, while an
//! offset as in `updated_after=2026-01-01T00:00:00+02:00` is often sent without being encoded. `%2B` is the same.
//!
//! ```
//! use web::query;
//!
//! let names = ["limit", "after", "updated_after"];
//! let page = query::read("limit=1000&updated_after=2026-01-01T00:00:00+02:00", &names, |q| {
//!     (q.limit(), q.text("after"), q.date_time("updated_after"))
//! })
//! .unwrap();
//! assert_eq!(page.0, 200);
//! assert_eq!(page.1, None);
//! assert_eq!(web::timestamps::Timestamp::new(page.2.unwrap()).as_str(), "2025-12-31T22:00:00.000000Z");
//!
//! let bad = query::read("colour=red&after=&limit=+5", &names, |q| (q.limit(), q.date_time("updated_after")));
//! let entries = bad.unwrap_err().into_entries();
//! let paths: Vec<_> = entries.iter().map(|entry| entry.path().unwrap()).collect();
//! assert_eq!(paths, ["limit", "colour"]);
//! ```

mod limit;
mod selection;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::fmt::Display;
use std::ops::RangeInclusive;

use chrono::{DateTime, Utc};

pub use limit::{DEFAULT_LIMIT, LARGEST_LIMIT};
pub use selection::Selection;

use crate::decode::{Shape, one_of};
use crate::percent;
use crate::problem::Entry;
use crate::timestamps;
use crate::violations::{Message, Violations};

/// The parameters of one request, for the time in which they are read.
pub struct Query<'a> {
    known: &'a [&'static str],
    given: Vec<(&'a str, &'a str)>,
    violations: Violations,
}

/// Reads a raw query string (without its `?`). `known` are the names of the operation's parameters in the
/// contract's order, which is the order of the violations however `values` reads them. Any other name is a violation
/// too, and so is a name that is there twice.
pub fn read<'a, T>(
    raw: &'a str,
    known: &'a [&'static str],
    values: impl FnOnce(&mut Query<'a>) -> T,
) -> Result<T, Violations> {
    let mut query = Query {
        known,
        given: Vec::new(),
        violations: Violations::new(),
    };
    query.split(raw);
    let value = values(&mut query);
    let rank = |entry: &Entry| {
        known
            .iter()
            .position(|name| entry.path() == Some(name))
            .unwrap_or(known.len())
    };
    query.violations.sort_found_by_key(rank);
    query.violations.or(value)
}

impl<'a> Query<'a> {
    /// `limit`: any integer, clamped to 1 to [`LARGEST_LIMIT`]; [`DEFAULT_LIMIT`] where there is none (D17).
    pub fn limit(&mut self) -> u16 {
        self.clamped("limit", 1..=LARGEST_LIMIT, DEFAULT_LIMIT)
    }

    /// Any integer, clamped to this range; `default` where there is none (D17).
    pub fn clamped(&mut self, name: &'static str, range: RangeInclusive<u16>, default: u16) -> u16 {
        let Some(text) = self.text(name) else {
            return default;
        };
        limit::parse(&text, &range).unwrap_or_else(|| {
            self.refuse(name, format!("Must be an integer, such as {default}."));
            default
        })
    }

    /// `fields`: a comma-separated list of the names in `table`; all of them where there is none (D22, D118).
    pub fn fields(&mut self, table: &'static [&'static str]) -> Selection {
        let Some(text) = self.text("fields") else {
            return Selection::all(table);
        };
        Selection::parse(&text, table).unwrap_or_else(|message| {
            self.refuse("fields", message);
            Selection::all(table)
        })
    }

    /// One of `values`, each called what `called` says.
    pub fn one_of<T: Copy>(
        &mut self,
        name: &'static str,
        values: &'static [T],
        called: impl Fn(T) -> &'static str,
    ) -> Option<T> {
        let shape = one_of(values, called);
        self.parsed(name, |text| {
            shape
                .find(text)
                .ok_or_else(|| format!("Must be {}.", shape.expected()))
        })
    }

    /// A date-time with `Z` or an offset (D21).
    pub fn date_time(&mut self, name: &'static str) -> Option<DateTime<Utc>> {
        self.parsed(name, |text| {
            timestamps::parse(text).ok_or_else(|| format!("Must be {}.", timestamps::EXPECTED))
        })
    }

    /// What `parse` makes of the text; its error is the message, a sentence.
    pub fn parsed<T, E: Display>(
        &mut self,
        name: &'static str,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Option<T> {
        let text = self.text(name)?;
        parse(&text)
            .map_err(|error| self.refuse(name, error.to_string()))
            .ok()
    }

    /// The decoded text, which may be empty. Of a name given twice, nothing.
    pub fn text(&mut self, name: &'static str) -> Option<Cow<'a, str>> {
        let (_, raw) = self.given.iter().find(|(given, _)| *given == name)?;
        percent::decode(raw).or_else(|| {
            self.refuse(name, "Must be percent-encoded UTF-8 without NUL.");
            None
        })
    }

    /// Records that this parameter is wrong.
    pub fn refuse(&mut self, name: &'static str, message: impl Into<Message>) {
        self.violations.push(Entry::validation(name, message));
    }

    fn split(&mut self, raw: &'a str) {
        let mut twice: Vec<&'static str> = Vec::new();
        for pair in raw.split('&').filter(|pair| !pair.is_empty()) {
            let (raw_name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let name = percent::decode(raw_name);
            let known = name
                .as_deref()
                .and_then(|name| self.known.iter().find(|known| **known == name));
            let Some(known) = known.copied() else {
                self.unknown(name.as_deref().unwrap_or(raw_name));
                continue;
            };
            if self.given.iter().all(|(given, _)| *given != known) {
                self.given.push((known, value));
            } else if !twice.contains(&known) {
                twice.push(known);
                self.refuse(known, "Send this parameter once.");
            }
        }
        self.given.retain(|(name, _)| !twice.contains(name));
    }

    fn unknown(&mut self, name: &str) {
        let known = self.known;
        self.violations.push_unknown(|| {
            let message = match known {
                [] => "Unknown parameter; there are none here.".to_owned(),
                known => format!("Unknown parameter. The parameters here are {}.", known.join(", ")),
            };
            Entry::validation(name.to_owned(), message)
        });
    }
}
