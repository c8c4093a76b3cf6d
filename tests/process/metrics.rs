//! `/metrics` shows exactly the metrics in the table, whatever clients send.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use blackbox::{Wire, World, eventually, local_receivers, request, requests};
use seller_api::prometheus::{Kind, Label, table};
use serde_json::Value;
use testkit::{Client, ServerOptions, TestDatabase, TestServer, TestWorker};

use crate::PROGRAM;

/// One value's name and labels.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Series {
    name: String,
    labels: BTreeMap<String, String>,
}

/// Parses every value.
fn read(text: &str) -> BTreeMap<Series, f64> {
    let mut found = BTreeMap::new();
    for line in text
        .lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty())
    {
        let (series, value) = line.rsplit_once(' ').unwrap();
        let (name, labels) = series.split_once('{').unwrap_or((series, "}"));
        let pairs = labels
            .trim_end_matches('}')
            .split("\",")
            .filter(|pair| !pair.is_empty());
        let labels = pairs.map(|pair| {
            let (label, value) = pair.split_once("=\"").unwrap();
            (label.to_owned(), value.trim_end_matches('"').to_owned())
        });
        let series = Series {
            name: name.to_owned(),
            labels: labels.collect(),
        };
        found.insert(series, value.parse().unwrap());
    }
    found
}

async fn scraped(server: &TestServer) -> BTreeMap<Series, f64> {
    scraped_at(&server.backoffice_url).await
}

async fn scraped_at(url: &str) -> BTreeMap<Series, f64> {
    let answer = Client::new().get(&format!("{url}/metrics")).send().await;
    read(std::str::from_utf8(&answer.bytes).unwrap())
}

/// A value without labels, of the back office at this address.
pub(crate) async fn value_at(url: &str, name: &str) -> f64 {
    value(&scraped_at(url).await, name, &[])
}

/// Asserts that the scraped values match the table.
fn assert_in_table(found: &BTreeMap<Series, f64>) {
    for series in found.keys() {
        let meter = table().iter().find(|meter| match meter.kind {
            Kind::Histogram => ["_bucket", "_sum", "_count"]
                .iter()
                .any(|ending| series.name.strip_suffix(ending) == Some(meter.name)),
            Kind::Counter | Kind::Gauge => series.name == meter.name,
        });
        let meter = meter.unwrap_or_else(|| panic!("{series:?} is not in the table"));
        for (label, value) in series.labels.iter().filter(|(label, _)| *label != "le") {
            let of = meter.labels.iter().find(|of| of.name == label);
            let of = of.unwrap_or_else(|| panic!("{series:?} has a label that is not in the table"));
            assert!(allows(of, value), "{series:?}: {value} is not in the table");
        }
    }
}

/// Whether a label may have this value. Labels without listed values have separate rules.
fn allows(label: &Label, value: &str) -> bool {
    match (&label.values, label.name) {
        (Some(values), _) => values.contains(&value),
        (None, "route") => value == "-" || value.starts_with('/'),
        (None, "status") => value
            .parse()
            .is_ok_and(|status: u16| (100..=599).contains(&status)),
        (None, "client_id") => value == "other" || value.starts_with("psa_"),
        (None, "version" | "id" | "timeline") => value.starts_with(|first: char| first.is_ascii_digit()),
        (None, _) => false,
    }
}

fn value(found: &BTreeMap<Series, f64>, name: &str, labels: &[(&str, &str)]) -> f64 {
    let of = |series: &&Series| {
        let fits = |(label, value): &(&str, &str)| series.labels.get(*label).is_some_and(|is| is == value);
        series.name == name && labels.iter().all(fits)
    };
    let values: Vec<_> = found.iter().filter(|(series, _)| of(series)).collect();
    assert!(!values.is_empty(), "{name} {labels:?} is not exported");
    values.into_iter().map(|(_, value)| value).sum()
}

