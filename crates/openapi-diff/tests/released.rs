//! The committed document against the one that was released last: what an existing client would notice has to be announced in the
//! changelog, and the day has to have come.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use chrono::{DateTime, NaiveDate, Utc};
use openapi_diff::changelog::announcements_since;
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

/// The released documents, the last one last, with their versions.
fn released() -> Vec<(String, Value)> {
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
            (version.to_owned(), document)
        })
        .collect();
    released.sort_by_key(|(version, _)| numbers(version));
    released
}

#[expect(
    clippy::disallowed_methods,
    reason = "whether a change may be made depends on the day of the run"
)]
fn today() -> NaiveDate {
    DateTime::<Utc>::from(SystemTime::now()).date_naive()
}

#[test]
fn nothing_that_was_released_breaks_unannounced() {
    let (version, last) = released().pop().expect("a document was released");
    let current = read(&docs().join("openapi.json"));
    assert!(
        numbers(current.pointer("/info/version").and_then(Value::as_str).unwrap()) >= numbers(&version),
        "the version went back"
    );
    let changelog = fs::read_to_string(docs().join("CHANGELOG.md")).unwrap();
    let announced = announcements_since(&changelog, &version)
        .unwrap_or_else(|wrong| unreachable!("docs/CHANGELOG.md: {wrong}"));
    let today = today();
    let is_announced = |found: &Break| announced.iter().any(|item| item.covers(found, today));
    let unannounced: Vec<_> = breaks(&last, &current)
        .into_iter()
        .filter(|found| !is_announced(found))
        .map(|found| found.to_string())
        .collect();
    assert!(
        unannounced.is_empty(),
        "existing clients would notice, and docs/CHANGELOG.md does not announce it for today or earlier. Either undo it, or \
         add an item to the changelog, with these words, and make the change on the second date:\n\
         - **Incompatible**, announced <date>, effective <180 days later or more>, both until <later>: `<place>`: <what> …\n{unannounced:#?}",
    );
}
