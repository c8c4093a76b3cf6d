//! From text to tree. `serde_json` does all the reading; this decides what of it is let in.
//!
//! `serde_json` hands a visitor an `f64` for `1e3`, for `-0` and for integers beyond 64 bits alike. So each value is
//! first taken as the slice of text it is (`RawValue`), and numbers are told apart by their text. A level of nesting
//! is read once per level above it, which the limit on depth keeps harmless.

use std::collections::HashSet;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::{Json, JsonError, MOST_DEPTH, Object};

pub(super) fn parse(text: &[u8]) -> Result<Json, JsonError> {
    let text = std::str::from_utf8(text).map_err(|_| JsonError::NotUtf8)?;
    if text.starts_with('\u{feff}') {
        return Err(JsonError::ByteOrderMark);
    }
    if text.trim_ascii().is_empty() {
        return Err(JsonError::Empty);
    }
    let whole: &RawValue =
        serde_json::from_str(text).map_err(|error| JsonError::Syntax(error.to_string()))?;
    value(whole.get(), MOST_DEPTH)
}

/// `levels` is how many more levels of nesting are allowed.
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

/// The text is a number by the grammar already.
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

/// Reads a part of the text. The grammar of the whole has been checked, but for one thing that is left to whoever
/// unescapes a string.
fn read<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, JsonError> {
    serde_json::from_str(text).map_err(|_| JsonError::LoneSurrogate)
}

/// The members of one object, values unread, duplicates and all.
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
