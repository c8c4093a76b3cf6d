//! Strict JSON: the grammar of `serde_json`, without duplicate keys (compared unescaped), NUL in any string
//! or key, a byte order mark, and more than [`MAX_DEPTH`] levels. Integers stay distinct from other numbers
//! (D10).
//!
//! `serde_json` gives a visitor the same `f64` for `1e3`, for `-0` and for integers beyond 64 bits. So each
//! value is first read as a slice of text (`RawValue`), and numbers are classified by their text. A level of
//! nesting is read once for each level above it; the limit on depth keeps that cheap.

#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use thiserror::Error;

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
        let whole: &RawValue =
            serde_json::from_str(text).map_err(|error| JsonError::Syntax(error.to_string()))?;
        value(whole.get(), MAX_DEPTH)
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
#[derive(Debug, Clone, PartialEq, Eq, Error)]
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

/// `levels`: the number of further levels of nesting allowed.
fn value(text: &str, levels: usize) -> Result<Json, JsonError> {
    match text.as_bytes().first() {
        Some(b'{') => object(text, inner(levels)?),
        Some(b'[') => array(text, inner(levels)?),
        Some(b'"') => Ok(Json::String(without_nul(read(text)?)?)),
        Some(b't' | b'f') => Ok(Json::Bool(read(text)?)),
        Some(b'n') => Ok(Json::Null),
        _ => Ok(number(text)),
    }
}

fn object(text: &str, levels: usize) -> Result<Json, JsonError> {
    let Members(members) = read(text)?;
    let mut names = HashSet::with_capacity(members.len());
    if let Some((twice, _)) = members.iter().find(|(name, _)| !names.insert(name.as_str())) {
        return Err(JsonError::DuplicateKey(twice.clone()));
    }
    let member = |(name, raw): (String, &RawValue)| Ok((without_nul(name)?, value(raw.get(), levels)?));
    members
        .into_iter()
        .map(member)
        .collect::<Result<_, _>>()
        .map(|members| Json::Object(Object(members)))
}

fn array(text: &str, levels: usize) -> Result<Json, JsonError> {
    let elements: Vec<&RawValue> = read(text)?;
    elements
        .into_iter()
        .map(|raw| value(raw.get(), levels))
        .collect::<Result<_, _>>()
        .map(Json::Array)
}

/// The grammar check has already accepted the text as a number.
fn number(text: &str) -> Json {
    if text.contains(['.', 'e', 'E']) {
        return Json::Fraction;
    }
    text.parse().map_or(Json::HugeInteger, Json::Integer)
}

fn inner(levels: usize) -> Result<usize, JsonError> {
    levels.checked_sub(1).ok_or(JsonError::TooDeep)
}

fn without_nul(text: String) -> Result<String, JsonError> {
    if text.contains('\0') {
        Err(JsonError::Nul)
    } else {
        Ok(text)
    }
}

/// Reads a part of the text. The grammar of the whole is already checked, except for lone surrogates, which
/// are found only when a string is unescaped.
fn read<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, JsonError> {
    serde_json::from_str(text).map_err(|_| JsonError::LoneSurrogate)
}

/// The members of one object, with values unread and duplicates kept.
struct Members<'a>(Vec<(String, &'a RawValue)>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Collect;

        impl<'de> Visitor<'de> for Collect {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }

        deserializer.deserialize_map(Collect)
    }
}
