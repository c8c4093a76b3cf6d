//! The pages on security name the tests that hold what they say, and the places in the code where it is done: they exist. And
//! the page on the ASVS leaves no number out.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The numbers of OWASP ASVS 5.0.0 that are of the levels 1 and 2, each with its level.
const NUMBERS: &str = include_str!("asvs-5.0.0.txt");
const HOLDS: [&str; 5] = ["yes", "partly", "no", "operator", "n/a"];

#[test]
fn every_test_that_the_threat_model_names_exists() {
    names_tests_that_exist("OAUTH_THREATS.md", 40);
}

#[test]
fn every_test_that_is_named_against_the_top_ten_exists() {
    names_tests_that_exist("SECURITY.md", 25);
}

#[test]
fn every_test_that_is_named_against_the_asvs_exists() {
    names_tests_that_exist("ASVS.md", 250);
}

#[test]
fn every_place_that_the_pages_name_exists() {
    let crates = crates();
    let (mut faults, mut named) = (Vec::new(), 0);
    for name in ["OAUTH_THREATS.md", "SECURITY.md", "ASVS.md"] {
        let page = page(name);
        for row in page.lines().filter(|line| line.starts_with("| ")) {
            let cells = cells(row);
            let ([.., place, _], 4 | 5) = (&cells[..], cells.len()) else {
                continue;
            };
            let code = place.split('`').skip(1).step_by(2);
            for path in code.filter(|code| code.contains("::")) {
                named += 1;
                if !is_there(&crates, path) {
                    faults.push(format!("{name}: there is no `{path}`"));
                }
            }
        }
    }
    assert!(faults.is_empty(), "{faults:#?}");
    assert!(named > 150, "only {named} were read");
}

#[test]
fn every_number_of_the_asvs_stands_on_its_page_once_with_what_holds() {
    let page = page("ASVS.md");
    let mut levels: BTreeMap<&str, &str> = NUMBERS.lines().filter_map(|line| line.split_once(' ')).collect();
    assert_eq!(levels.len(), 253, "as many as the standard has");
    let (mut faults, mut counted) = (Vec::new(), BTreeMap::<&str, usize>::new());
    for row in page.lines().filter(|line| line.starts_with("| v5.0.0-")) {
        let cells = cells(row);
        let [requirement, holds, done, place, tests] = cells[..] else {
            faults.push(format!("not five cells: {row}"));
            continue;
        };
        let number = requirement
            .trim_start_matches("v5.0.0-")
            .split(' ')
            .next()
            .unwrap();
        let level = levels.remove(number);
        if !level.is_some_and(|level| requirement.contains(&format!("({level})"))) {
            faults.push(format!("{number} is not of this level, or stands there twice"));
        }
        if !HOLDS.contains(&holds) || done.is_empty() && holds != "no" {
            faults.push(format!("{number} does not say whether it holds, or why: {holds}"));
        }
        if holds == "yes" && (tests.is_empty() || place.is_empty()) {
            faults.push(format!("{number} is shown by nothing"));
        }
        if holds == "n/a" && !tests.is_empty() {
            faults.push(format!("{number} does not apply, and has a test"));
        }
        *counted.entry(holds).or_default() += 1;
    }
    assert!(faults.is_empty(), "{faults:#?}");
    assert!(levels.is_empty(), "left out: {levels:?}");
    let counts = HOLDS.map(|holds| counted[holds].to_string()).join(" | ");
    assert!(
        page.contains(&format!("| {counts} |")),
        "the page counts otherwise: {counts}"
    );
}

/// The sections of RFC 9700 that recommend something, or describe an attack.
const SECTIONS: [&str; 30] = [
    "2.1", "2.1.1", "2.1.2", "2.2.1", "2.2.2", "2.3", "2.4", "2.5", "2.6", "4.1", "4.2", "4.3", "4.4", "4.5",
    "4.6", "4.7", "4.8", "4.9.1", "4.9.2", "4.10", "4.10.1", "4.10.2", "4.11.1", "4.11.2", "4.12", "4.13",
    "4.14", "4.15", "4.16", "4.17",
];

