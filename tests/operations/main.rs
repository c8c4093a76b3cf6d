//! The deployment files and runbooks of `docs/operations`: everything that they name exists, everything that
//! they start does start, and the restore runbook is executed.
//!
//! `.ci/run` or `tests/operations/install` installs linters below the target folder. Without one of them its
//! test reports that and is skipped, unless `CI` is set.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

mod alerts;
mod commands;
mod compose;
mod configured;
mod image;
mod kubernetes;
mod names;
mod proxy;
mod restore;
mod runbook;
mod started;
mod tools;
mod units;

use std::path::{Path, PathBuf};

use serde_json::Value;
use yaml_rust2::{Yaml, YamlLoader};

const PROGRAM: &str = env!("CARGO_BIN_EXE_seller-api-blackbox");

/// The root of the repository.
fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("the top of the repository")
}

/// The path of a file or folder in `docs/operations`.
fn operations(path: &str) -> PathBuf {
    root().join("docs/operations").join(path)
}

/// The text of a file in `docs/operations`.
fn text(path: &str) -> String {
    std::fs::read_to_string(operations(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The YAML documents of a file in `docs/operations`, as JSON.
fn yaml(path: &str) -> Vec<Value> {
    let documents = YamlLoader::load_from_str(&text(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
    documents.iter().map(json).collect()
}

fn json(yaml: &Yaml) -> Value {
    match yaml {
        Yaml::Integer(number) => (*number).into(),
        Yaml::Boolean(is_so) => (*is_so).into(),
        Yaml::Array(list) => list.iter().map(json).collect(),
        Yaml::Hash(fields) => {
            let fields = fields
                .iter()
                .map(|(name, value)| (name.as_str().unwrap().to_owned(), json(value)));
            fields.collect()
        }
        other => other.as_str().into(),
    }
}

/// The strings of a list.
fn words(list: &Value) -> Vec<String> {
    let words = list
        .as_array()
        .unwrap_or_else(|| panic!("{list} is no list"))
        .iter();
    words.map(|word| word.as_str().unwrap().to_owned()).collect()
}
