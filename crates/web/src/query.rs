//! Parses query strings: strict about names and encoding, reports all violations together (D11, D17, D21,
//! D22, D118).
//!
//! A `+` is a plus sign, as in RFC 3986, not a space: clients often send an offset as in
//! `updated_after=2026-01-01T00:00:00+02:00` unencoded. `%2B` is a plus sign too. Only in [`Query::words`] a
//! `+` is a space, as most clients encode one.
//!
//! ```
//! use web::openapi::Parameter;
//! use web::query;
//!
//! let names = ["limit", "after", "updated_after"].map(Parameter::undocumented);
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

use std::borrow::Cow;
use std::fmt::Display;
use std::ops::RangeInclusive;

use chrono::{DateTime, Utc};
use kernel::MAX_PAGE_SIZE;

use crate::decode::{Place, Shape, date_time, one_of, text_of};
use crate::form::{form_decode, percent_decode, raw_pairs};
use crate::json::Json;
use crate::openapi::Parameter;
use crate::problem::Entry;
use crate::schema::string;
use crate::violations::{Message, Violations};

/// The page size without `limit` (contract: Limits).
pub const DEFAULT_LIMIT: u16 = 50;

/// Selects fields. The OpenAPI document adds their names.
pub const FIELDS: Parameter = Parameter::new("fields", string);

/// The query parameters of one request while they are read.
pub struct Query<'a> {
    known: &'a [Parameter],
    given: Vec<(&'a str, &'a str)>,
    violations: Violations,
}

/// Parses a raw query string (without its `?`). `known` are the operation's parameters in the contract's
/// order; violations are reported in that order, however `values` reads them. An unknown or repeated name is
/// a violation.
pub fn read<'a, T>(
    raw: &'a str,
    known: &'a [Parameter],
    values: impl FnOnce(&mut Query<'a>) -> T,
) -> Result<T, Violations> {
    let mut query = Query {
        known,
        given: Vec::new(),
        violations: Violations::default(),
    };
    query.split(raw);
    let value = values(&mut query);
    let rank = |entry: &Entry| {
        known
            .iter()
            .position(|parameter| entry.path() == Some(parameter.name))
            .unwrap_or(known.len())
    };
    query.violations.sort_found_by_key(rank);
    query.violations.or(value)
}

impl<'a> Query<'a> {
    /// `limit`: any integer, clamped to 1 to [`MAX_PAGE_SIZE`]; [`DEFAULT_LIMIT`] if absent (D17).
    pub fn limit(&mut self) -> u16 {
        self.clamped("limit", 1..=MAX_PAGE_SIZE, DEFAULT_LIMIT)
    }

    /// Any integer, clamped to this range; `default` if absent (D17).
    pub fn clamped(&mut self, name: &'static str, range: RangeInclusive<u16>, default: u16) -> u16 {
        let wrong = || format!("Must be an integer, such as {default}.");
        self.parsed(name, |text| clamped(text, &range).ok_or_else(wrong))
            .unwrap_or(default)
    }

    /// `fields`: a comma-separated list of names in `table`; all of them if absent (D22, D118).
    pub fn fields(&mut self, table: &[&str]) -> Selection {
        self.parsed("fields", |text| Selection::parse(text, table))
            .unwrap_or(Selection::ALL)
    }

    /// One of `values`, named by `called`.
    pub fn one_of<T: Copy>(
        &mut self,
        name: &'static str,
        values: &'static [T],
        called: impl Fn(T) -> &'static str + Copy,
    ) -> Option<T> {
        let text = self.text(name)?.into_owned();
        self.read(name, text, &one_of(values, called))
    }

    /// A date-time with `Z` or an offset (D21).
    pub fn date_time(&mut self, name: &'static str) -> Option<DateTime<Utc>> {
        let text = self.text(name)?.into_owned();
        self.read(name, text, &date_time())
    }

    /// The text parsed by `parse`; its error is the message, a sentence.
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