#[test]
fn every_section_of_rfc_9700_has_a_row_with_a_test() {
    let page = page("OAUTH_THREATS.md");
    for section in SECTIONS {
        let mark = format!("| §{section} ");
        let row = page.lines().find(|line| line.starts_with(&mark));
        let row = row.unwrap_or_else(|| panic!("§{section} has no row"));
        assert!(cells(row)[3].contains('`'), "§{section} has no test: {row}");
    }
}

fn page(name: &str) -> String {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
    std::fs::read_to_string(docs.join(name)).unwrap()
}

/// The folder of each crate, by the crate's name and by its own.
fn crates() -> BTreeMap<String, PathBuf> {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates");
    let mut crates = BTreeMap::new();
    for folder in [top.clone(), top.join("adapters"), top.join("domain")] {
        for entry in std::fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            if let Ok(manifest) = std::fs::read_to_string(entry.path().join("Cargo.toml")) {
                let name = manifest.split('"').nth(1).unwrap().to_owned();
                crates.insert(name, entry.path());
                crates.insert(entry.file_name().into_string().unwrap(), entry.path());
            }
        }
    }
    crates
}

/// Whether there is a crate, a module of it, and in that what else the path names.
fn is_there(crates: &BTreeMap<String, PathBuf>, path: &str) -> bool {
    let mut parts = path.split("::").peekable();
    let Some(folder) = parts.next().and_then(|name| crates.get(name)) else {
        return false;
    };
    let (mut folder, mut file) = (folder.join("src"), folder.join("src/lib.rs"));
    while let Some(module) = parts.next_if(|part| folder.join(format!("{part}.rs")).is_file()) {
        file = folder.join(format!("{module}.rs"));
        folder.push(module);
    }
    let source = std::fs::read_to_string(file).unwrap();
    let mut words = source.split(|c: char| !c.is_alphanumeric() && c != '_');
    parts.next().is_none_or(|item| words.any(|word| word == item))
}

fn cells(row: &str) -> Vec<&str> {
    let inner = row
        .strip_prefix('|')
        .and_then(|row| row.strip_suffix('|'))
        .unwrap_or(row);
    inner.split('|').map(str::trim).collect()
}

/// Reads the last of four or five columns.
fn names_tests_that_exist(name: &str, at_least: usize) {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = page(name);
    let (mut faults, mut named) = (Vec::new(), 0);
    for row in page.lines().filter(|line| line.starts_with("| ")) {
        let cells = cells(row);
        let ([.., place, held], 4 | 5) = (&cells[..], cells.len()) else {
            continue;
        };
        if *held == "tests" || !held.contains('`') && !place.contains('`') {
            continue;
        }
        if held.is_empty() && cells.len() == 4 {
            faults.push(format!("no test: {row}"));
        }
        // `contract a, b; process c`: the folder stands before the first of its files.
        let mut folder = "";
        for (n, part) in held.split('`').enumerate() {
            if n.is_multiple_of(2) {
                let word = |word: &&str| {
                    ["contract", "process", "browser", "clients", "operations", "crate"].contains(word)
                };
                folder = part
                    .split(|c: char| !c.is_alphabetic())
                    .find(word)
                    .unwrap_or(folder);
                continue;
            }
            named += 1;
            let (file, function) = part.split_once("::").unwrap_or((part, ""));
            let (folder, mark) = if folder == "crate" {
                ("../crates", "test]")
            } else {
                (folder, "fn ")
            };
            let source = std::fs::read_to_string(tests.join(folder).join(format!("{file}.rs")));
            let there = |source: String| source.contains(mark) && source.contains(&format!("fn {function}"));
            if !source.is_ok_and(there) {
                faults.push(format!("there is no {folder} `{part}`"));
            }
        }
    }
    assert!(faults.is_empty(), "{faults:#?}");
    assert!(named > at_least, "only {named} were read");
}
