//! One source of configuration values: a file, an environment variable, a flag.

use std::path::Path;

use figment::{
    Error, Metadata, Profile, Provider,
    providers::{Format as _, Toml},
    value::{Dict, Map, Value},
};

use super::{
    ConfigError,
    reference::{Key, sections},
};

/// What the variables of the environment begin with.
const PREFIX: &str = "SELLER_API__";

/// Values and where they come from.
#[derive(Clone)]
pub struct Layer {
    name: String,
    values: Dict,
}

impl Layer {
    /// The values of a TOML file.
    pub fn file(path: &Path) -> Result<Self, ConfigError> {
        let refused = |reason| ConfigError::File {
            path: path.to_owned(),
            reason,
        };
        let text = std::fs::read_to_string(path).map_err(|error| refused(error.to_string()))?;
        let values = Toml::from_str(&text).map_err(|error| {
            let before = error.span().and_then(|span| text.get(..span.start));
            let line = before.map_or(1, |before| before.matches('\n').count() + 1);
            refused(format!("line {line}: {}", error.message().replace('\n', ", ")))
        })?;
        Ok(Self {
            name: format!("the file {}", path.display()),
            values,
        })
    }

    /// The value of an environment variable, if it is one of ours.
    pub fn variable(name: &str, value: &str) -> Option<Self> {
        let path = match name.strip_prefix(PREFIX) {
            Some(key) => key.to_lowercase().split("__").map(str::to_owned).collect(),
            None if name == "DATABASE_URL" && !value.is_empty() => {
                vec!["database".to_owned(), "url".to_owned()]
            }
            None => return None,
        };
        Some(Self::nested(
            format!("the environment variable {name}"),
            &path,
            value.into(),
        ))
    }

    /// The variable that was probably meant by one that is none of ours, but looks like one: with too few underscores, or in
    /// small letters. Those that an orchestrator sets for a service of this name are others.
    pub(super) fn meant_variable(name: &str, value: &str) -> Option<Key> {
        let bare = |name: &str| {
            name.to_uppercase()
                .split('_')
                .filter(|part| !part.is_empty())
                .collect::<Vec<_>>()
                .join("_")
        };
        let named = bare(name);
        if !named.starts_with("SELLER_API_") || value.contains("://") || Self::variable(name, value).is_some()
        {
            return None;
        }
        let mut keys = sections().into_iter().flat_map(|section| section.keys);
        keys.find(|key| bare(&key.variable()) == named)
    }

    /// The value of the flag `name` for a key such as `server.bind`.
    pub fn flag(name: &str, key: &str, value: impl Into<Value>) -> Self {
        let path = key.split('.').map(str::to_owned).collect::<Vec<_>>();
        Self::nested(format!("the flag {name}"), &path, value.into())
    }

    fn nested(name: String, path: &[String], value: Value) -> Self {
        let whole = path
            .iter()
            .rev()
            .fold(value, |inner, key| Dict::from([(key.clone(), inner)]).into());
        Self {
            name,
            values: whole.into_dict().unwrap_or_default(),
        }
    }
}

impl Provider for Layer {
    fn metadata(&self) -> Metadata {
        Metadata::named(self.name.clone())
    }

    fn data(&self) -> Result<Map<Profile, Dict>, Error> {
        Ok(Map::from([(Profile::Default, self.values.clone())]))
    }
}
