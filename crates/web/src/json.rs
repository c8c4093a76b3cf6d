//! Strict JSON: the grammar of `serde_json`, without duplicate keys (compared unescaped), NUL in any string
//! or key, a byte order mark, and more than [`MAX_DEPTH`] levels. Integers stay distinct from other numbers
//! (D10).
//!
//! `serde_json` gives a visitor the same `f64` for `1e3`, for `-0` and for integers beyond 64 bits. So numbers are
//! taken out before the rest is read, and each is classified by its text.

#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::{fmt, vec};

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::problem::Entry;
use crate::violations::Violations;

/// The maximum depth of nested arrays and objects; the outermost one is level 1.
pub const MAX_DEPTH: usize = 32;

/// A JSON value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Json {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number without fraction and exponent, such as `-17`.
    Integer(i64),
    /// An integer that does not fit into 64 bits.
    HugeInteger,
    /// Any other number, such as `1999.0` or `1e3`. The product uses no such numbers, so the value is
    /// dropped.
    Fraction,
    /// A string, without NUL.
    String(String),
    /// An array.
    Array(Vec<Json>),
    /// An object.
    Object(Object),
}

impl Json {
    /// Parses one JSON text (RFC 8259) to its end.
    pub fn parse(text: &[u8]) -> Result<Self, JsonError> {
        let text = std::str::from_utf8(text).map_err(|_| JsonError::NotUtf8)?;
        if text.starts_with('\u{feff}') {
            return Err(JsonError::ByteOrderMark);
        }
        if text.trim_ascii().is_empty() {
            return Err(JsonError::Empty);
        }
        let IgnoredAny = serde_json::from_str(text).map_err(|error| JsonError::Syntax(error.to_string()))?;
        let (plain, numbers) = without_numbers(text);
        let mut reading = Reading {
            numbers: numbers.into_iter(),
            levels: MAX_DEPTH,
            failure: None,
        };
        let read = reading.deserialize(&mut serde_json::Deserializer::from_str(&plain));
        read.map_err(|_| reading.failure.unwrap_or(JsonError::LoneSurrogate))
    }

    /// The kind of value, with its article: "a string".
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "a boolean",
            Self::Integer(_) | Self::HugeInteger => "an integer",
            Self::Fraction => "a number with a fraction or an exponent",
            Self::String(_) => "a string",
            Self::Array(_) => "an array",
            Self::Object(_) => "an object",
        }
    }
}

/// The members of an object, in the order sent, without duplicate names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Object(Vec<(String, Json)>);

impl Object {
    /// Parses one JSON text that must be an object.
    pub fn parse(text: &[u8]) -> Result<Self, JsonError> {
        match Json::parse(text)? {
            Json::Object(object) => Ok(object),
            other => Err(JsonError::NotAnObject(other.kind())),
        }
    }

    /// Removes and returns the value of this name.
    pub fn take(&mut self, name: &str) -> Option<Json> {
        let index = self.0.iter().position(|(key, _)| key == name)?;
        Some(self.0.remove(index).1)
    }

    /// The names, in the order sent.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(key, _)| key.as_str())
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn into_members(self) -> Vec<(String, Json)> {
        self.0
    }
}

/// Why a text was rejected. The messages are for the client and quote only what it sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JsonError {
    #[error("Invalid JSON: not UTF-8.")]
    NotUtf8,
    #[error("Invalid JSON: starts with a byte order mark.")]
    ByteOrderMark,
    #[error("Invalid JSON: empty.")]
    Empty,
    /// The text breaks the grammar; says how and where.
    #[error("Invalid JSON: {0}.")]
    Syntax(String),
    /// A `\u` escape of a surrogate without its other half.
    #[error("Invalid JSON: unpaired surrogate in a string.")]
    LoneSurrogate,
    #[error("The JSON has the key {0:?} twice in one object.")]
    DuplicateKey(String),
    #[error("Invalid JSON: a string must not contain U+0000.")]
    Nul,
    #[error("Invalid JSON: nested deeper than {MAX_DEPTH} levels.")]
    TooDeep,
    /// The value is valid but not an object; names its kind.
    #[error("The JSON must be an object, not {0}.")]
    NotAnObject(&'static str),
}