#[tokio::test]
async fn every_exported_series_is_in_the_table() {
    let world = World::with(PROGRAM, local_receivers).await;
    let (own, _receiver, hook) = world.subscribed().await;
    world.any_order(&own.seller).await;
    world.attempted(&own.token, &hook, 1).await;
    let (_, token) = world.reader().await;
    for path in ["/v1/me", "/v1/offers", "/v1/offers?limit=1"] {
        world.get(&token, path).await.expect(200);
    }
    let own_id = world.read(&token, "/v1/me").await["app"]["client_id"].clone();
    // The twentieth names it.
    for _ in 0..20 {
        world.get(&token, "/v1/orders").await.expect(403);
    }
    world.get("ps_at_unknown", "/v1/orders").await.expect(401);
    // It holds no snapshot between two statements, but the change feed waits for its end.
    let _written = world.open_transaction("select pg_current_xact_id()").await;
    let looked = async || {
        let found = scraped(&world.server).await;
        // The look itself holds one for a moment.
        let is_seen = value(&found, "database_oldest_snapshot_seconds", &[]) > 1.0;
        is_seen.then_some(found)
    };
    let found = eventually("a look at the queues", looked).await;
    assert_in_table(&found);
    let delivered = [("outcome", "delivered")];
    for (name, labels, is) in [
        ("webhook_delivery_outcomes_total", &delivered[..], 1.0),
        ("webhook_queues_claimed_total", &[], 1.0),
        ("webhook_attempts_in_flight", &[], 0.0),
        ("webhook_first_attempt_delay_seconds_count", &[], 1.0),
        ("webhook_queue_deliveries", &[("attempt", "first")], 0.0),
        ("ready", &[], 1.0),
        ("database_info", &[], 1.0),
        ("database_clock_difference_seconds", &[], 0.0),
        ("log_lines_lost_total", &[], 0.0),
        ("sealing_keys_missing", &[], 0.0),
    ] {
        let found = value(&found, name, labels);
        assert!((found - is).abs() < f64::EPSILON, "{name}: {found}");
    }
    let answered = [
        ("listener", "api"),
        ("route", "/v1/me"),
        ("method", "GET"),
        ("status", "200"),
    ];
    assert!(value(&found, "http_requests_total", &answered) >= 1.0);
    assert!(value(&found, "http_request_duration_seconds_count", &answered) >= 1.0);
    for (client, times) in [(own_id.as_str().unwrap(), 1.0), ("other", 19.0)] {
        let of_it = [("client_id", client), ("status", "403")];
        let refused = value(&found, "application_refusals_total", &of_it);
        assert!((refused - times).abs() < f64::EPSILON, "{client}: {refused}");
    }
    // Whose token is unknown is no application.
    let refusals = |series: &&Series| series.name == "application_refusals_total";
    assert_eq!(found.keys().filter(refusals).count(), 2);
    let admitted = [("limit", "api"), ("decision", "admitted")];
    assert!(value(&found, "rate_limit_decisions_total", &admitted) >= 3.0);
    let gate = [("statement", "gate")];
    assert!(value(&found, "database_statement_duration_seconds_count", &gate) >= 1.0);
    assert!(value(&found, "database_pool_wait_seconds_count", &[]) >= 1.0);
    // A counter is exported as 0 before its first event.
    let given_up = found.iter().find(|(series, _)| {
        let labels = series.labels.values().map(String::as_str);
        series.name == "mail_outcomes_total" && labels.eq(["account", "given_up"])
    });
    assert!(given_up.is_some_and(|(_, count)| count.abs() < f64::EPSILON));
    let [most, used] = ["process_virtual_memory_max_bytes", "process_virtual_memory_bytes"]
        .map(|name| value(&found, name, &[]));
    assert!(most > used, "unlimited memory is not exported as 0");
    assert!(value(&found, "database_pool_connections_max", &[]) >= 1.0);
    assert!(value(&found, "process_resident_memory_bytes", &[]) > 1_000_000.0);
    assert!(value(&found, "process_open_fds", &[]) > 3.0 && value(&found, "process_threads", &[]) > 1.0);
    let has_version = |series: &Series| series.name == "build_info" && series.labels.contains_key("version");
    assert!(found.keys().any(has_version));
}

/// The labels of a gauge that is 1.
pub(crate) async fn label_at(url: &str, name: &str, label: &str) -> Vec<String> {
    let found = scraped_at(url).await.into_iter();
    let found = found.filter(|(series, value)| series.name == name && (value - 1.0).abs() < f64::EPSILON);
    found.map(|(series, _)| series.labels[label].clone()).collect()
}

