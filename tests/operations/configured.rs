//! The configuration of a deployment, parsed as the program does.

use std::{collections::BTreeSet, path::PathBuf, time::Duration};

use seller_api::config::{Sources, reference};
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

    /// The maximum time that a process with this configuration takes to stop. Panics on unknown keys and
    /// invalid values.
    #[track_caller]
    pub(crate) fn stop(&self) -> Duration {
        let sources = Sources {
            file: Some(self.path.clone()),
            ..Sources::default()
        };
        let loaded = sources.load().unwrap_or_else(|error| panic!("{error}"));
        let server = &loaded.config.server;
        server.drain.0 + server.shutdown_timeout.0
    }
}

/// All configuration variables.
pub(crate) fn variables() -> BTreeSet<String> {
    let sections = reference::sections();
    let keys = sections.iter().flat_map(|section| &section.keys);
    keys.map(reference::Key::variable)
        .chain(["DATABASE_URL".to_owned()])
        .collect()
}
