//! Configuration errors. Messages name the key and the source of its value.

use std::path::PathBuf;

use figment::{Figment, error::Kind, value::Value};

use super::reference::{Key, keys};
use super::{fault, must_be};

/// Why a configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read or is not valid TOML. The reason never quotes it: it may contain a secret.
    #[error("the configuration file {} cannot be used: {reason}", .path.display())]
    File { path: PathBuf, reason: String },
    #[error("the environment variable {name} is not valid UTF-8")]
    NotText { name: String },
    /// Unknown keys or invalid values.
    #[error("{}", .0.iter().map(Fault::to_string).collect::<Vec<_>>().join("\n"))]
    Faults(Vec<Fault>),
}

/// An unknown key, or an invalid value of a key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "configuration key `{key}` {reason}{}",
    .set_in.as_ref().map(|source| format!(" (in {source})")).unwrap_or_default()
)]
pub struct Fault {
    /// The key, `section.name`.
    pub key: String,
    /// Why its value is refused. Never contains the value of a secret.
    pub reason: String,
    /// Whether the reason is a rule that the value breaks, so that the value is shown beside it.
    pub is_rule: bool,
    /// The source of the value, if it was set.
    pub set_in: Option<String>,
}

/// Converts an error of merging and parsing the layers.
pub(super) fn refused(error: figment::Error, layers: &Figment) -> Fault {
    let mut name = error.path.join(".");
    let key = key_at(&name);
    if let Some(list) = key.filter(|key| key.is_list) {
        // The path names the item.
        name.clone_from(&list.name);
    }
    let expected = key.map_or("a section with keys in it", |key| key.expected.as_str());
    let mut fault = match error.kind {
        // Of the types in `values`.
        Kind::Message(reason) => Fault {
            is_rule: true,
            ..fault(name, reason)
        },
        Kind::UnknownField(_, known) => {
            let reason = unknown(&name, known);
            fault(name, reason)
        }
        Kind::UnknownVariant(_, known) => must_be(name, &format!("one of {}", known.join(", "))),
        Kind::InvalidType(..) | Kind::InvalidValue(..) | Kind::InvalidLength(..) => must_be(name, expected),
        // A value in the place of a section may be one of the section's secrets.
        _ if key.is_none_or(|key| key.is_secret) => fault(name, "cannot be used"),
        other => fault(name, format!("cannot be used: {other}")),
    };
    fault.add_value(layers);
    fault.set_in = error.metadata.map(|metadata| metadata.name.into_owned());
    fault
}

/// The key with this name, or the one that this name is a part of.
fn key_at(name: &str) -> Option<&'static Key> {
    keys().find(|key| {
        name.strip_prefix(&key.name)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    })
}

/// The longest value that a message quotes, in bytes.
const MAX_QUOTED: usize = 80;

impl Fault {
    /// Adds the value to a rule. Never adds a secret, or a value that may contain one, such as a URL with
    /// credentials before the `@`.
    pub(super) fn add_value(&mut self, layers: &Figment) {
        if !self.is_rule || key_at(&self.key).is_none_or(|key| key.is_secret) {
            return;
        }
        let value = match layers.find_value(&self.key) {
            Ok(Value::String(_, text)) if text.is_empty() => "an empty text".to_owned(),
            Ok(Value::String(_, text)) if text.len() <= MAX_QUOTED && !text.contains(['@', '\n']) => {
                format!("`{text}`")
            }
            Ok(value @ (Value::Num(..) | Value::Bool(..))) => match serde_json::to_string(&value) {
                Ok(text) => format!("`{text}`"),
                Err(_) => return,
            },
            _ => return,
        };
        self.reason.extend([", not ", &value]);
    }
}

/// The minimum similarity, from 0 to 1, at which a known name is suggested for an unknown one.
const MIN_SIMILARITY: f64 = 0.6;

/// The reason for an unknown key: the most similar known key, and all keys of its section.
fn unknown(key: &str, known: &[&str]) -> String {
    let known_here = known.join(", ");
    match suggestion(key, known) {
        Some(meant) => format!("is unknown; did you mean `{meant}`? Known here are {known_here}"),
        None => format!("is unknown; known here are {known_here}"),
    }
}

/// The known key most similar to an unknown one: a name in the same section, or the same name in another
/// section.
fn suggestion(key: &str, known: &[&str]) -> Option<String> {
    let (section, name) = key.rsplit_once('.').unwrap_or(("", key));
    let similarity = |known: &str| strsim::normalized_damerau_levenshtein(name, known);
    let nearest = known
        .iter()
        .max_by(|a, b| similarity(a).total_cmp(&similarity(b)))?;
    if similarity(nearest) >= MIN_SIMILARITY {
        return Some(format!("{section}.{nearest}").trim_start_matches('.').to_owned());
    }
    let ends = format!(".{name}");
    keys()
        .map(|key| key.name.clone())
        .find(|key| key.ends_with(&ends))
}
