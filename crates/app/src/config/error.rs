//! What is wrong with a configuration, in words that name the key and where its value comes from.

use std::{fmt, path::PathBuf};

use figment::{
    Figment,
    error::{Actual, Kind},
    value::Value,
};

use super::reference::{Key, keys};

/// Why a configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read, or is no TOML. The reason never quotes it: it may hold a secret.
    #[error("the configuration file {} cannot be used: {reason}", .path.display())]
    File { path: PathBuf, reason: String },
    #[error("the environment variable {name} is not valid UTF-8")]
    NotText { name: String },
    /// Unknown keys or impossible values.
    #[error("{}", .0.iter().map(Problem::to_string).collect::<Vec<_>>().join("\n"))]
    Problems(Vec<Problem>),
}

/// What is wrong with one key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The key, `section.name`.
    pub key: String,
    /// Why its value is refused. Never the value of a secret.
    pub reason: String,
    /// Where the value comes from, where it was given.
    pub source: Option<String>,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "configuration key `{}` {}", self.key, self.reason)?;
        match &self.source {
            Some(source) => write!(f, " (in {source})"),
            None => Ok(()),
        }
    }
}

impl ConfigError {
    /// Why the layers make no configuration.
    pub(super) fn refused(errors: figment::Error, layers: &Figment) -> Self {
        Self::Problems(errors.into_iter().map(|error| problem(error, layers)).collect())
    }
}

fn problem(error: figment::Error, layers: &Figment) -> Problem {
    let name = error.path.join(".");
    let key = key_at(&name);
    let wanted = key
        .as_ref()
        .map_or_else(|| "a section with keys in it".to_owned(), Key::wanted);
    let secret = key.is_some_and(|key| key.is_secret());
    let reason = match error.kind {
        Kind::Message(reason) if reason.contains("socket address") => format!("must be {wanted}"),
        Kind::Message(reason) => reason,
        Kind::UnknownField(_, known) => unknown(&name, known),
        Kind::UnknownVariant(_, known) => format!("must be one of {}", known.join(", ")),
        Kind::InvalidType(found, _) | Kind::InvalidValue(found, _) if !secret => {
            format!("must be {wanted}, not {}", shown(&found))
        }
        Kind::InvalidType(..) | Kind::InvalidValue(..) => format!("must be {wanted}"),
        _ if secret => "cannot be used".to_owned(),
        other => format!("cannot be used: {other}"),
    };
    Problem {
        reason: with_value(layers, &name, reason),
        key: name,
        source: error.metadata.map(|metadata| metadata.name.into_owned()),
    }
}

/// The key of this name, or the one that this is a part of.
fn key_at(name: &str) -> Option<Key> {
    keys().find(|key| {
        name.strip_prefix(&key.name)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    })
}

fn shown(found: &Actual) -> String {
    match found {
        Actual::Unsigned(number) => number.to_string(),
        Actual::Signed(number) => number.to_string(),
        Actual::Float(number) => number.to_string(),
        Actual::Str(text) if text.is_empty() => "an empty text".to_owned(),
        Actual::Str(text) => format!("`{text}`"),
        other => other.to_string(),
    }
}

/// The longest value that is repeated.
const LONGEST_SHOWN: usize = 80;

/// The reason with the value that was given, where it says what there must be and not what there is. Never a secret, nor what
/// may hold one, as addresses of services do before their `@`.
pub(super) fn with_value(layers: &Figment, key: &str, reason: String) -> String {
    let asks =
        reason.starts_with("must be ") && !reason.starts_with("must be set") && !reason.contains(", not ");
    if !asks || key_at(key).is_some_and(|key| key.is_secret()) {
        return reason;
    }
    match layers.find_value(key) {
        Ok(Value::String(_, text)) if text.is_empty() => format!("{reason}, not an empty text"),
        Ok(Value::String(_, text)) if text.len() <= LONGEST_SHOWN && !text.contains(['@', '\n']) => {
            format!("{reason}, not `{text}`")
        }
        _ => reason,
    }
}

/// How alike an unknown name and a known one have to be, from 0 to 1, for the known one to have been meant.
const ALIKE: f64 = 0.6;

/// What is said of an unknown key: the one that was probably meant, and all that are known in its section.
fn unknown(key: &str, known: &[&str]) -> String {
    let known_here = known.join(", ");
    match suggestion(key, known) {
        Some(meant) => format!("is unknown; did you mean `{meant}`? Known here are {known_here}"),
        None => format!("is unknown; known here are {known_here}"),
    }
}

/// The known key that resembles an unknown one the most: a name of the same section, or the same name in another one.
fn suggestion(key: &str, known: &[&str]) -> Option<String> {
    let (section, name) = key.rsplit_once('.').unwrap_or(("", key));
    let likeness = |known: &str| strsim::normalized_damerau_levenshtein(name, known);
    let nearest = known.iter().max_by(|a, b| likeness(a).total_cmp(&likeness(b)))?;
    if likeness(nearest) >= ALIKE {
        return Some(format!("{section}.{nearest}").trim_start_matches('.').to_owned());
    }
    let ends = format!(".{name}");
    keys().map(|key| key.name).find(|key| key.ends_with(&ends))
}
