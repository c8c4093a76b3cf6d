//! Traces: the spans of requests and of background work, the data that they must not contain, and collectors
//! that fail.

use std::time::{Duration, Instant};

use blackbox::{
    CarrierStub, Collector, Expect, Exported, Receiver, StubAnswer, World, assert_no_secret, events,
    local_receivers, logs_request, until,
};
use serde_json::{Value, json};
use testkit::ServerOptions;

use crate::{PROGRAM, inpost_at, mails_to, metrics, set, stop, take_server};

/// The caller's trace and span.
const CALLER: (&str, &str) = ("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331");
const TRACEPARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
/// The same header without the sampled flag.
const UNSAMPLED: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00";

/// Behind a trusted proxy, with full sampling.
fn traced(options: ServerOptions, collector: &Collector) -> ServerOptions {
    let settings = [
        ("SERVER__TRUSTED_PROXIES", "127.0.0.1"),
        ("SERVER__PUBLIC_URL", "http://api.example"),
        ("TRACING__OTLP_ENDPOINT", collector.url.as_str()),
        ("TRACING__SAMPLE_RATIO", "1"),
    ];
    set(options, &settings)
}

/// A world with full sampling, and a token that may read offers.
async fn traced_world(collector: &Collector) -> (World, String) {
    let world = World::with(PROGRAM, |options| traced(options, collector)).await;
    let (_, token) = world.reader().await;
    (world, token)
}

/// Reads offers with a trace id and a `traceparent`.
async fn read(world: &World, token: &str, trace_id: &str, traceparent: &str) {
    let request = world.at("GET", "/v1/offers").bearer(token);
    let request = request.header("x-request-id", trace_id);
    let request = request.header("traceparent", traceparent);
    request.send().await.expect(200);
}

/// The values of these attributes.
fn attributes<const N: usize>(span: &Exported, names: [&str; N]) -> [String; N] {
    names.map(|name| span.attribute(name).to_owned())
}

#[tokio::test]
async fn a_request_is_a_span_in_its_callers_trace_with_its_statements_under_it() {
    let collector = Collector::start().await;
    let (world, _) = traced_world(&collector).await;
    let application = world.application(&world.seller().await, &["offers:read"]).await;
    let token = world.token(&application).await;
    read(&world, &token, "traced-read-1", TRACEPARENT).await;

    let request = collector.request("traced-read-1").await;
    assert_eq!((request.trace.as_str(), request.parent.as_str()), CALLER);
    assert_eq!(request.name, "GET /v1/offers");
    assert_eq!(i32::from(request.kind), 2, "the kind of a server");
    let names = [
        "listener",
        "http.request.method",
        "http.route",
        "http.response.status_code",
        "client_id",
    ];
    let expected = ["api", "GET", "/v1/offers", "200", &application.client_id];
    assert_eq!(attributes(&request, names), expected);
    assert!(!request.failed && request.times.0 < request.times.1);

    let is_gate = |span: &Exported| span.name == "gate" && span.is_under(&request);
    let gate = collector.span("the gate's span", is_gate).await;
    let names = ["db.system.name", "db.query.summary", "db.operation.batch.size"];
    assert_eq!(attributes(&gate, names), ["postgresql", "gate", "1"]);
    assert!(request.times.0 <= gate.times.0 && gate.times.1 <= request.times.1);
    let all = collector.of(&request.trace);
    assert!(all.len() >= 3, "the request, the gate, and the offers: {all:?}");
    let is_child = |span: &Exported| span.id == request.id || span.is_under(&request);
    assert!(all.iter().all(is_child), "{all:?}");

    let log = world
        .server
        .log_with(|log| logs_request(log, "traced-read-1"))
        .await;
    let is_line = |event: &Value| event["fields"]["trace_id"] == "traced-read-1";
    let line = events(&log).into_iter().find(is_line).unwrap();
    let ids = (&line["otel_trace_id"], &line["otel_span_id"]);
    assert_eq!(ids, (&json!(request.trace), &json!(request.id)));
    let resource = collector.resources().remove(0);
    assert_eq!(resource["service.name"], "seller-api");
    assert!(resource.contains_key("service.version"));

    let unknown = world.at("BREW", "/coffee").header("x-request-id", "brew-coffee");
    unknown.send().await;
    let unknown = collector.request("brew-coffee").await;
    assert_eq!(
        (unknown.name.as_str(), unknown.parent.as_str()),
        ("HTTP", ""),
        "no text from the client"
    );
    for name in ["http.route", "client_id"] {
        assert!(!unknown.attributes.contains_key(name), "{name}");
    }

    world.database.block_connections().await;
    let last = world
        .at("GET", "/v1/me")
        .bearer(&token)
        .header("x-request-id", "the-last-one");
    last.send().await.refused(500, "internal_error");
    let last = collector.request("the-last-one").await;
    assert!(
        last.failed && last.attribute("http.response.status_code") == "500",
        "{last:?}"
    );
    let gate = collector
        .span("the gate's span", |span| span.is_under(&last))
        .await;
    assert!(gate.failed, "{gate:?}");
}

