//! Merges layers of values into the effective configuration, and keeps the source of each value.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::{env, fmt};

use figment::providers::{Format as _, Toml};
use figment::value::{Dict, Map, Value};
use figment::{Error, Figment, Metadata, Profile, Provider};

use super::error::refused;
use super::reference::{Key, keys, sections};
use super::{Config, ConfigError, Fault, LogFormat, fault};

/// The prefix of environment variables.
const PREFIX: &str = "SELLER_API__";

/// The values of one source: a file, an environment variable, a flag.
#[derive(Clone)]
pub struct Layer {
    source: String,
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
            source: source_of(path),
            values,
        })
    }

    /// The value of an environment variable, if it sets a key. The items of a list are separated by commas;
    /// an empty text is an empty list.
    pub fn variable(name: &str, value: &str) -> Option<Self> {
        let key = match name.strip_prefix(PREFIX) {
            Some(key) => key.to_lowercase().replace("__", "."),
            None if name == "DATABASE_URL" && !value.is_empty() => "database.url".to_owned(),
            None => return None,
        };
        let is_list = keys().any(|known| known.name == key && known.is_list);
        let value = if is_list {
            let items = value.split(',').map(str::trim).filter(|item| !item.is_empty());
            items.map(Value::from).collect::<Vec<_>>().into()
        } else {
            value.into()
        };
        Some(Self::one(format!("the environment variable {name}"), &key, value))
    }

    /// The value of the flag `name` for a key such as `server.bind`.
    pub fn flag(name: &str, key: &str, value: impl Into<Value>) -> Self {
        Self::one(format!("the flag {name}"), key, value.into())
    }

    fn one(source: String, key: &str, value: Value) -> Self {
        let nest = |inner, part: &str| Dict::from([(part.to_owned(), inner)]).into();
        let values = key.split('.').rev().fold(value, nest);
        Self {
            source,
            values: values.into_dict().unwrap_or_default(),
        }
    }
}

impl Provider for Layer {
    fn metadata(&self) -> Metadata {
        Metadata::named(self.source.clone())
    }

    fn data(&self) -> Result<Map<Profile, Dict>, Error> {
        Ok(Map::from([(Profile::Default, self.values.clone())]))
    }
}

/// The name of a file as a source.
fn source_of(file: &Path) -> String {
    format!("the file {}", file.display())
}

/// The sources of a configuration, from the lowest layer to the highest.
#[derive(Clone, Default)]
pub struct Sources {
    /// The TOML file.
    pub file: Option<PathBuf>,
    /// Environment variables; unrelated ones are ignored.
    pub environment: Vec<(String, String)>,
    /// Flags that set a key.
    pub flags: Vec<Layer>,
}

impl Sources {
    /// The environment of the process and a file.
    pub fn of_process(file: Option<PathBuf>) -> Result<Self, ConfigError> {
        let mut environment = Vec::new();
        for (name, value) in env::vars_os() {
            let Ok(name) = name.into_string() else { continue };
            match value.into_string() {
                Ok(value) => environment.push((name, value)),
                Err(_) if Layer::variable(&name, "x").is_some() => return Err(ConfigError::NotText { name }),
                Err(_) => {}
            }
        }
        Ok(Self {
            file,
            environment,
            flags: Vec::new(),
        })
    }

    /// All layers, and the first of the file's problems.
    fn merged(&self) -> (Figment, Result<(), ConfigError>) {
        let file = self.file.as_deref().map(Layer::file).transpose();
        let (file, outcome) = match file {
            Ok(file) => (file, Ok(())),
            Err(error) => (None, Err(error)),
        };
        let mut environment = self.environment.iter().collect::<Vec<_>>();
        // `DATABASE_URL` first: the key's own variable is more specific and overrides it.
        environment.sort_by_key(|(name, _)| (name != "DATABASE_URL", name));
        let variables = environment
            .into_iter()
            .filter_map(|(name, value)| Layer::variable(name, value));
        let layers = file
            .into_iter()
            .chain(variables)
            .chain(self.flags.iter().cloned());
        (layers.fold(Figment::new(), Figment::merge), outcome)
    }

    /// The format of the log, also of a configuration that is refused.
    pub fn log_format(&self) -> LogFormat {
        self.merged().0.extract_inner("log.format").unwrap_or_default()
    }

