//! The committed document against the one that was released last: what an existing client would notice has to be announced in the
//! changelog.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use std::fs;
use std::path::{Path, PathBuf};

use openapi_diff::changelog::announcements;
use openapi_diff::{Break, breaks};
use serde_json::Value;

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

fn read(path: &Path) -> Value {
    let text = fs::read_to_string(path).expect("the document can be read");
    serde_json::from_str(&text).expect("the document is JSON")
}

/// The numbers of a version such as 1.0.0.
fn numbers(version: &str) -> Vec<u32> {
    version.split('.').map(|number| number.parse().unwrap()).collect()
}

/// The released documents, the last one last.
fn released() -> Vec<(Vec<u32>, Value)> {
    let files = fs::read_dir(docs().join("released")).expect("documents were released");
    let mut released: Vec<_> = files
        .map(|file| {
            let path = file.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            let version = name
                .strip_prefix("openapi-")
                .and_then(|name| name.strip_suffix(".json"))
                .expect("openapi-<version>.json alone lies there");
            let document = read(&path);
            assert_eq!(document.pointer("/info/version"), Some(&version.into()), "{name}");
            (numbers(version), document)
        })
        .collect();
    released.sort_by(|(one, _), (other, _)| one.cmp(other));
    released
}

#[test]
fn nothing_that_was_released_breaks_unannounced() {
    let (version, last) = released().pop().expect("a document was released");
    let current = read(&docs().join("openapi.json"));
    assert!(
        numbers(current.pointer("/info/version").and_then(Value::as_str).unwrap()) >= version,
        "the version went back"
    );
    let changelog = fs::read_to_string(docs().join("CHANGELOG.md")).unwrap();
    let announced =
        announcements(&changelog).unwrap_or_else(|wrong| unreachable!("docs/CHANGELOG.md: {wrong}"));
    let is_announced = |found: &Break| announced.iter().any(|item| item.covers(found));
    let unannounced: Vec<_> = breaks(&last, &current)
        .into_iter()
        .filter(|found| !is_announced(found))
        .map(|found| found.to_string())
        .collect();
    assert!(
        unannounced.is_empty(),
        "existing clients would notice, and docs/CHANGELOG.md does not announce it. Either undo it, or add an item to the changelog:\n\
         - **Incompatible**, announced <date>, effective <180 days later or more>, both until <later>: `<place>` …\n{unannounced:#?}",
    );
}
