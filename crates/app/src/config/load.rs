//! Putting the layers over each other.

use std::{env, fmt, path::PathBuf};

use figment::Figment;

use super::{Config, ConfigError, Layer, Problem, error::with_given};

/// Where a configuration comes from, from the lowest layer to the highest.
#[derive(Clone, Default)]
pub struct Sources {
    /// The TOML file.
    pub file: Option<PathBuf>,
    /// The environment's variables; those of others are passed over.
    pub environment: Vec<(String, String)>,
    /// The flags that set a key.
    pub flags: Vec<Layer>,
}

/// A configuration that knows where its values come from.
#[derive(Clone)]
pub struct Loaded {
    /// The effective values.
    pub config: Config,
    figment: Figment,
}

impl Sources {
    /// The process's environment and a file.
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

    /// Adds a flag.
    #[must_use]
    pub fn with(mut self, flag: Option<Layer>) -> Self {
        self.flags.extend(flag);
        self
    }

    /// Reads and checks everything.
    pub fn load(mut self) -> Result<Loaded, ConfigError> {
        let mut figment = Figment::new();
        if let Some(path) = &self.file {
            figment = figment.merge(Layer::file(path)?);
        }
        // `DATABASE_URL` first: the key's own variable is the more particular of the two.
        self.environment
            .sort_by_key(|(name, _)| (name != "DATABASE_URL", name.clone()));
        let variables = self
            .environment
            .iter()
            .filter_map(|(name, value)| Layer::variable(name, value));
        for layer in variables.chain(self.flags) {
            figment = figment.merge(layer);
        }
        let loaded = Loaded {
            config: figment
                .extract_lossy()
                .map_err(|errors| ConfigError::refused(errors, &figment))?,
            figment,
        };
        let mut problems = loaded.config.problems();
        let variables = self.environment.iter().map(|(name, _)| name.as_str());
        problems.extend(loaded.config.tracing.foreign(variables));
        let named = |(key, reason): (&str, String)| loaded.problem(key, reason);
        let mut problems = problems.into_iter().map(named).collect::<Vec<_>>();
        problems.extend(self.environment.iter().filter_map(misspelled));
        if problems.is_empty() {
            return Ok(loaded);
        }
        Err(ConfigError::Problems(problems))
    }
}

/// A variable that would be passed over, though it was meant for us.
fn misspelled((name, value): &(String, String)) -> Option<Problem> {
    let key = Layer::meant_variable(name, value)?;
    Some(Problem {
        reason: format!("is set by {}", key.variable()),
        key: key.name,
        source: Some(format!("the environment variable {name}")),
    })
}

impl Loaded {
    /// What is wrong with a key, with its value and the place that this comes from.
    pub fn problem(&self, key: &str, reason: impl Into<String>) -> Problem {
        Problem {
            key: key.to_owned(),
            reason: with_given(&self.figment, key, reason.into()),
            source: self.source(key),
        }
    }

    /// Where the value of a key comes from; none for a default.
    pub fn source(&self, key: &str) -> Option<String> {
        self.figment
            .find_metadata(key)
            .map(|metadata| metadata.name.to_string())
    }
}

impl fmt::Debug for Loaded {
    /// Without the layers, which hold secrets in clear.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.config.fmt(f)
    }
}