    /// Reads and checks the configuration.
    pub fn load(self) -> Result<Loaded, ConfigError> {
        let (figment, outcome) = self.merged();
        outcome?;
        let config = figment.extract_lossy::<Config>().map_err(|errors| {
            ConfigError::Faults(errors.into_iter().map(|error| refused(error, &figment)).collect())
        })?;
        let loaded = Loaded {
            config,
            figment,
            file: self.file,
        };
        let mut faults = loaded.config.faults();
        for fault in &mut faults {
            fault.add_value(&loaded.figment);
            fault.set_in = loaded.source(&fault.key);
        }
        faults.extend(self.environment.iter().filter_map(misspelled));
        if faults.is_empty() {
            return Ok(loaded);
        }
        Err(ConfigError::Faults(faults))
    }
}

/// Finds a variable that was meant for a key, but has too few underscores or is in lower case. Variables that
/// Kubernetes sets for a service of this name are ignored.
fn misspelled((name, value): &(String, String)) -> Option<Fault> {
    let bare = |name: &str| {
        let upper = name.to_uppercase();
        let parts = upper.split('_').filter(|part| !part.is_empty());
        parts.collect::<Vec<_>>().join("_")
    };
    let named = bare(name);
    let is_of_service = matches!(value.split_once("://"), Some(("tcp" | "udp" | "sctp", _)));
    if !named.starts_with("SELLER_API_") || is_of_service || Layer::variable(name, value).is_some() {
        return None;
    }
    let key = keys().find(|key| bare(&key.variable()) == named)?;
    Some(Fault {
        set_in: Some(format!("the environment variable {name}")),
        ..fault(&key.name, format!("is set by {}", key.variable()))
    })
}

/// A configuration with the sources of its values.
#[derive(Clone)]
pub struct Loaded {
    /// The effective values.
    pub config: Config,
    figment: Figment,
    file: Option<PathBuf>,
}

impl Loaded {
    /// The source of a key's value; `None` for a default.
    pub fn source(&self, key: &str) -> Option<String> {
        let metadata = self.figment.find_metadata(key);
        metadata.map(|metadata| metadata.name.to_string())
    }

    /// Risky settings that are allowed.
    pub fn warnings(&self) -> Vec<String> {
        let server = &self.config.server;
        let url = server.public_url.as_ref().filter(|url| url.0.scheme() == "http");
        let in_clear = url.filter(|_| !server.bind.0.ip().is_loopback()).map(|url| {
            let (url, bind) = (url.base(), server.bind.0);
            format!("`server.public_url` is {url}, and {bind} is open to other machines: tokens and passwords are sent in clear text")
        });
        let holds_secret = |file: &Path| {
            let source = source_of(file);
            let of_file = |key: &&Key| key.is_secret && self.source(&key.name).as_ref() == Some(&source);
            keys().any(|key| of_file(&key))
        };
        // If this process can read it only because every account can, a folder must protect it.
        let is_open = |file: &Path| {
            let (of, own) = (file.metadata().ok()?, Path::new("/proc/self").metadata().ok()?);
            let reads_otherwise = own.uid() == 0 || of.uid() == own.uid() || of.gid() == own.gid();
            Some(reads_otherwise && of.mode() & 0o004 != 0)
        };
        let tls_keys = [&server.tls.key, &server.backoffice_tls.key];
        let config_file = self.file.iter().filter(|file| holds_secret(file));
        // Both listeners may have the same key.
        let files: BTreeSet<_> = config_file.chain(tls_keys.into_iter().flatten()).collect();
        let exposed = files.into_iter().filter(|file| is_open(file) == Some(true));
        let exposed = exposed.map(|file| {
            format!(
                "every account of this machine can read the secrets in {}: chmod o-r",
                file.display()
            )
        });
        in_clear.into_iter().chain(exposed).collect()
    }
}

impl fmt::Display for Loaded {
    /// Valid TOML: each key with its effective value and, if it is not the default, its source. Secrets are
    /// hidden.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = Value::serialize(&self.config).map_err(|_| fmt::Error)?;
        for section in sections() {
            writeln!(f, "[{}]", section.name)?;
            for key in &section.keys {
                let name = key.name.rsplit('.').next().unwrap_or_default();
                let source = self.source(&key.name);
                let source = source.map(|source| format!("  # {source}")).unwrap_or_default();
                match whole.find_ref(&key.name) {
                    None | Some(Value::Empty(..)) => writeln!(f, "# {name} is not set{source}")?,
                    Some(value) => {
                        // Strings, numbers and arrays have the same notation in JSON and TOML here.
                        let value = serde_json::to_string(value).map_err(|_| fmt::Error)?;
                        writeln!(f, "{name} = {value}{source}")?;
                    }
                }
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

impl fmt::Debug for Loaded {
    /// Leaves out the layers, which hold secrets in clear text.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.config.fmt(f)
    }
}
