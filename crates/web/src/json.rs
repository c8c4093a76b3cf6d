//! Strict JSON: the grammar of `serde_json`, without duplicate keys (compared unescaped), NUL in any string
//! or key, a byte order mark, more than [`MAX_DEPTH`] levels, and too many values for its length.
//! Integers stay distinct from other numbers (D10).
//!
//! `serde_json` checks the grammar and unescapes strings. It would give the same `f64` for `1e3`, for `-0` and for
//! integers beyond 64 bits, so the values are read here, each number by its text.

#[cfg(test)]
mod tests;

use std::collections::HashSet;

use serde::de::IgnoredAny;

use crate::problem::Entry;
use crate::violations::Violations;

/// The maximum depth of nested arrays and objects; the outermost one is level 1.
pub const MAX_DEPTH: usize = 32;

/// The most values, of all kinds and levels, in a text of this many bytes. Read in one piece, sixty KiB of empty objects would
/// keep others waiting for milliseconds. The fullest batch of a hundred offers has 902, a thousand items of an order at most
/// four fifths of it.
const fn most_values(length: usize) -> usize {
    1_000 + length / 16
}

/// A JSON value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Json {
    Null,
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
    Array(Vec<Json>),
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
        let mut reader = Reader {
            length: text.len(),
            rest: text,
            levels: MAX_DEPTH,
            values: most_values(text.len()),
        };
        let first = reader.token();
        reader.value(first)
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
    #[error("Invalid JSON: more than {} values in {length} bytes.", most_values(*.length))]
    TooManyValues { length: usize },
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

/// Reads a text whose grammar has been checked.
struct Reader<'a> {
    length: usize,
    rest: &'a str,
    /// The number of further levels of nesting allowed.
    levels: usize,
    /// The number of further values allowed.
    values: usize,
}

impl<'a> Reader<'a> {
    /// The next mark, string with its quotes, number or word; empty at the end.
    fn token(&mut self) -> &'a str {
        let rest = self.rest.trim_ascii_start();
        let length = match rest.as_bytes().first() {
            Some(b'"') => length_of_string(rest),
            Some(b'[' | b']' | b'{' | b'}' | b':' | b',') => Some(1),
            _ => rest.find(|c: char| !c.is_ascii_alphanumeric() && !"+-.".contains(c)),
        };
        let (token, rest) = rest.split_at(length.unwrap_or(rest.len()));
        self.rest = rest;
        token
    }

    /// The value that begins with this token.
    fn value(&mut self, token: &str) -> Result<Json, JsonError> {
        let length = self.length;
        let left = self.values.checked_sub(1);
        self.values = left.ok_or(JsonError::TooManyValues { length })?;
        Ok(match token {
            "null" => Json::Null,
            "true" | "false" => Json::Bool(token == "true"),
            "[" => {
                let mut array = Vec::new();
                self.each("]", |reader, first| {
                    array.push(reader.value(first)?);
                    Ok(())
                })?;
                Json::Array(array)
            }
            "{" => {
                let mut members = Vec::new();
                self.each("}", |reader, name| {
                    let name = string(name)?;
                    let [_colon, first] = [reader.token(), reader.token()];
                    members.push((name, reader.value(first)?));
                    Ok(())
                })?;
                let mut names = HashSet::with_capacity(members.len());
                if let Some((twice, _)) = members.iter().find(|(name, _)| !names.insert(name.as_str())) {
                    return Err(JsonError::DuplicateKey(twice.clone()));
                }
                Json::Object(Object(members))
            }
            text if text.starts_with('"') => Json::String(string(text)?),
            number if number.contains(['.', 'e', 'E']) => Json::Fraction,
            number => number.parse().map_or(Json::HugeInteger, Json::Integer),
        })
    }

    /// Reads the elements of an array, or the members of an object, each by its first token.
    fn each(
        &mut self,
        end: &str,
        mut read: impl FnMut(&mut Self, &'a str) -> Result<(), JsonError>,
    ) -> Result<(), JsonError> {
        self.levels = self.levels.checked_sub(1).ok_or(JsonError::TooDeep)?;
        loop {
            match self.token() {
                "," => {}
                token if token == end || token.is_empty() => break,
                first => read(self, first)?,
            }
        }
        self.levels += 1;
        Ok(())
    }
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

/// The text of a string with its quotes.
fn string(quoted: &str) -> Result<String, JsonError> {
    // The grammar allows a lone surrogate. It is found only when the string is unescaped.
    let text: String = serde_json::from_str(quoted).map_err(|_| JsonError::LoneSurrogate)?;
    if text.contains('\0') {
        return Err(JsonError::Nul);
    }
    Ok(text)
}
