//! The table against the program, the documentation, the dashboard and the alert rules.

mod operations;
mod sources;

use std::collections::BTreeSet;

use super::table::{Kind, meters};

#[test]
fn each_metric_is_told_once_and_named_by_the_conventions() {
    let mut names = BTreeSet::new();
    for meter in meters() {
        assert!(names.insert(meter.name), "{} is told twice", meter.name);
        assert!(meter.help.ends_with('.'), "{}", meter.name);
        assert!(
            meter
                .name
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte == b'_'),
            "{}",
            meter.name
        );
        assert_eq!(
            meter.name.ends_with("_total"),
            meter.kind == Kind::Counter,
            "{}",
            meter.name
        );
        let scaled = ["_ms", "_milliseconds", "_minutes", "_kilobytes", "_percent"];
        assert!(
            !scaled.iter().any(|unit| meter.name.contains(unit)),
            "{}",
            meter.name
        );
    }
}

#[test]
fn the_page_is_current() {
    let page = include_str!("../../../../docs/operations/METRICS.md");
    assert!(
        page.trim_end() == super::reference::markdown().trim_end(),
        "run `seller-api metrics > docs/operations/METRICS.md`"
    );
}
