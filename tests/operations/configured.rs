//! Parses a file and an environment as the program does.

use std::{collections::BTreeSet, path::PathBuf, time::Duration};

use seller_api::config::{Config, Sources, reference};
use tempfile::TempDir;

/// A deployment's configuration, stored in a separate file.
#[derive(Debug)]
pub(crate) struct ConfigFile {
    _folder: TempDir,
    pub(crate) path: PathBuf,
}

impl ConfigFile {
    pub(crate) fn of(text: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.toml");
        std::fs::write(&path, text).unwrap();
        Self {
            _folder: folder,
            path,
        }
    }

    /// The configuration from the file and an environment. Panics on unknown keys and invalid values.
    #[track_caller]
    pub(crate) fn with(&self, environment: &[(String, String)]) -> Config {
        let sources = Sources {
            file: Some(self.path.clone()),
            environment: environment.to_vec(),
            flags: Vec::new(),
        };
        match sources.load() {
            Ok(loaded) => loaded.config,
            Err(error) => panic!("{error}"),
        }
    }
}

/// The maximum time that a process with this configuration takes to stop.
pub(crate) fn stop(config: &Config) -> Duration {
    config.server.drain.0 + config.server.shutdown_timeout.0
}

/// All configuration variables.
pub(crate) fn variables() -> BTreeSet<String> {
    let sections = reference::sections();
    let keys = sections.iter().flat_map(|section| &section.keys);
    keys.map(reference::Key::variable)
        .chain(["DATABASE_URL".to_owned()])
        .collect()
}

/// The variables of secrets.
pub(crate) fn secrets() -> BTreeSet<String> {
    let sections = reference::sections();
    let keys = sections.iter().flat_map(|section| &section.keys);
    keys.filter(|key| key.is_secret)
        .map(reference::Key::variable)
        .chain(["DATABASE_URL".to_owned()])
        .collect()
}
