//! The table against the program, the documentation, the dashboard and the alert rules.

mod operations;
mod sources;

use std::collections::BTreeSet;

use super::table::{Kind, Meter, meters};

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

#[test]
fn counters_begin_with_every_combination_of_what_they_may_count() {
    let of = |name: &str| {
        let meter: &Meter = meters().find(|meter| meter.name == name).unwrap();
        let texts = meter.combinations().into_iter().map(|labels| {
            labels
                .iter()
                .map(|label| format!("{}={}", label.key(), label.value()))
                .collect::<Vec<_>>()
                .join(",")
        });
        texts.collect::<Vec<_>>()
    };
    let mails = of("mails_total");
    assert_eq!(mails.len(), 6, "{mails:?}");
    assert!(
        mails.contains(&"about=account,fate=given_up".to_owned()),
        "{mails:?}"
    );
    assert_eq!(of("idempotency_takeovers_total"), [""]);
    assert_eq!(
        of("http_requests_total"),
        [""; 0],
        "routes and statuses are not listed"
    );
}
