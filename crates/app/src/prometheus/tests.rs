//! Compares the table of metrics with the sources, the dashboard and the alert rules.

mod operations;
mod sources;

use std::collections::BTreeSet;

use orders::Carrier;

use super::{Kind, Metric, page, table};
use crate::assert_current_page;

fn metric(name: &str) -> &'static Metric {
    table().iter().find(|metric| metric.name == name).unwrap()
}

#[test]
fn the_page_is_current() {
    assert_current_page("metrics.md", &page().unwrap());
}

#[test]
fn each_metric_is_listed_once_and_named_by_the_conventions() {
    let mut names = BTreeSet::new();
    for metric in table() {
        let name = metric.name;
        assert!(names.insert(name), "{name} is listed twice");
        assert!(metric.help.ends_with('.'), "{name}");
        let is_valid = |byte: u8| byte.is_ascii_lowercase() || byte == b'_';
        assert!(name.bytes().all(is_valid), "{name}");
        assert_eq!(name.ends_with("_total"), metric.kind == Kind::Counter, "{name}");
        let scaled = ["_ms", "_milliseconds", "_minutes", "_kilobytes", "_percent"];
        assert!(!scaled.iter().any(|unit| name.contains(unit)), "{name}");
    }
}

#[test]
fn all_carriers_but_other_are_listed() {
    let listed = metric("tracking_queue_parcels").labels[0].values.unwrap();
    assert_eq!([listed, &["other"]].concat(), Carrier::ALL.map(Carrier::as_str));
}

#[test]
fn counters_start_at_0_for_every_combination_of_listed_values() {
    let labels = metric("http_requests_total").labels;
    let names = labels.iter().map(|label| label.name).collect::<Vec<_>>();
    assert_eq!(names, ["listener", "route", "method", "status", "refused"]);
    assert_eq!(labels[0].values.unwrap()[..2], ["api", "backoffice"]);
    let sets = |name| {
        let pair = |label: &metrics::Label| format!("{}={}", label.key(), label.value());
        let sets = metric(name).label_sets().into_iter();
        sets.map(|labels| labels.iter().map(pair).collect::<Vec<_>>().join(","))
            .collect::<Vec<_>>()
    };
    let mails = sets("mail_outcomes_total");
    assert_eq!(mails.len(), 6, "{mails:?}");
    assert!(mails.contains(&"about=account,outcome=given_up".to_owned()));
    assert_eq!(sets("idempotency_takeovers_total"), [""]);
    assert_eq!(sets("http_requests_total"), [""; 0], "routes are not listed");
}
