//! Ways to load a configuration; the tests lie by what they are about.

mod reference;
mod refusals;
mod shown;
mod sources;

use std::{fs, path::PathBuf};

use super::*;

fn sources(variables: &[(&str, &str)]) -> Sources {
    let environment = variables
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
    Sources {
        environment,
        ..Sources::default()
    }
}

fn load(variables: &[(&str, &str)]) -> Result<Loaded, ConfigError> {
    sources(variables).load()
}

fn refusal(variables: &[(&str, &str)]) -> String {
    load(variables).unwrap_err().to_string()
}

fn file(text: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("seller-api.toml");
    fs::write(&path, text).unwrap();
    (folder, path)
}

fn load_file(text: &str) -> Result<Loaded, ConfigError> {
    let (_folder, path) = file(text);
    Sources {
        file: Some(path),
        ..Sources::default()
    }
    .load()
}

const KEY: &str = "k1:t0OTu3l1xCmNJYN01NcPSikOGsb7ivqY5+zTtICqFpE=";