    /// The decoded text, which may be empty. `None` if the name is given twice.
    pub fn text(&mut self, name: &'static str) -> Option<Cow<'a, str>> {
        self.decoded(name, percent_decode)
    }

    /// The text of at most this many characters, which may be empty and have spaces.
    pub fn words(&mut self, name: &'static str, most: usize) -> Option<String> {
        let words = self.decoded(name, form_decode)?;
        self.read(name, words, &text_of(0..=most))
    }

    /// Reads a value as in a body.
    fn read<S: Shape>(&mut self, name: &'static str, text: String, shape: &S) -> Option<S::Value> {
        let mut body = Place::root(&mut self.violations);
        shape.read(Json::String(text), &mut body.field(name))
    }

    fn decoded<T>(&mut self, name: &'static str, decode: impl FnOnce(&'a str) -> Option<T>) -> Option<T> {
        let (_, raw) = self.given.iter().find(|(given, _)| *given == name)?;
        decode(raw).or_else(|| {
            self.refuse(name, "Must be percent-encoded UTF-8 without NUL.");
            None
        })
    }

    /// The names that were sent, without those that were sent twice.
    pub fn names(&self) -> impl Iterator<Item = &'a str> {
        self.given.iter().map(|(name, _)| *name)
    }

    /// Records a violation of this parameter.
    pub fn refuse(&mut self, name: &'static str, message: impl Into<Message>) {
        self.violations.push(Entry::validation(name, message));
    }

    fn split(&mut self, raw: &'a str) {
        let all = self.known;
        for (raw_name, value) in raw_pairs(raw) {
            let name = percent_decode(raw_name);
            match all.iter().find(|known| name.as_deref() == Some(known.name)) {
                Some(known) => self.given.push((known.name, value)),
                None => self.unknown(name.as_deref().unwrap_or(raw_name)),
            }
        }
        for known in all {
            let has_name = |(given, _): &(&str, &str)| *given == known.name;
            if self.given.iter().filter(|pair| has_name(pair)).count() > 1 {
                self.given.retain(|pair| !has_name(pair));
                self.refuse(known.name, "Send this parameter once.");
            }
        }
    }

    fn unknown(&mut self, name: &str) {
        let known = self.known;
        self.violations.push_unknown(|| {
            let message = match known {
                [] => "Unknown parameter; this operation has no parameters.".to_owned(),
                known => {
                    let names: Vec<_> = known.iter().map(|known| known.name).collect();
                    format!("Unknown parameter. Known parameters: {}.", names.join(", "))
                }
            };
            Entry::validation(name.to_owned(), message)
        });
    }
}

/// `-?[0-9]+` of any magnitude, clamped to the range; `None` for any other text (D17, D118).
fn clamped(text: &str, range: &RangeInclusive<u16>) -> Option<u16> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    // The digits are checked, so parsing fails only if there are too many.
    let magnitude = digits.parse().unwrap_or(u16::MAX);
    let signed = if digits.len() < text.len() { 0 } else { magnitude };
    Some(signed.clamp(*range.start(), *range.end()))
}

/// A selection of fields from a table of at most 64 names, one bit each. `id` is always selected if the table
/// has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Selection(u64);

impl Selection {
    pub const ALL: Self = Self(u64::MAX);

    /// Every field of `table` but `names`.
    pub fn without(table: &[&str], names: &[&str]) -> Self {
        let bits = table.iter().zip(0..).filter(|(name, _)| names.contains(name));
        Self(bits.fold(u64::MAX, |rest, (_, index)| rest & !bit(index)))
    }

    /// The fields in `text`, separated by commas; a name may be repeated. The error is a message.
    fn parse(text: &str, table: &[&str]) -> Result<Self, String> {
        let bit_of = |name: &str| table.iter().position(|known| *known == name).map(bit);
        let mut chosen = bit_of("id").unwrap_or(0);
        for name in text.split(',') {
            chosen |= bit_of(name).ok_or_else(|| {
                let name = name.chars().take(40).collect::<String>();
                let (table, name) = (table.join(", "), name.escape_debug());
                format!("Unknown field `{name}`. Send top-level fields, separated by commas alone. Known fields: {table}.")
            })?;
        }
        Ok(Self(chosen))
    }

    /// Whether the field at this index of the table is selected.
    pub const fn has_index(&self, index: usize) -> bool {
        self.0 & bit(index) != 0
    }
}

const fn bit(index: usize) -> u64 {
    match index {
        0..64 => 1 << index,
        _ => 0,
    }
}
