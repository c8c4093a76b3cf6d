//! Clients of the released documents still work with the current one, or the changelog announced why not
//! (contract: Versioning).

mod comparison;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use serde_json::Value;

use comparison::breaks;

/// Notice period of an incompatible change.
const NOTICE: TimeDelta = TimeDelta::days(180);

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs")
}

fn read(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// The versions and the contents of the released documents.
fn released() -> Vec<(String, Value)> {
    let files = fs::read_dir(docs().join("released")).unwrap();
    let documents = files.map(|file| {
        let path = file.unwrap().path();
        let document = read(&path);
        let version = document["info"]["version"].as_str().unwrap().to_owned();
        let name = format!("openapi-{version}.json");
        assert_eq!(path.file_name().unwrap(), name.as_str());
        (version, document)
    });
    let documents: Vec<_> = documents.collect();
    assert!(!documents.is_empty());
    documents
}

fn numbers(version: &str) -> Vec<u32> {
    version.split('.').map(|number| number.parse().unwrap()).collect()
}

/// The announcements in the changelog above the section of this version: the texts of the items
///
/// ```text
/// - **Incompatible**, announced 2027-01-15, effective 2027-07-15, both until 2028-01-15: `Offer.brand`: it is gone; read `Offer.maker`.
/// ```
///
/// that are in effect on this day. An item without all its dates, or without time to adapt, is an error.
fn announced(changelog: &str, released: &str, today: NaiveDate) -> Result<Vec<String>, String> {
    let (above, _) = changelog
        .split_once(&format!("\n## [{released}] - "))
        .ok_or_else(|| format!("there is no section of {released}, though that version is released"))?;
    let mut texts = Vec::new();
    for item in above
        .split("\n- ")
        .filter(|item| item.starts_with("**Incompatible**"))
    {
        let lines = item.split("\n\n").next().unwrap_or_default();
        let item = lines.split_whitespace().collect::<Vec<_>>().join(" ");
        let (dates, text) = dates(&item).ok_or_else(|| format!("not of the form of such an item: {item}"))?;
        let [announced, effective, until] = dates;
        if effective - announced < NOTICE || until <= effective || !text.contains('`') {
            return Err(format!("no notice, no time side by side, or no change: {item}"));
        }
        if effective <= today {
            texts.push(text.to_owned());
        }
    }
    Ok(texts)
}

fn dates(item: &str) -> Option<([NaiveDate; 3], &str)> {
    let mut rest = item.strip_prefix("**Incompatible**")?;
    let mut dates = [NaiveDate::default(); 3];
    for (date, words) in dates
        .iter_mut()
        .zip([", announced ", ", effective ", ", both until "])
    {
        let (text, behind) = rest.strip_prefix(words)?.split_at_checked(10)?;
        (*date, rest) = (text.parse().ok()?, behind);
    }
    Some((dates, rest.strip_prefix(": ")?))
}

/// Whether one of the texts has the words of this break. "It was 1 and is 20" does not announce "it was 1 and
/// is 2".
fn is_announced(found: &str, announced: &[String]) -> bool {
    let says_so = |text: &String| {
        let mut behind = text.match_indices(found).map(|(at, _)| &text[at + found.len()..]);
        behind.any(|rest| {
            let rest = rest.trim_start_matches([',', ';', '.']);
            rest.is_empty() || rest.starts_with(' ')
        })
    };
    announced.iter().any(says_so)
}

#[test]
fn a_break_is_announced_in_time_and_in_its_own_words() {
    let today = "2027-07-15".parse().unwrap();
    let read = |dates: &str, text: &str| {
        let item = format!("\n- **Incompatible**, announced {dates}, both until 2028-01-15: {text}\n");
        announced(&format!("{item}\n## [1.0.0] - 2026-01-01\n"), "1.0.0", today)
    };
    let (good, change) = ("2027-01-15, effective 2027-07-14", "`a`: it was 1 and is 20.");
    assert_eq!(read(good, change), Ok(vec![change.to_owned()]));
    let tomorrow = "2027-01-15, effective 2027-07-16";
    assert_eq!(read(tomorrow, change), Ok(Vec::new()));
    read("2027-01-15, effective 2027-07-13", change).unwrap_err();
    read(good, "a: it was 1 and is 20.").unwrap_err();
    let texts = [change.to_owned()];
    assert!(is_announced("`a`: it was 1 and is 20", &texts));
    assert!(!is_announced("`a`: it was 1 and is 2", &texts));
}

#[test]
fn breaks_of_the_released_documents_are_announced() {
    let current = read(&docs().join("openapi.json"));
    let now = current["info"]["version"].as_str().unwrap();
    assert_eq!(
        now,
        env!("CARGO_PKG_VERSION"),
        "program and document have one version"
    );
    let changelog = fs::read_to_string(docs().join("CHANGELOG.md")).unwrap();
    #[expect(
        clippy::disallowed_methods,
        reason = "the day of the run decides which changes are in effect"
    )]
    let today = DateTime::<Utc>::from(SystemTime::now()).date_naive();
    for (version, document) in released() {
        assert!(numbers(now) >= numbers(&version), "the version went back");
        let announced = announced(&changelog, &version, today).unwrap();
        let mut unannounced = breaks(&document, &current);
        unannounced.retain(|found| !is_announced(found, &announced));
        assert!(
            unannounced.is_empty(),
            "clients of {version} would notice, and docs/CHANGELOG.md does not announce it for today or earlier. Either undo it, or \
             add an item to the changelog, with these words, and make the change on the second date:\n\
             - **Incompatible**, announced <date>, effective <180 days later or more>, both until <later>: `<place>`: <what> …\n{unannounced:#?}",
        );
    }
}
