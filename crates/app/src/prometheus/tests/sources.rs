//! Compares the table with the sources: every recorded metric is in the table, and every metric in the table
//! is recorded.

use std::{collections::BTreeSet, fs, path::Path};

use crate::prometheus::table;

/// Adds the names of the metrics that the sources in a folder record, without tests.
fn collect(folder: &Path, names: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.is_dir() && name != "tests" {
            collect(&path, names);
        } else if path.extension().is_some_and(|ending| ending == "rs") && name != "tests.rs" {
            names.extend(recorded(&fs::read_to_string(path).unwrap()));
        }
    }
}

/// The metrics that a source records: literals, or constants of the same file.
fn recorded(source: &str) -> Vec<String> {
    let calls = ["counter!(", "gauge!(", "histogram!("];
    let arguments = calls.iter().flat_map(|call| source.split(call).skip(1));
    let name = |rest: &str| {
        let argument = rest.split([',', ')']).next().unwrap().trim();
        let literal = if argument.starts_with('"') {
            argument
        } else {
            source.split_once(&format!("const {argument}: &str = "))?.1
        };
        Some(literal.split('"').nth(1).unwrap().to_owned())
    };
    arguments.filter_map(name).collect()
}

#[test]
fn the_table_and_the_sources_have_the_same_metrics() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut recorded = BTreeSet::new();
    for part in ["adapters", "app/src", "domain", "usecases/src", "web/src"] {
        collect(&crates.join(part), &mut recorded);
    }
    assert!(recorded.len() > 25, "{recorded:?}");
    let listed = table().iter().map(|metric| metric.name.to_owned()).collect();
    let differences = recorded.symmetric_difference(&listed);
    // A library records the `process_` metrics.
    let differences = differences.filter(|name| !name.starts_with("process_"));
    assert_eq!(differences.collect::<Vec<_>>(), [""; 0]);
}