#[tokio::test]
async fn every_process_shows_its_role() {
    let (database, options) = (TestDatabase::create().await, ServerOptions::new(PROGRAM));
    let role = async |url: &str| label_at(url, "process_role", "role").await;
    for (workers, expected) in [("all", "both"), ("none", "serve")] {
        let options = options
            .clone()
            .set("SELLER_API__SERVER__WORKERS", workers)
            .in_one_process();
        let server = blackbox::listen(&options, database.url()).await;
        assert_eq!(role(&server.backoffice_url).await, [expected]);
    }
    let (_worker, probes) = TestWorker::listening(&options, &database).await;
    assert_eq!(role(&probes).await, ["worker"]);
}

/// Else one application could wake whoever is on call for slow reads.
#[tokio::test]
async fn the_time_that_a_client_takes_for_a_body_is_no_slowness() {
    let world = World::start(PROGRAM).await;
    let (_, token) = world.reader().await;
    let bearer = format!("Bearer {token}");
    let mut wire = Wire::connect(&world.server.base_url).await;
    let head = [
        ("user-agent", "App/1.0"),
        ("authorization", bearer.as_str()),
        ("content-length", "2"),
    ];
    wire.send(request("GET", "/v1/offers", &head)).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    wire.send("{}").await;
    wire.answer().await.unwrap().expect(200);
    let of_it = [
        ("listener", "api"),
        ("route", "/v1/offers"),
        ("method", "GET"),
        ("status", "200"),
    ];
    let took = value(
        &scraped(&world.server).await,
        "http_request_duration_seconds_sum",
        &of_it,
    );
    assert!(took < 0.9, "{took}");
}

#[tokio::test]
async fn a_thousand_odd_requests_make_no_labels() {
    let world = World::start(PROGRAM).await;
    let bases = [&world.server.base_url, &world.server.backoffice_url];
    let mut wires = Vec::new();
    for base in bases {
        let mut wire = Wire::connect(base).await;
        // The first request creates the labels that the others share.
        odd(&mut wire, "ODD", "/odd").await;
        odd(&mut wire, "ODD", "/v1/odd").await;
        odd(&mut wire, "GET", "/odd").await;
        odd(&mut wire, "GET", "/v1/odd").await;
        wires.push(wire);
    }
    let labels = |found: &BTreeMap<Series, f64>| {
        let of_requests = found.keys().filter(|series| series.name == "http_requests_total");
        of_requests
            .map(|series| series.labels.clone())
            .collect::<BTreeSet<_>>()
    };
    scraped(&world.server).await;
    let before = scraped(&world.server).await;
    for wire in &mut wires {
        for n in 0..250 {
            odd(wire, &format!("ODD{n}"), &format!("/odd{n}")).await;
            odd(wire, "GET", &format!("/v1/odd/{n}")).await;
        }
    }
    let after = scraped(&world.server).await;
    assert_eq!(labels(&after), labels(&before));
    assert_in_table(&after);
    let counted = value(&after, "http_requests_total", &[]) - value(&before, "http_requests_total", &[]);
    assert!(counted >= 1_000.0, "{counted}");
}

async fn odd(wire: &mut Wire, method: &str, path: &str) {
    assert!(wire.send(request(method, path, &[])).await);
    wire.answer().await.expect("an answer");
}

#[tokio::test]
async fn metrics_are_exported_without_a_database() {
    let database = TestDatabase::create().await;
    database.block_connections().await;
    let server = blackbox::listen(&ServerOptions::new(PROGRAM), database.url()).await;
    server.not_ready().await;
    server.log_with(|log| log.contains("not ready: waiting")).await;
    let found = scraped(&server).await;
    assert_in_table(&found);
    assert!(value(&found, "ready", &[]).abs() < f64::EPSILON);
    for path in ["/healthz", "/nothing-here"] {
        let url = format!("{}{path}", server.backoffice_url);
        Client::new().get(&url).send().await;
    }
    let is_last = |line: &Value| line["route"] == "-";
    let log = server.log_with(|log| requests(log).iter().any(is_last)).await;
    let told = requests(&log);
    assert!(
        told.iter().all(|line| is_last(line) || line["status"] == 503),
        "only failed probes are logged: {told:?}"
    );
}
