//! What is wrong with a configuration, in words that name the key and where its value comes from.

use std::{fmt, path::PathBuf};

use figment::{
    Figment,
    error::{Actual, Kind},
    value::Value,
};

use super::reference::sections;

/// Why a configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read, or is no TOML.
    #[error("the configuration file {} cannot be used: {reason}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why not. Never a line of the file: it may hold a secret.
        reason: String,
    },
    /// An environment variable that is no Unicode.
    #[error("the environment variable {name} is not valid UTF-8")]
    NotText {
        /// Its name.
        name: String,
    },
    /// Unknown keys or impossible values.
    #[error("{}", joined(.0))]
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

fn joined(problems: &[Problem]) -> String {
    problems
        .iter()
        .map(Problem::to_string)
        .collect::<Vec<_>>()
        .join("\n")
}

impl ConfigError {
    /// Why the layers make no configuration.
    pub(super) fn refused(errors: figment::Error, layers: &Figment) -> Self {
        Self::Problems(errors.into_iter().map(|error| problem(error, layers)).collect())
    }
}

fn problem(error: figment::Error, layers: &Figment) -> Problem {
    let key = error.path.join(".");
    let secret = is_secret(&key);
    let reason = match error.kind {
        Kind::Message(reason) if reason.contains("socket address") => format!("must be {ADDRESS}"),
        Kind::Message(reason) => reason,
        Kind::UnknownField(_, known) => unknown(&key, known),
        Kind::UnknownVariant(_, known) => format!("must be one of {}", known.join(", ")),
        Kind::InvalidType(_, expected) | Kind::InvalidValue(_, expected) if secret => {
            format!("must be {}", wanted(&expected))
        }
        Kind::InvalidType(found, expected) | Kind::InvalidValue(found, expected) => {
            format!("must be {}, not {}", wanted(&expected), given(&found))
        }
        _ if secret => "cannot be used".to_owned(),
        other => format!("cannot be used: {other}"),
    };
    Problem {
        reason: with_given(layers, &key, reason),
        key,
        source: error.metadata.map(|metadata| metadata.name.into_owned()),
    }
}

/// The longest value that is repeated.
const SHOWN: usize = 80;

/// The reason with the value that was given, where it says what there must be and not what there is. Never a secret, nor what
/// may hold one, as addresses of services do before their `@`.
pub(super) fn with_given(layers: &Figment, key: &str, reason: String) -> String {
    let asks =
        reason.starts_with("must be ") && !reason.starts_with("must be set") && !reason.contains(", not ");
    if !asks || is_secret(key) {
        return reason;
    }
    let shown = match layers.find_value(key) {
        Ok(Value::String(_, text)) if text.is_empty() => "an empty text".to_owned(),
        Ok(Value::String(_, text)) if text.len() <= SHOWN && !text.contains(['@', '\n']) => {
            format!("`{text}`")
        }
        _ => return reason,
    };
    format!("{reason}, not {shown}")
}

/// How alike an unknown name and a known one have to be, from 0 to 1, for the known one to have been meant.
const ALIKE: f64 = 0.6;

/// What is said of a key that nobody knows: the one that was probably meant, and all that are known in its section.
fn unknown(key: &str, known: &[&str]) -> String {
    let known_here = known.join(", ");
    match meant(key, known) {
        Some(meant) => format!("is unknown; did you mean `{meant}`? Known here are {known_here}"),
        None => format!("is unknown; known here are {known_here}"),
    }
}

/// The known key that resembles an unknown one the most: a name of the same section, or the same name in another one.
fn meant(key: &str, known: &[&str]) -> Option<String> {
    let (section, name) = key.rsplit_once('.').unwrap_or(("", key));
    let likeness = |known: &str| strsim::normalized_damerau_levenshtein(name, known);
    let nearest = known.iter().max_by(|a, b| likeness(a).total_cmp(&likeness(b)))?;
    if likeness(nearest) >= ALIKE {
        let full = [section, nearest];
        let parts = full.into_iter().filter(|part| !part.is_empty());
        return Some(parts.collect::<Vec<_>>().join("."));
    }
    let keys = sections().into_iter().flat_map(|section| section.keys);
    let ends = format!(".{name}");
    keys.map(|key| key.name).find(|key| key.ends_with(&ends))
}

/// Whether a key's value must never be repeated.
fn is_secret(key: &str) -> bool {
    let (section, name) = key.rsplit_once('.').unwrap_or((key, ""));
    section.starts_with("keys")
        || key.starts_with("tracing.headers")
        || matches!(key, "database.url" | "database.direct_url")
        || matches!(
            name,
            "password" | "login" | "token" | "api_key" | "client_id" | "client_secret"
        )
}

const ADDRESS: &str = "an address with a port such as 127.0.0.1:8080";

/// What to give, where the decoder has a type's name for it.
fn wanted(expected: &str) -> &str {
    match expected {
        "a nonzero u16" => "a whole number from 1 to 65535",
        "a boolean" => "true or false",
        "a string" => "a text",
        section if section.starts_with("struct ") => "a section with keys in it",
        "a nonzero u32" => "a whole number from 1 to 4294967295",
        "u16" => "a whole number from 0 to 65535",
        "u32" => "a whole number from 0 to 4294967295",
        "usize" => "a whole number from 0 on",
        "socket address" => ADDRESS,
        other => other,
    }
}

fn given(found: &Actual) -> String {
    match found {
        Actual::Unsigned(number) => number.to_string(),
        Actual::Signed(number) => number.to_string(),
        Actual::Float(number) => number.to_string(),
        Actual::Str(text) if text.is_empty() => "an empty text".to_owned(),
        Actual::Str(text) => format!("`{text}`"),
        other => other.to_string(),
    }
}
