//! Compares the dashboard and the alert rules with the table: they use only existing metrics and labels.

use std::collections::BTreeSet;

use serde_json::Value;
use yaml_rust2::YamlLoader;

use crate::prometheus::{Kind, Metric, table};

const DASHBOARD: &str = include_str!("../../../../../docs/operations/grafana-dashboard.json");
const ALERTS: &str = include_str!("../../../../../docs/operations/alerts.yml");

/// Labels that Prometheus adds to every target.
const OF_TARGETS: [&str; 2] = ["instance", "job"];
/// Metrics of exporters around the service, with the prefixes of their names.
const OF_OTHERS: [&str; 6] = [
    "up",
    "probe_",
    "haproxy_",
    "pgbouncer_",
    "pg_",
    "seller_api_backup_",
];
/// The pattern with which an expression excludes probes, which are not requests of clients.
const NO_PROBES: &str = "/healthz|/readyz|/metrics";
/// The metric with this name in an expression; a histogram's name has a suffix there.
fn metric(name: &str) -> Option<&'static Metric> {
    table().iter().find(|metric| match metric.kind {
        Kind::Histogram => ["_bucket", "_sum", "_count"]
            .iter()
            .any(|ending| name.strip_suffix(ending) == Some(metric.name)),
        Kind::Counter | Kind::Gauge => name == metric.name,
    })
}

/// The faults of an expression: every metric is followed by conditions in braces, and is one of the table or
/// of the programs around the service. `promtool` checks the language, and the alerts by what they fire for.
fn faults(expression: &str) -> Vec<String> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || "_:$.".contains(c);
    let (mut faults, mut others, mut rest) = (Vec::new(), String::new(), expression);
    while let Some((before, after)) = rest.split_once('{') {
        let (other, name) = before.split_at(before.rfind(|c| !is_name(c)).map_or(0, |at| at + 1));
        let (conditions, after) = after.split_once('}').unwrap();
        // Which alerts fire, by Prometheus itself.
        let is_of_alerts = name == "ALERTS" && conditions.starts_with("alertname=");
        let is_of_others = OF_OTHERS.iter().any(|prefix| name.starts_with(prefix));
        match metric(name) {
            Some(metric) => faults.extend(of_conditions(metric, conditions)),
            None if is_of_alerts || is_of_others && conditions.contains("job=") => {}
            None => faults.push(format!("there is no metric {name}")),
        }
        others += other;
        rest = after;
    }
    others += rest;
    let bare = others
        .split(|c| !is_name(c))
        .filter(|name| metric(name).is_some());
    faults.extend(bare.map(|name| format!("it uses {name} of any program")));
    faults
}

/// The faults of the conditions on a metric's labels, a list of `name="value"` or `name=~"one|other"`; also
/// finds conditions that include requests of probes.
fn of_conditions(metric: &Metric, conditions: &str) -> Vec<String> {
    let (mut faults, mut given) = (Vec::new(), Vec::new());
    for condition in conditions.split(',') {
        let condition = condition.trim();
        let (label, matcher) = condition.split_at(condition.find(['=', '!']).unwrap());
        let (operator, value) = matcher.trim_end_matches('"').split_once('"').unwrap();
        given.push((label, value));
        let Some(of) = metric.labels.iter().find(|of| of.name == label) else {
            let is_bucket = label == "le" && metric.kind == Kind::Histogram;
            if !OF_TARGETS.contains(&label) && !is_bucket {
                faults.push(format!("{} has no label {label}", metric.name));
            }
            continue;
        };
        let separator = if operator.ends_with('~') { '|' } else { '\0' };
        for part in value.split(separator) {
            let is_pattern = part.starts_with('$') || part.contains(['.', '+', '*']);
            if !is_pattern && of.values.is_some_and(|all| !all.contains(&part)) {
                faults.push(format!("{} has no {label} {part}", metric.name));
            }
        }
    }
    if given.iter().all(|(label, _)| *label != "job") {
        faults.push(format!("it uses {} of any program", metric.name));
    }
    // The public listener has no probes.
    let is_of_clients = given.contains(&("route", NO_PROBES)) || given.contains(&("listener", "api"));
    if metric.labels.iter().any(|label| label.name == "route") && !is_of_clients {
        faults.push(format!("it counts probes in {}", metric.name));
    }
    faults
}

#[test]
fn the_dashboard_uses_existing_metrics_and_labels() {
    let dashboard: Value = serde_json::from_str(DASHBOARD).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let targets = panels.iter().filter_map(|panel| panel["targets"].as_array());
    let expressions = targets.flatten().map(|target| target["expr"].as_str().unwrap());
    let expressions = expressions.collect::<Vec<_>>();
    assert_eq!(expressions.len(), DASHBOARD.matches("\"expr\"").count());
    assert!(expressions.len() >= 20, "{expressions:?}");
    for expression in expressions {
        assert_eq!(faults(expression), [""; 0], "{expression}");
    }
    let variables = dashboard["templating"]["list"].as_array().unwrap();
    for (name, query) in [
        ("job", "label_values(webhook_queue_deliveries, job)"),
        ("instance", "label_values(ready{job=~\"$job\"}, instance)"),
    ] {
        let variable = variables.iter().find(|variable| variable["name"] == name);
        assert_eq!(variable.unwrap()["query"]["query"], query);
    }
    let ids = panels.iter().map(|panel| panel["id"].as_u64().unwrap());
    assert_eq!(ids.collect::<BTreeSet<_>>().len(), panels.len(), "ids are unique");
}

#[test]
fn every_alert_uses_existing_metrics_and_labels_and_has_a_summary() {
    let document = YamlLoader::load_from_str(ALERTS).unwrap().remove(0);
    let groups = document["groups"].as_vec().unwrap();
    let rules = groups.iter().flat_map(|group| group["rules"].as_vec().unwrap());
    assert!(rules.clone().count() >= 10);
    for rule in rules {
        let expression = rule["expr"].as_str().unwrap();
        assert_eq!(faults(expression), [""; 0], "{expression}");
        let Some(name) = rule["alert"].as_str() else {
            continue;
        };
        assert!(
            matches!(rule["labels"]["severity"].as_str(), Some("page" | "ticket")),
            "{name}"
        );
        assert!(rule["annotations"]["summary"].as_str().is_some(), "{name}");
    }
}