#[tokio::test]
async fn a_shipment_is_traced_to_the_carrier_workers_start_traces_and_nothing_private_is_exported() {
    let (collector, carrier) = (Collector::start().await, CarrierStub::start().await);
    let (receiver, mails) = (Receiver::start().await, tempfile::tempdir().unwrap());
    carrier.answers("TRACED-1", StubAnswer::State("adopted_at_source_branch"));
    let world = World::with(PROGRAM, |options| {
        let options = inpost_at(traced(local_receivers(options), &collector), &carrier.url);
        mails_to(options, mails.path())
            .set("OTEL_EXPORTER_OTLP_HEADERS", "x-collector-key=collectors-own-key")
            .set("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test")
    })
    .await;
    let own = world.integration().await;
    let hook = world.hook(&own.token, &receiver).await;
    let order = world.paid_order(&own.trader()).await;
    let parcel = json!({"carrier": "inpost", "tracking_number": "TRACED-1"});
    let shipping = world.shipping(&own.token, &order.id, &parcel);
    let shipping = shipping.header("x-request-id", "traced-shipment");
    shipping
        .header("traceparent", TRACEPARENT)
        .send()
        .await
        .expect(201);

    let request = collector.request("traced-shipment").await;
    assert_eq!(request.name, "POST /v1/orders/{id}/shipments");
    let look_up = |span: &Exported| span.name == "carrier inpost" && span.is_under(&request);
    let look_up = collector.span("the carrier's span", look_up).await;
    assert_eq!(look_up.attribute("outcome"), "found");
    let exchange = |span: &Exported| span.is_under(&look_up);
    let exchange = collector.span("the exchange's span", exchange).await;
    let names = [
        "http.request.method",
        "http.response.status_code",
        "server.address",
    ];
    assert_eq!(attributes(&exchange, names), ["GET", "200", "127.0.0.1"]);
    for name in ["begin", "transaction", "commit"] {
        let is_it = |span: &Exported| span.name == name && span.is_under(&request);
        collector.span(name, is_it).await;
    }
    let has_place = |span: &Exported| span.attributes.contains_key("code.file.path");
    let statement = |span: &Exported| has_place(span) && span.is_under(&request);
    let statement = collector.span("a statement with its place", statement).await;
    let place = statement.attribute("code.file.path");
    assert!(place.starts_with("crates/adapters/postgres/src/"), "{place}");

    let first = collector.requests().remove(0);
    assert_eq!(first.request_line, "POST /v1/traces HTTP/1.1");
    assert_eq!(first.header("content-type"), "application/x-protobuf");
    assert_eq!(first.header("x-collector-key"), "collectors-own-key");
    let resource = collector.resources().remove(0);
    assert_eq!(resource["deployment.environment.name"], "test");
    assert!(!world.server.log().contains("collectors-own-key"));

    let attempt = |span: &Exported| span.name == "webhook order.shipped";
    let attempt = collector.span("the attempt's span", attempt).await;
    assert_ne!(attempt.trace, request.trace);
    let delivered = receiver.hears("order.shipped").await;
    let expected = ["delivered", delivered.delivery(), &own.application.client_id];
    assert_eq!(
        attributes(&attempt, ["outcome", "delivery", "client_id"]),
        expected
    );
    let has_traceparent = delivered.headers.iter().any(|(name, _)| name == "traceparent");
    assert!(!has_traceparent, "the contract has no such header");
    let mail = |span: &Exported| span.name == "mail shipment";
    let mail = collector.span("the mail's span", mail).await;
    assert_eq!(mail.attribute("outcome"), "sent");
    assert_eq!([attempt.parent, mail.parent], ["", ""]);

    for request in collector.requests() {
        let bytes = String::from_utf8_lossy(&request.body);
        assert_no_secret(&bytes);
        for private in [
            "TRACED-1",
            "collectors-own-key",
            "ewa@buyer.example",
            "/hooks",
            &own.token,
            &hook.secret,
            &own.application.client_secret,
            &world.server.operator_token,
        ] {
            assert!(!bytes.contains(private), "{private} is exported");
        }
    }
}

