//! The tests that docs/RELIABILITY.md names.

use std::{fs, path::Path};

/// A promise whose test was renamed or taken out would be one that nobody holds.
#[test]
fn every_test_that_the_table_of_faults_names_is_there() {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(tests.join("../docs/RELIABILITY.md")).unwrap();
    let (_, table) = page.split_once("| fault | promise | seen | shown by |").unwrap();
    let named: Vec<_> = table
        .lines()
        .filter_map(|line| line.strip_suffix("` |")?.rsplit_once('`'))
        .map(|(_, name)| name.split_once("::").unwrap())
        .collect();
    assert!(named.len() > 15, "{named:?}");
    for (module, test) in named {
        let file = fs::read_to_string(tests.join(format!("process/{module}.rs"))).unwrap();
        assert!(
            file.contains(&format!("async fn {test}()")),
            "{module}::{test} is not there"
        );
    }
}
