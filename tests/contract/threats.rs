//! The tests that the page on security names exist, and the page covers every section of RFC 9700.

use std::path::Path;

/// The sections of RFC 9700 with a recommendation or an attack.
const SECTIONS: [&str; 30] = [
    "2.1", "2.1.1", "2.1.2", "2.2.1", "2.2.2", "2.3", "2.4", "2.5", "2.6", "4.1", "4.2", "4.3", "4.4", "4.5",
    "4.6", "4.7", "4.8", "4.9.1", "4.9.2", "4.10", "4.10.1", "4.10.2", "4.11.1", "4.11.2", "4.12", "4.13",
    "4.14", "4.15", "4.16", "4.17",
];

#[test]
fn every_section_of_rfc_9700_has_a_row() {
    let page = page();
    for section in SECTIONS {
        let mark = format!("| §{section} ");
        assert!(
            page.lines().any(|line| line.starts_with(&mark)),
            "§{section} has no row"
        );
    }
}

#[test]
fn every_test_that_the_page_names_exists() {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = page();
    let (mut faults, mut named) = (Vec::new(), 0);
    for row in page.lines().filter(|line| line.starts_with("| ")) {
        let cells: Vec<_> = row.trim_matches('|').split('|').map(str::trim).collect();
        let [subject, _, held] = cells[..] else { continue };
        if held == "tests" {
            continue;
        }
        if !held.contains('`') {
            faults.push(format!("no test: {subject}"));
        }
        // `contract a, b; process c`: the folder's name precedes the first of its files.
        let mut folder = "";
        for (n, part) in held.split('`').enumerate() {
            if n.is_multiple_of(2) {
                let word = |word: &&str| {
                    ["contract", "process", "browser", "clients", "crash_points"].contains(word)
                };
                folder = part
                    .split(|c: char| !c.is_alphabetic() && c != '_')
                    .find(word)
                    .unwrap_or(folder);
                continue;
            }
            named += 1;
            let (file, function) = part.split_once("::").unwrap_or((part, ""));
            let source = std::fs::read_to_string(tests.join(folder).join(format!("{file}.rs")));
            if !source.is_ok_and(|source| source.contains(&format!("fn {function}"))) {
                faults.push(format!("there is no {folder} `{part}`"));
            }
        }
    }
    assert!(faults.is_empty(), "{faults:#?}");
    assert!(named > 90, "only {named} were read");
}

fn page() -> String {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
    std::fs::read_to_string(docs.join("development/security.md")).unwrap()
}