#[tokio::test]
async fn only_a_trusted_peers_trace_is_continued_and_a_stop_loses_nothing() {
    for (trusted, recorded) in [("127.0.0.1", vec!["is-sampled"]), ("", vec![])] {
        let collector = Collector::start().await;
        let settings = [
            ("SERVER__TRUSTED_PROXIES", trusted),
            ("TRACING__SAMPLE_RATIO", "0"),
        ];
        let options = |options| set(traced(options, &collector), &settings);
        let mut world = World::with(PROGRAM, options).await;
        let (_, token) = world.reader().await;
        read(&world, &token, "without-header", "").await;
        read(&world, &token, "unsampled", UNSAMPLED).await;
        read(&world, &token, "is-sampled", TRACEPARENT).await;
        stop(take_server(&mut world).await).await;
        let spans = collector.spans();
        let requests = spans.iter().filter_map(|span| span.attributes.get("x_trace_id"));
        assert_eq!(requests.collect::<Vec<_>>(), recorded, "trusted: {trusted}");
        assert!(spans.iter().all(|span| span.trace == CALLER.0), "{spans:?}");
    }
}

#[tokio::test]
async fn the_failure_of_a_collector_is_logged_once_and_its_recovery_too() {
    let collector = Collector::start().await;
    collector.answers(Some(503));
    let (world, token) = traced_world(&collector).await;
    let failures = |log: &str| log.matches("spans cannot be exported to the collector").count();
    for n in 0..3 {
        let before = collector.requests().len();
        read(&world, &token, &format!("lost-{n}"), "").await;
        until("another batch", async || collector.requests().len() > before).await;
    }
    let log = world.server.log_with(|log| failures(log) > 0).await;
    assert_eq!(failures(&log), 1, "{log}");
    let endpoint = format!("{}/v1/traces", collector.url);
    let line = log.lines().find(|line| failures(line) > 0).unwrap();
    assert!(line.contains(&endpoint), "{line}");
    collector.answers(Some(200));
    read(&world, &token, "sent-again", "").await;
    let recovered = |log: &str| log.contains("spans are exported to the collector again");
    let log = world.server.log_with(recovered).await;
    assert_eq!(failures(&log), 1);
    let metrics = metrics(&world).await;
    for outcome in ["lost", "sent"] {
        let name = format!("trace_spans_exported_total{{outcome=\"{outcome}\"}} ");
        let count = metrics.lines().find_map(|line| line.strip_prefix(&name));
        assert!(count.unwrap().parse::<u64>().unwrap() > 0, "{outcome}");
    }
}

#[tokio::test]
async fn a_collector_that_never_answers_delays_no_request_and_no_stop() {
    let collector = Collector::start().await;
    collector.answers(None);
    let (mut world, token) = traced_world(&collector).await;
    let is_sent = async || !collector.requests().is_empty();
    until("a batch that is not answered", is_sent).await;
    let mut delayed = 0;
    for n in 0..10 {
        let begun = Instant::now();
        read(&world, &token, &format!("not-delayed-{n}"), "").await;
        // A batch would take 5 s, and a stall of the machine one request.
        delayed += usize::from(begun.elapsed() > Duration::from_secs(4));
    }
    assert!(delayed <= 1, "{delayed} requests");
    let server = take_server(&mut world).await;
    let begun = Instant::now();
    stop(server).await;
    // Three seconds for the last spans.
    assert!(begun.elapsed() < Duration::from_secs(8), "{:?}", begun.elapsed());
}
