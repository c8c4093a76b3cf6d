//! `docs/development/sentences.md`: each sentence of the contract, with the tests that fail if it is broken.
//!
//! The sentences are written in the page by hand; a comment such as `// contract: 6.2, 6.3` above a test names those that it holds.
//! A sentence that no test can show has a reason in place of tests.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

const MARKER: &str = "// contract: ";
const REASON: &str = "No test: ";
const MOST_REASONS: usize = 15;

/// The tests that hold each sentence.
type Tests = BTreeMap<String, BTreeSet<String>>;

/// The Rust files below a folder of the repository.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let (folders, mut files): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
    files.retain(|file| file.extension().is_some_and(|extension| extension == "rs"));
    files.extend(folders.iter().flat_map(|folder| sources(folder)));
    files
}

/// Adds the tests of a file. The name of a test is its path without the extension, `::` and its function.
fn read_markers(path: &str, source: &str, tests: &mut Tests) -> Result<(), String> {
    let lines: Vec<_> = source.lines().map(str::trim).collect();
    let is_attribute = |line: &&str| line.starts_with("#[test]") || line.starts_with("#[tokio::test");
    for (number, line) in lines.iter().enumerate() {
        let Some(sentences) = line.strip_prefix(MARKER) else {
            continue;
        };
        let mut below = lines[number..].iter();
        let is_test = below
            .by_ref()
            .take_while(|line| !line.is_empty())
            .any(is_attribute);
        let function = below.find_map(|line| line.split_once("fn ")?.1.split('(').next());
        let name = function
            .filter(|_| is_test)
            .ok_or_else(|| format!("{path}: `{line}` is above no test"))?;
        for sentence in sentences.split(", ") {
            let named = format!("{}::{name}", path.trim_end_matches(".rs"));
            tests.entry(sentence.to_owned()).or_default().insert(named);
        }
    }
    Ok(())
}

/// The number, the sentence and the tests of a row.
fn row(line: &str) -> Option<(&str, &str, &str)> {
    let line = line.strip_prefix("| ")?.strip_suffix('|')?;
    let mut cells = line.splitn(3, " | ").map(str::trim);
    let number = cells.next()?;
    let is_number = number.starts_with(|first: char| first.is_ascii_digit());
    is_number.then_some((number, cells.next()?, cells.next()?))
}

/// The page with these tests, or its faults.
fn renewed(page: &str, tests: &Tests) -> Result<String, Vec<String>> {
    let (mut known, mut reasons, mut faults) = (BTreeSet::new(), 0, Vec::new());
    let lines = page.lines().map(|line| {
        let Some((number, sentence, held)) = row(line) else {
            return format!("{line}\n");
        };
        if !known.insert(number) {
            faults.push(format!("two sentences are {number}"));
        }
        let held = if let Some(tests) = tests.get(number) {
            let names = tests.iter().map(|name| format!("`{name}`"));
            names.collect::<Vec<_>>().join("<br>")
        } else {
            reasons += 1;
            if !held.starts_with(REASON) {
                faults.push(format!("{number} has neither a test nor a reason: {sentence}"));
            }
            held.to_owned()
        };
        format!("| {number} | {sentence} | {held} |\n")
    });
    let page = lines.collect();
    let unknown = tests
        .iter()
        .filter(|(number, _)| !known.contains(number.as_str()));
    faults.extend(unknown.map(|(number, tests)| format!("there is no sentence {number}: {tests:?}")));
    if reasons > MOST_REASONS {
        faults.push(format!("{reasons} sentences have no test"));
    }
    if faults.is_empty() { Ok(page) } else { Err(faults) }
}

#[test]
fn every_sentence_of_the_contract_has_a_test_or_a_reason() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut tests = Tests::new();
    for file in ["crates", "tests"]
        .iter()
        .flat_map(|folder| sources(&root.join(folder)))
    {
        let path = file.strip_prefix(root).unwrap().to_str().unwrap();
        let path = path.strip_prefix("tests/").unwrap_or(path);
        read_markers(path, &fs::read_to_string(&file).unwrap(), &mut tests).unwrap();
    }
    let path = root.join("docs/development/sentences.md");
    let renewed = renewed(&fs::read_to_string(&path).unwrap(), &tests).unwrap();
    if std::env::var_os("RENEW").is_some() {
        fs::write(&path, &renewed).unwrap();
    }
    assert!(
        fs::read_to_string(&path).unwrap() == renewed,
        "the tests in docs/development/sentences.md are out of date: RENEW=1 cargo test --workspace --test document -- sentence"
    );
}

const PAGE: &str = "# Page\n\n| no. | sentence | tests |\n|---|---|---|\n| 1.1 | a | `a::old` |\n| 1.2 | b \\| c | No test: x |\n";

#[test]
fn tests_are_written_into_the_page_and_each_fault_is_found() {
    let marked = "\n// contract: 1.1, 1.3\n/// Why.\n#[tokio::test(flavor = \"x\")]\nasync fn holds() {}\n";
    let mut tests = Tests::new();
    read_markers("contract/b.rs", marked, &mut tests).unwrap();
    let faults = |page: &str, tests: &Tests| renewed(page, tests).unwrap_err().join(", ");
    let unknown = "there is no sentence 1.3: {\"contract/b::holds\"}";
    assert_eq!(faults(PAGE, &tests), unknown);
    tests.remove("1.3");
    let expected = PAGE.replace("a::old", "contract/b::holds");
    assert_eq!(renewed(PAGE, &tests), Ok(expected));
    let twice = PAGE.replace("1.2", "1.1");
    assert_eq!(faults(&twice, &tests), "two sentences are 1.1");
    for (page, fault) in [
        (PAGE, "1.1 has neither a test nor a reason: a"),
        ("| 1.1 | a | |\n", "1.1 has neither a test nor a reason: a"),
    ] {
        assert_eq!(faults(page, &Tests::new()), fault);
    }
    let reasons = (1..=16).map(|n| format!("| 2.{n} | x | No test: y |\n"));
    let reasons = reasons.collect::<Vec<_>>().concat();
    assert_eq!(faults(&reasons, &Tests::new()), "16 sentences have no test");
    for not_above_a_test in ["// contract: 1.1\nfn helper() {}\n", "// contract: 1.1\n"] {
        assert!(read_markers("b.rs", not_above_a_test, &mut tests).is_err());
    }
}
