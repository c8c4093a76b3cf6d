//! Compares the capacity table of `docs/operations/README.md` with the figures of
//! `docs/development/performance.md`.

use std::fs;

use crate::root;

/// The rows of a table with at least `count` numbers: the first cell and the numbers. Ignores brackets.
fn rows(page: &str, heading: &str, count: usize) -> Vec<(String, Vec<f64>)> {
    let page = fs::read_to_string(root().join("docs").join(page)).unwrap();
    let (_, section) = page.split_once(&format!("\n{heading}\n")).unwrap();
    let table = section.lines().skip_while(|line| !line.starts_with('|'));
    let rows = table.take_while(|line| line.starts_with('|')).map(|line| {
        let mut cells = line.trim_matches('|').split('|');
        let name = cells
            .next()
            .unwrap()
            .trim()
            .trim_end_matches([' ', '†', '‡', '§'])
            .to_owned();
        let number = |cell: &str| {
            let number = cell
                .split('(')
                .next()
                .unwrap()
                .replace([' ', '\u{a0}', '\u{202f}'], "");
            number.parse().unwrap_or(f64::NAN)
        };
        (name, cells.map(number).collect())
    });
    let is_full = |row: &(String, Vec<f64>)| row.1.len() >= count && !row.1[0].is_nan();
    rows.filter(is_full).collect()
}

#[test]
fn capacity_is_as_measured() {
    let measured = rows("development/performance.md", "## Figures", 6);
    let planned = rows("operations/README.md", "## Capacity", 3);
    assert_eq!(planned.len(), 9, "{planned:?}");
    for (name, planned) in planned {
        let (_, figures) = measured.iter().find(|(other, _)| *other == name).expect(&name);
        // Rate, PostgreSQL's CPU time and the program's CPU time.
        for (planned, measured) in planned.into_iter().zip([figures[0], figures[4], figures[5]]) {
            let near = (planned / measured - 1.0).abs() < 0.1;
            assert!(near, "{name}: {planned} is planned with, {measured} was measured");
        }
    }
}