impl From<JsonError> for Violations {
    /// One entry without a path (D112).
    fn from(error: JsonError) -> Self {
        Entry::whole(error.to_string()).into()
    }
}

/// The text with a 0 in place of each number, and the numbers in their order. The grammar is checked before.
fn without_numbers(text: &str) -> (String, Vec<Json>) {
    let (mut plain, mut numbers, mut rest) = (String::with_capacity(text.len()), Vec::new(), text);
    while let Some(at) = rest.find(|c: char| c == '"' || c == '-' || c.is_ascii_digit()) {
        let (before, token) = rest.split_at(at);
        plain.push_str(before);
        let is_string = token.starts_with('"');
        let length = if is_string {
            length_of_string(token)
        } else {
            token.find(|c: char| !c.is_ascii_digit() && !"+-.eE".contains(c))
        };
        let (token, after) = token.split_at(length.unwrap_or(token.len()));
        if is_string {
            plain.push_str(token);
        } else {
            plain.push('0');
            numbers.push(number(token));
        }
        rest = after;
    }
    plain.push_str(rest);
    (plain, numbers)
}

/// The length of the string with which the text begins, with its quotes.
fn length_of_string(text: &str) -> Option<usize> {
    let mut is_escaped = false;
    let last = text.bytes().skip(1).position(|byte| {
        let is_last = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        is_last
    });
    last.map(|before| before + 2)
}

fn number(text: &str) -> Json {
    if text.contains(['.', 'e', 'E']) {
        return Json::Fraction;
    }
    text.parse().map_or(Json::HugeInteger, Json::Integer)
}

/// Reads a text without its numbers. An error without a `failure` is a lone surrogate: it is found only when its string
/// is unescaped.
struct Reading {
    numbers: vec::IntoIter<Json>,
    /// The number of further levels of nesting allowed.
    levels: usize,
    failure: Option<JsonError>,
}

impl Reading {
    fn refuse<E: Error>(&mut self, failure: JsonError) -> E {
        self.failure = Some(failure);
        E::custom("refused")
    }

    fn enter<E: Error>(&mut self) -> Result<(), E> {
        let inner = self.levels.checked_sub(1);
        self.levels = inner.ok_or_else(|| self.refuse(JsonError::TooDeep))?;
        Ok(())
    }

    fn without_nul<E: Error>(&mut self, text: impl Into<String> + AsRef<str>) -> Result<String, E> {
        if text.as_ref().contains('\0') {
            return Err(self.refuse(JsonError::Nul));
        }
        Ok(text.into())
    }
}

impl<'de> DeserializeSeed<'de> for &mut Reading {
    type Value = Json;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Json, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for &mut Reading {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E: Error>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Json, E> {
        Ok(Json::Bool(value))
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<Json, E> {
        self.numbers
            .next()
            .ok_or_else(|| E::custom("a number that was not taken out"))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Json, E> {
        self.without_nul(text).map(Json::String)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Json, A::Error> {
        self.enter()?;
        let mut array = Vec::new();
        while let Some(element) = elements.next_element_seed(&mut *self)? {
            array.push(element);
        }
        self.levels += 1;
        Ok(Json::Array(array))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Json, A::Error> {
        self.enter()?;
        let mut members = Vec::new();
        while let Some(name) = map.next_key::<String>()? {
            let name = self.without_nul(name)?;
            members.push((name, map.next_value_seed(&mut *self)?));
        }
        self.levels += 1;
        let mut names = HashSet::with_capacity(members.len());
        if let Some((twice, _)) = members.iter().find(|(name, _)| !names.insert(name.as_str())) {
            return Err(self.refuse(JsonError::DuplicateKey(twice.clone())));
        }
        Ok(Json::Object(Object(members)))
    }
}
