//! All configuration names in the deployment files exist.

use std::{collections::BTreeSet, fs, path::PathBuf};

use seller_api::config::reference;

use crate::{configured::variables, operations};

/// The operators' pages and the deployment files that users copy, without the reference itself and the
/// changelog, which names former keys.
fn files() -> Vec<PathBuf> {
    let (mut found, mut folders) = (Vec::new(), vec![operations("")]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if !path.ends_with("configuration.md") && !path.ends_with("CHANGELOG.md") {
                found.push(path);
            }
        }
    }
    found
}

/// The words of a text that start with a prefix and consist of characters for which `belongs` holds.
fn words<'a>(text: &'a str, prefix: &str, belongs: impl Fn(char) -> bool) -> Vec<&'a str> {
    text.split(|letter| !belongs(letter))
        .filter(|word| word.starts_with(prefix))
        .collect()
}

#[test]
fn every_variable_is_one() {
    let known = variables();
    let mut seen = 0;
    for file in files() {
        let text = fs::read_to_string(&file).unwrap();
        let belongs = |letter: char| letter.is_ascii_uppercase() || letter.is_ascii_digit() || letter == '_';
        for word in words(&text, "SELLER_API__", belongs) {
            assert!(known.contains(word), "{}: {word}", file.display());
            seen += 1;
        }
    }
    assert!(seen >= 4, "the files name variables");
}

#[test]
fn every_key_in_backticks_is_one() {
    let sections = reference::sections();
    let names: BTreeSet<&str> = sections.iter().map(|section| section.name.as_str()).collect();
    let keys: BTreeSet<&str> = sections
        .iter()
        .flat_map(|section| &section.keys)
        .map(|key| key.name.as_str())
        .collect();
    let mut seen = 0;
    for file in files() {
        let text = fs::read_to_string(&file).unwrap();
        for quoted in text.split('`').skip(1).step_by(2) {
            let is_key = |letter: char| letter.is_ascii_lowercase() || letter == '_' || letter == '.';
            let section = quoted.rsplit_once('.').map_or("", |(section, _)| section);
            if quoted.chars().all(is_key) && names.contains(section) {
                let is_one = keys.contains(quoted) || names.contains(quoted);
                assert!(is_one, "{}: `{quoted}`", file.display());
                seen += 1;
            }
        }
    }
    assert!(seen >= 4, "the files name keys");
}
