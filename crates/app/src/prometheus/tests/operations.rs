//! The dashboard and the alert rules against the table: they ask for metrics and labels that there are, and nothing else.

use serde_json::Value;
use yaml_rust2::{Yaml, YamlLoader};

use crate::prometheus::{Kind, Metric, table};

const DASHBOARD: &str = include_str!("../../../../../docs/operations/grafana-dashboard.json");
const ALERTS: &str = include_str!("../../../../../docs/operations/alerts.yml");
const RUNBOOK: &str = include_str!("../../../../../docs/operations/README.md");

/// Labels that Prometheus gives to whatever it collects.
const OF_TARGETS: [&str; 2] = ["instance", "job"];
/// How an expression leaves out what watches the process: its answers are no client's.
const NO_PROBES: &str = "/healthz|/readyz|/metrics";
/// Words of the language that stand where a metric could.
const WORDS: [&str; 14] = [
    "and",
    "or",
    "unless",
    "by",
    "without",
    "on",
    "ignoring",
    "group_left",
    "group_right",
    "offset",
    "bool",
    "inf",
    "nan",
    "le",
];

#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    Name(String),
    Text(String),
    Sign(char),
}

fn tokens(expression: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut rest = expression.chars().peekable();
    while let Some(next) = rest.next() {
        if next == '"' {
            tokens.push(Token::Text(rest.by_ref().take_while(|c| *c != '"').collect()));
        } else if next.is_ascii_alphabetic() || matches!(next, '_' | '$') {
            let mut name = next.to_string();
            while let Some(more) = rest.next_if(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | ':')) {
                name.push(more);
            }
            tokens.push(Token::Name(name));
        } else if next.is_ascii_digit() {
            // A number, or a duration such as 5m.
            while rest.next_if(|c| c.is_ascii_alphanumeric() || *c == '.').is_some() {}
        } else if !next.is_whitespace() {
            tokens.push(Token::Sign(next));
        }
    }
    tokens
}

/// The metric by a name in an expression, which for a histogram has an ending.
fn metric(name: &str) -> Option<&'static Metric> {
    table().iter().find(|metric| match metric.kind {
        Kind::Histogram => ["_bucket", "_sum", "_count"]
            .iter()
            .any(|ending| name.strip_suffix(ending) == Some(metric.name)),
        Kind::Counter | Kind::Gauge => name == metric.name,
    })
}

/// What is wrong with an expression.
fn faults(expression: &str) -> Vec<String> {
    let (tokens, mut faults, mut labels, mut found) =
        (tokens(expression), Vec::new(), Vec::new(), Vec::new());
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        at += 1;
        let Token::Name(name) = token else { continue };
        let next = tokens.get(at);
        let aggregates = matches!(next, Some(Token::Name(word)) if matches!(word.as_str(), "by" | "without"));
        if matches!(
            name.as_str(),
            "by" | "without" | "on" | "ignoring" | "group_left" | "group_right"
        ) && next == Some(&Token::Sign('('))
        {
            let list = tokens[at..]
                .iter()
                .take_while(|token| **token != Token::Sign(')'));
            labels.extend(list.filter_map(|token| match token {
                Token::Name(label) => Some(label.clone()),
                _ => None,
            }));
            at += tokens[at..]
                .iter()
                .position(|token| *token == Token::Sign(')'))
                .unwrap();
        } else if aggregates
            || next == Some(&Token::Sign('('))
            || WORDS.contains(&name.as_str())
            || name.starts_with('$')
        {
            // A function, a word, or a variable of the dashboard.
        } else if name == "up" {
            // Prometheus' own.
            if next == Some(&Token::Sign('{')) {
                at += tokens[at..]
                    .iter()
                    .position(|token| *token == Token::Sign('}'))
                    .unwrap();
            }
        } else if let Some(metric) = metric(name) {
            found.push(metric);
            let mut conditions = [].as_slice();
            if next == Some(&Token::Sign('{')) {
                let end = tokens[at..]
                    .iter()
                    .position(|token| *token == Token::Sign('}'))
                    .unwrap();
                conditions = &tokens[at..at + end];
                at += end;
            }
            faults.extend(matchers(metric, conditions));
            faults.extend(strangers(metric, conditions));
        } else {
            faults.push(format!("there is no metric {name}"));
        }
    }
    let is_known = |label: &String| {
        let of_metric = |metric: &&Metric| metric.labels.iter().any(|of| of.name == *label) || label == "le";
        OF_TARGETS.contains(&label.as_str()) || found.iter().any(of_metric)
    };
    let unknown = labels.iter().filter(|label| !is_known(label));
    faults.extend(unknown.map(|label| format!("none of its metrics has the label {label}")));
    if found.is_empty() && !expression.contains("up{") && !expression.contains("up ") {
        faults.push("it asks for no metric".to_owned());
    }
    faults
}

