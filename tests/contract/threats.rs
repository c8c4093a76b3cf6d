//! The tests that the pages on security and reliability name exist, and the one on security covers every
//! section of RFC 9700.

use std::path::Path;

/// The sections of RFC 9700 with a recommendation or an attack.
const SECTIONS: [&str; 30] = [
    "2.1", "2.1.1", "2.1.2", "2.2.1", "2.2.2", "2.3", "2.4", "2.5", "2.6", "4.1", "4.2", "4.3", "4.4", "4.5",
    "4.6", "4.7", "4.8", "4.9.1", "4.9.2", "4.10", "4.10.1", "4.10.2", "4.11.1", "4.11.2", "4.12", "4.13",
    "4.14", "4.15", "4.16", "4.17",
];

#[test]
fn every_section_of_rfc_9700_has_a_row() {
    let page = page("security");
    for section in SECTIONS {
        let mark = format!("| §{section} ");
        assert!(
            page.lines().any(|line| line.starts_with(&mark)),
            "§{section} has no row"
        );
    }
}

/// The folders of the tests by the words that precede their files' names: `contract a, b; process c`.
const FOLDERS: [(&str, &str); 20] = [
    ("contract", "contract"),
    ("process", "process"),
    ("neighbours", "neighbours"),
    ("browser", "browser"),
    ("clients", "clients"),
    ("crash_points", "crash_points"),
    ("store", "../crates/adapters/postgres/tests/store"),
    ("postgres", "../crates/adapters/postgres/src"),
    ("app", "../crates/app/src"),
    ("backoffice", "../crates/adapters/backoffice/src"),
    ("carriers", "../crates/adapters/carriers/tests/lookups"),
    ("docs-site", "../crates/adapters/docs-site/src"),
    ("http", "../crates/adapters/http/src"),
    ("mail", "../crates/adapters/mail/tests/mail"),
    ("operations", "operations"),
    ("panel", "../crates/adapters/panel/src"),
    ("sealing", "../crates/adapters/sealing/src"),
    ("usecases", "../crates/usecases/src"),
    ("web", "../crates/web/src"),
    ("webhook-sender", "../crates/adapters/webhook-sender/src"),
];

/// If a test is renamed or removed, its promise is untested.
#[test]
fn every_test_that_a_page_names_exists() {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut faults = Vec::new();
    for (name, least) in [("security", 90), ("reliability", 60)] {
        let (page, mut named, mut is_of_tests) = (page(name), 0, false);
        for row in page.lines() {
            let cells: Vec<_> = row.trim_matches('|').split('|').map(str::trim).collect();
            let [subject, _, held] = cells[..] else {
                is_of_tests = false;
                continue;
            };
            is_of_tests |= held == "tests";
            if !is_of_tests || held == "tests" || held.starts_with(['-', '–']) || held == "named there" {
                continue;
            }
            if !held.contains('`') {
                faults.push(format!("no test: {subject}"));
            }
            let mut folders = &["process", "crash_points"][..];
            for (n, part) in held.split('`').enumerate() {
                if n.is_multiple_of(2) {
                    let mut words = part.split(|c: char| !c.is_alphabetic() && !"_-".contains(c));
                    let folder = words.find_map(|word| FOLDERS.iter().find(|(known, _)| *known == word));
                    folders = folder.map_or(folders, |(_, folder)| std::slice::from_ref(folder));
                    continue;
                }
                named += 1;
                let (file, function) = part.split_once("::").unwrap_or((part, ""));
                let holds = |folder: &&str| {
                    let source = std::fs::read_to_string(tests.join(folder).join(format!("{file}.rs")));
                    source.is_ok_and(|source| source.contains(&format!("fn {function}")))
                };
                if !folders.iter().any(holds) {
                    faults.push(format!("there is no {folders:?} `{part}`"));
                }
            }
        }
        assert!(named > least, "of {name} only {named} were read");
    }
    assert!(faults.is_empty(), "{faults:#?}");
}

fn page(name: &str) -> String {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/development");
    std::fs::read_to_string(docs.join(format!("{name}.md"))).unwrap()
}
