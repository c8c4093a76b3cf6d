//! Compares the table of metrics with the sources, the dashboard and the alert rules.

mod operations;
mod sources;

use std::collections::BTreeSet;

use super::{Kind, PAGE, table};

#[test]
fn each_metric_stands_there_once_and_is_named_by_the_conventions() {
    let mut names = BTreeSet::new();
    for metric in table() {
        assert!(names.insert(metric.name), "{} stands there twice", metric.name);
        assert!(metric.help.ends_with('.'), "{}", metric.name);
        assert!(
            metric
                .name
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte == b'_'),
            "{}",
            metric.name
        );
        assert_eq!(
            metric.name.ends_with("_total"),
            metric.kind == Kind::Counter,
            "{}",
            metric.name
        );
        let scaled = ["_ms", "_milliseconds", "_minutes", "_kilobytes", "_percent"];
        assert!(
            !scaled.iter().any(|unit| metric.name.contains(unit)),
            "{}",
            metric.name
        );
    }
}

#[test]
fn every_row_of_the_page_is_read() {
    let rows = PAGE.lines().filter(|line| line.starts_with("| `"));
    assert_eq!(rows.count(), table().len());
    let requests = table().iter().find(|metric| metric.name == "http_requests_total");
    let labels = &requests.unwrap().labels;
    let names = labels.iter().map(|label| label.name).collect::<Vec<_>>();
    assert_eq!(names, ["listener", "route", "method", "status"]);
    assert_eq!(labels[0].values.as_ref().unwrap()[..2], ["api", "backoffice"]);
    assert!(labels[1].values.is_none());
}

#[test]
fn counters_start_at_0_for_every_combination_of_listed_values() {
    let of = |name: &str| {
        let metric = table().iter().find(|metric| metric.name == name).unwrap();
        let texts = metric.label_sets().into_iter().map(|labels| {
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
