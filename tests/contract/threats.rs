//! The pages on security name the tests that hold what they say: they exist.

use std::path::Path;

#[test]
fn every_test_that_the_threat_model_names_exists() {
    names_tests_that_exist("OAUTH_THREATS.md", 40);
}

#[test]
fn every_test_that_is_named_against_the_top_ten_exists() {
    names_tests_that_exist("SECURITY.md", 25);
}

/// Reads the last of four columns.
fn names_tests_that_exist(page: &str, at_least: usize) {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(tests.join("../docs").join(page)).unwrap();
    let (mut faults, mut named) = (Vec::new(), 0);
    for row in page.lines().filter(|line| line.starts_with("| ")) {
        let cells: Vec<_> = row.trim_matches('|').split(" | ").map(str::trim).collect();
        let [_, _, place, held] = cells[..] else { continue };
        if held == "tests" {
            continue;
        }
        if held.is_empty() && !place.is_empty() {
            faults.push(format!("no test: {row}"));
        }
        // `contract a, b; process c`: the folder stands before the first of its files.
        let mut folder = "";
        for (n, part) in held.split('`').enumerate() {
            if n.is_multiple_of(2) {
                let word = |word: &&str| ["contract", "process", "browser", "clients"].contains(word);
                folder = part
                    .split(|c: char| !c.is_alphabetic())
                    .find(word)
                    .unwrap_or(folder);
                continue;
            }
            named += 1;
            let (file, function) = part.split_once("::").unwrap_or((part, ""));
            let source = std::fs::read_to_string(tests.join(folder).join(format!("{file}.rs")));
            if !source.is_ok_and(|source| source.contains(&format!("async fn {function}"))) {
                faults.push(format!("there is no {folder} `{part}`"));
            }
        }
    }
    assert!(faults.is_empty(), "{faults:#?}");
    assert!(named > at_least, "only {named} were read");
}
