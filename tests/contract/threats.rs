//! The threat model of the OAuth part names the tests that hold it: they exist.

use std::path::Path;

#[test]
fn every_test_that_the_threat_model_names_exists() {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(tests.join("../docs/OAUTH_THREATS.md")).unwrap();
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
    assert!(named > 40, "only {named} were read");
}
