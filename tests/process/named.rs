//! The tests that docs/development/reliability.md refers to exist.

use std::{fs, path::Path};

/// If a test is renamed or removed, its promise in the table is untested.
#[test]
fn every_test_that_the_table_of_faults_names_is_there() {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(tests.join("../docs/development/reliability.md")).unwrap();
    let (_, table) = page.split_once("| fault | promise | tests |").unwrap();
    let rows = table.lines().skip(2).take_while(|line| line.starts_with("| "));
    let mut number = 0;
    for row in rows {
        let (_, cell) = row.strip_suffix(" |").unwrap().rsplit_once(" | ").unwrap();
        // Every other piece is between backticks.
        let named: Vec<_> = cell.split('`').skip(1).step_by(2).collect();
        assert!(!named.is_empty(), "no test is named: {row}");
        for name in named {
            let (module, test) = name.split_once("::").unwrap();
            let holds = |folder: &&str| {
                let file = fs::read_to_string(tests.join(format!("{folder}/{module}.rs")));
                file.is_ok_and(|file| file.contains(&format!("async fn {test}()")))
            };
            assert!(
                ["process", "crash_points"].iter().any(holds),
                "{name} is not there"
            );
            number += 1;
        }
    }
    assert!(number > 40, "{number}");
}