/// What is wrong with the conditions on a metric's labels, `name = "value"` one after another.
fn matchers(metric: &Metric, tokens: &[Token]) -> Vec<String> {
    let mut faults = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        let Token::Name(label) = token else { continue };
        let value = tokens[at..].iter().find_map(|token| match token {
            Token::Text(text) => Some(text.as_str()),
            _ => None,
        });
        match (metric.labels.iter().find(|of| of.name == label), value) {
            (Some(of), Some(value)) => {
                let pattern = tokens[at..]
                    .iter()
                    .take(3)
                    .any(|token| *token == Token::Sign('~'));
                let parts: Vec<_> = if pattern {
                    value.split('|').collect()
                } else {
                    vec![value]
                };
                let is_open = |part: &str| part.starts_with('$') || part.contains(['.', '+', '*']);
                let unknown = parts.into_iter().filter(|part| {
                    !is_open(part) && of.values.as_ref().is_some_and(|values| !values.contains(part))
                });
                faults.extend(unknown.map(|part| format!("{} has no {label} {part}", metric.name)));
            }
            (None, _) if OF_TARGETS.contains(&label.as_str()) => {}
            _ => faults.push(format!("{} has no label {label}", metric.name)),
        }
    }
    faults
}

/// Whom the conditions on a metric's labels let in that do not belong there.
fn strangers(metric: &Metric, conditions: &[Token]) -> Vec<String> {
    let mut faults = Vec::new();
    let has = |name: &str| conditions.contains(&Token::Name(name.to_owned()));
    if !has("job") {
        faults.push(format!("it counts {} of any other program's", metric.name));
    }
    let of_requests = metric.labels.iter().any(|label| label.name == "route");
    let no_probes = has("route") && conditions.contains(&Token::Text(NO_PROBES.to_owned()));
    // There are none on the public listener.
    let of_clients = has("listener") && conditions.contains(&Token::Text("api".to_owned()));
    if of_requests && !no_probes && !of_clients {
        faults.push(format!("it counts probes in {}", metric.name));
    }
    faults
}

fn expressions(dashboard: &Value, found: &mut Vec<String>) {
    match dashboard {
        Value::Object(members) => {
            for (name, member) in members {
                match (name.as_str(), member) {
                    ("expr", Value::String(expression)) => found.push(expression.clone()),
                    _ => expressions(member, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| expressions(item, found)),
        _ => {}
    }
}

fn rules() -> Vec<Yaml> {
    let document = YamlLoader::load_from_str(ALERTS).unwrap().remove(0);
    let groups = document["groups"].as_vec().unwrap().clone();
    groups
        .iter()
        .flat_map(|group| group["rules"].as_vec().unwrap().clone())
        .collect()
}

#[test]
fn the_dashboard_asks_for_what_there_is() {
    let dashboard: Value = serde_json::from_str(DASHBOARD).unwrap();
    let mut found = Vec::new();
    expressions(&dashboard, &mut found);
    assert!(found.len() >= 20, "{} expressions", found.len());
    for expression in found {
        assert_eq!(faults(&expression), [""; 0], "{expression}");
    }
    let variables = dashboard["templating"]["list"].as_array().unwrap();
    for (name, query) in [
        ("job", "label_values(webhook_queue_deliveries, job)"),
        ("instance", "label_values(ready{job=~\"$job\"}, instance)"),
    ] {
        let asked = variables.iter().find(|variable| variable["name"] == name);
        assert_eq!(asked.unwrap()["query"]["query"], query);
    }
    let ids = dashboard["panels"]
        .as_array()
        .unwrap()
        .iter()
        .map(|panel| panel["id"].as_u64().unwrap());
    let mut ids = ids.collect::<Vec<_>>();
    let number = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), number, "panels have ids of their own");
}

#[test]
fn every_alert_asks_for_what_there_is_and_has_a_line_in_the_runbook() {
    let rules = rules();
    assert!(rules.len() >= 10, "{} rules", rules.len());
    for rule in rules {
        let name = rule["alert"].as_str().unwrap();
        let expression = rule["expr"].as_str().unwrap();
        assert_eq!(faults(expression), [""; 0], "{name}: {expression}");
        assert!(
            matches!(rule["labels"]["severity"].as_str(), Some("page" | "ticket")),
            "{name}"
        );
        assert!(rule["annotations"]["summary"].as_str().is_some(), "{name}");
        assert!(
            RUNBOOK.contains(&format!("| `{name}` |")),
            "{name} is not in docs/operations/README.md"
        );
    }
}

#[test]
fn what_there_is_not_is_found() {
    for (expression, fault) in [
        (
            "sum(rate(http_request_total[5m]))",
            "no metric http_request_total",
        ),
        ("sum by (rout) (rate(http_requests_total[5m]))", "the label rout"),
        ("http_requests_total{listner=\"api\"}", "no label listner"),
        ("http_requests_total{listener=\"apis\"}", "no listener apis"),
        ("http_requests_total{listener=~\"api|apis\"}", "no listener apis"),
        (
            "rate(http_request_duration_seconds[5m])",
            "no metric http_request_duration_seconds",
        ),
        ("1 + 1", "no metric"),
        ("process_open_fds > 5", "any other program's"),
        ("http_requests_total{job=\"seller-api\"}", "counts probes"),
        (
            "http_requests_total{job=\"seller-api\",listener=\"backoffice\"}",
            "counts probes",
        ),
    ] {
        let faults = faults(expression);
        assert!(
            faults.iter().any(|found| found.contains(fault)),
            "{expression}: {faults:?}"
        );
    }
    let fine = "histogram_quantile(0.99, sum by (le, route) (rate(http_request_duration_seconds_bucket{job=\"seller-api\", \
        listener=\"api\", status=~\"5..\"}[5m]))) > 0.5 and on (instance) ready{job=~\"$job\"} == 1";
    assert_eq!(faults(fine), [""; 0]);
    assert!(metric("ready").unwrap().labels.is_empty());
}
