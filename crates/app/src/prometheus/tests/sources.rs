//! Compares the table with the sources: every recorded metric is in the table, and every metric in the table is recorded.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use crate::prometheus::table;

/// The program's sources, without tests.
fn sources() -> Vec<String> {
    fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            if path.is_dir() && name != "tests" {
                walk(&path, found);
            } else if path.extension().is_some_and(|ending| ending == "rs") && name != "tests.rs" {
                found.push(path);
            }
        }
    }
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut found = Vec::new();
    for part in ["adapters", "app/src", "domain", "usecases/src", "web/src"] {
        walk(&crates.join(part), &mut found);
    }
    found
        .iter()
        .map(|path| fs::read_to_string(path).unwrap())
        .collect()
}

/// The names of the metrics that a source records: literals, or constants of the same file.
fn counted(source: &str) -> Vec<String> {
    let calls = ["counter!(", "gauge!(", "histogram!("];
    let arguments = calls.iter().flat_map(|call| source.split(call).skip(1));
    let first = |rest: &str| {
        rest.trim_start()
            .split([',', ')'])
            .next()
            .unwrap()
            .trim()
            .to_owned()
    };
    let named = |argument: String| {
        if let Some(text) = argument.strip_prefix('"') {
            return Some(text.trim_end_matches('"').to_owned());
        }
        let constant = format!("const {argument}: &str = \"");
        let (_, value) = source.split_once(&constant)?;
        Some(value.split('"').next().unwrap().to_owned())
    };
    arguments.map(first).filter_map(named).collect()
}

#[test]
fn the_table_and_the_sources_know_the_same_metrics() {
    let told = table()
        .iter()
        .map(|metric| metric.name.to_owned())
        .collect::<BTreeSet<_>>();
    let counted = sources()
        .iter()
        .flat_map(|source| counted(source))
        .collect::<BTreeSet<_>>();
    assert!(counted.len() > 25, "{counted:?}");
    let untold = counted.difference(&told).collect::<Vec<_>>();
    assert!(untold.is_empty(), "not in the table: {untold:?}");
    // A library records the `process_` metrics.
    let uncounted = told
        .difference(&counted)
        .filter(|name| !name.starts_with("process_"))
        .collect::<Vec<_>>();
    assert!(uncounted.is_empty(), "counted nowhere: {uncounted:?}");
}
