//! Traces: the spans of requests and of background work, and the data that they must not contain.

use std::path::Path;

use blackbox::{
    CarrierStub, Collector, Expect, Exported, Receiver, Says, Trader, World, assert_no_secret, events,
    local_receivers, tells_of,
};
use reqwest::Method;
use serde_json::{Value, json};
use testkit::ServerOptions;

use crate::PROGRAM;

/// The caller's trace and span.
pub(crate) const CALLER: (&str, &str) = ("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331");
pub(crate) const TRACEPARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

pub(crate) fn traced(options: ServerOptions, collector: &Collector) -> ServerOptions {
    options
        .set("SELLER_API__TRACING__OTLP_ENDPOINT", &collector.url)
        .set("SELLER_API__TRACING__SAMPLE_RATIO", 1)
}

/// A world with full sampling.
pub(crate) async fn watched(collector: &Collector) -> World {
    World::with(PROGRAM, |options| traced(local_receivers(options), collector)).await
}

/// Reads offers with a trace id and a `traceparent`.
pub(crate) async fn read(world: &World, token: &str, trace_id: &str, traceparent: &str) {
    let request = world.client.get(&world.url("/v1/offers")).bearer(token);
    let request = request.header("x-request-id", trace_id);
    request
        .header("traceparent", traceparent)
        .send()
        .await
        .expect(200);
}

fn line_of(log: &str, trace_id: &str) -> Value {
    let of_it = |event: &Value| event["fields"]["trace_id"] == trace_id;
    events(log).into_iter().find(of_it).expect("the request's line")
}

#[tokio::test]
async fn a_request_is_a_span_in_its_callers_trace_with_its_statements_under_it() {
    let collector = Collector::start().await;
    let world = watched(&collector).await;
    let seller = world.seller().await;
    let application = world.application(&seller, &["offers:read"]).await;
    let token = world.token(&application).await;
    read(&world, &token, "traced-read-1", TRACEPARENT).await;

    let request = collector.request("traced-read-1").await;
    assert_eq!((request.trace.as_str(), request.parent.as_str()), CALLER);
    assert_eq!(request.name, "GET /v1/offers");
    assert_eq!(i32::from(request.kind), 2, "a server's");
    let told = [
        "listener",
        "http.request.method",
        "http.route",
        "http.response.status_code",
        "client_id",
    ];
    let told = told.map(|attribute| request.told(attribute));
    assert_eq!(told, ["api", "GET", "/v1/offers", "200", &application.client_id]);
    assert!(!request.failed && request.times.0 < request.times.1);

    let gate = collector
        .span("the gate's span", |span| {
            span.name == "gate" && span.is_under(&request)
        })
        .await;
    assert_eq!(gate.told("db.system.name"), "postgresql");
    assert_eq!(gate.told("db.query.summary"), "gate");
    assert_eq!(gate.told("db.operation.batch.size"), "1");
    assert!(request.times.0 <= gate.times.0 && gate.times.1 <= request.times.1);
    let all = collector.of(&request.trace);
    assert!(all.len() >= 3, "the gate, and the offers: {all:?}");
    assert!(
        all.iter()
            .all(|span| span.id == request.id || span.is_under(&request)),
        "{all:?}"
    );

    let log = world.server.log_with(|log| tells_of(log, "traced-read-1")).await;
    let line = line_of(&log, "traced-read-1");
    assert_eq!(
        (&line["otel_trace_id"], &line["otel_span_id"]),
        (&json!(request.trace), &json!(request.id))
    );
    let resource = collector.resources().remove(0);
    assert_eq!(resource["service.name"], "seller-api");
    assert!(resource.contains_key("service.version"));

    world.database.block_connections().await;
    let last = world.client.get(&world.url("/v1/me")).bearer(&token);
    last.header("x-request-id", "the-last-one")
        .send()
        .await
        .refused(500, "internal_error");
    let last = collector.request("the-last-one").await;
    assert!(
        last.failed && last.told("http.response.status_code") == "500",
        "{last:?}"
    );
    let gate = collector
        .span("the gate's span", |span| span.is_under(&last))
        .await;
    assert!(gate.failed, "{gate:?}");
}

#[tokio::test]
async fn whoever_names_no_trace_or_a_malformed_one_gets_one_of_its_own() {
    let collector = Collector::start().await;
    let world = watched(&collector).await;
    let (_, token) = world.reader().await;
    let malformed = [
        "",
        "00-1-2-01",
        &TRACEPARENT.to_uppercase(),
        &TRACEPARENT.replacen("00", "ff", 1),
    ];
    let mut traces = vec![CALLER.0.to_owned()];
    for (n, traceparent) in malformed.into_iter().enumerate() {
        let trace_id = format!("own-trace-{n}");
        read(&world, &token, &trace_id, traceparent).await;
        let request = collector.request(&trace_id).await;
        assert_eq!(request.parent, "", "{traceparent}");
        assert!(!traces.contains(&request.trace), "{traceparent}");
        traces.push(request.trace);
    }
    let refused = world
        .client
        .get(&world.url("/v1/me"))
        .header("x-request-id", "no-token-here");
    refused.send().await.expect(401);
    let request = collector.request("no-token-here").await;
    assert_eq!(request.told("http.response.status_code"), "401");
    assert!(!request.attributes.contains_key("client_id") && !request.failed);
    let nowhere = world
        .client
        .request(Method::from_bytes(b"BREW").unwrap(), &world.url("/coffee"));
    nowhere.header("x-request-id", "brew-coffee").send().await;
    let request = collector.request("brew-coffee").await;
    assert_eq!(request.name, "HTTP", "nothing that a client makes up");
    assert!(!request.attributes.contains_key("http.route"));
}

/// A world with this carrier, which writes its mails into this folder.
async fn trading(collector: &Collector, carrier: &CarrierStub, mails: &Path) -> World {
    carrier.says("TRACED-1", Says::State("adopted_at_source_branch"));
    World::with(PROGRAM, |options| {
        traced(local_receivers(options), collector)
            .set("SELLER_API__CARRIERS__INPOST__ENABLED", true)
            .set("SELLER_API__CARRIERS__INPOST__BASE_URL", &carrier.url)
            .set("SELLER_API__MAIL__FOLDER", mails.display())
            .set("SELLER_API__MAIL__SENDER_NAME", "Shop")
            .set("SELLER_API__MAIL__SENDER_ADDRESS", "shop@shop.example")
            .set(
                "SELLER_API__TRACING__HEADERS",
                "x-collector-key=collectors-own-key",
            )
            .set(
                "SELLER_API__TRACING__ATTRIBUTES",
                "deployment.environment.name=test",
            )
    })
    .await
}

/// Reports a shipment with the carrier, in the caller's trace.
async fn shipped(world: &World, trader: &Trader) {
    let order = world.paid_order(trader).await;
    let parcel = json!({"carrier": "inpost", "tracking_number": "TRACED-1"});
    let shipping = world.shipping(&trader.token, &order.id, &parcel);
    let shipping = shipping.header("x-request-id", "traced-shipment");
    let shipping = shipping.header("traceparent", TRACEPARENT);
    shipping.send().await.expect(201);
}

#[tokio::test]
async fn a_shipment_is_followed_through_its_transaction_and_to_the_carrier() {
    let (collector, carrier) = (Collector::start().await, CarrierStub::start().await);
    let mails = tempfile::tempdir().unwrap();
    let world = trading(&collector, &carrier, mails.path()).await;
    shipped(&world, &world.trader().await).await;

    let request = collector.request("traced-shipment").await;
    assert_eq!(request.name, "POST /v1/orders/{id}/shipments");
    let look_up = |span: &Exported| span.name == "carrier inpost" && span.is_under(&request);
    let look_up = collector.span("the carrier's span", look_up).await;
    assert_eq!(look_up.told("outcome"), "found");
    let exchange = |span: &Exported| span.is_under(&look_up);
    let exchange = collector.span("the exchange's span", exchange).await;
    let told = [
        "http.request.method",
        "http.response.status_code",
        "server.address",
    ];
    let told = told.map(|attribute| exchange.told(attribute));
    assert_eq!(told, ["GET", "200", "127.0.0.1"]);
    let expected = format!("00-{}-{}-01", CALLER.0, exchange.id);
    assert_eq!(
        carrier.header("TRACED-1", "traceparent"),
        Some(expected),
        "the carrier can take part"
    );

    for name in ["begin", "transaction", "commit"] {
        let is_it = |span: &Exported| span.name == name && span.is_under(&request);
        collector.span(name, is_it).await;
    }
    let has_place = |span: &Exported| span.attributes.contains_key("code.file.path");
    let statement = |span: &Exported| has_place(span) && span.is_under(&request);
    let statement = collector.span("a statement with its place", statement).await;
    let place = statement.told("code.file.path");
    assert!(place.starts_with("crates/adapters/postgres/src/"), "{place}");

    let first = collector.requests().remove(0);
    assert_eq!(first.request_line, "POST /v1/traces HTTP/1.1");
    assert_eq!(first.header("content-type"), "application/x-protobuf");
    assert_eq!(first.header("x-collector-key"), "collectors-own-key");
    let resource = collector.resources().remove(0);
    assert_eq!(resource["deployment.environment.name"], "test");
    assert!(!world.server.log().contains("collectors-own-key"));
}

#[tokio::test]
async fn what_workers_send_are_traces_of_their_own_and_nothing_private_is_in_any() {
    let (collector, carrier) = (Collector::start().await, CarrierStub::start().await);
    let (receiver, mails) = (Receiver::start().await, tempfile::tempdir().unwrap());
    let world = trading(&collector, &carrier, mails.path()).await;
    let own = world.integration().await;
    let hook = world.hook(&own.token, &receiver).await;
    shipped(&world, &own.trader()).await;

    let request = collector.request("traced-shipment").await;
    let attempt = |span: &Exported| span.name == "webhook order.shipped";
    let attempt = collector.span("the attempt's span", attempt).await;
    assert_eq!(
        (attempt.parent.as_str(), attempt.told("outcome")),
        ("", "delivered")
    );
    assert_ne!(attempt.trace, request.trace);
    let delivered = receiver.has(3).await;
    let mut delivered = delivered.iter();
    let delivered = delivered
        .find(|delivery| delivery.event() == "order.shipped")
        .unwrap();
    assert_eq!(attempt.told("delivery"), delivered.delivery());
    assert_eq!(attempt.told("client_id"), own.application.client_id);
    let told = |(name, _): &(String, String)| name == "traceparent";
    assert!(
        !delivered.headers.iter().any(told),
        "the contract has no such header"
    );
    let mail = |span: &Exported| span.name == "mail shipment";
    let mail = collector.span("the mail's span", mail).await;
    assert_eq!((mail.parent.as_str(), mail.told("outcome")), ("", "sent"));

    let private = ["TRACED-1", "collectors-own-key", "ewa@buyer.example", "/hooks"].map(str::to_owned);
    let mut private = private.to_vec();
    private.extend([own.token, hook.secret, own.application.client_secret]);
    private.push(world.server.operator_token.clone());
    tells_none_of(&collector, &private);
}

/// Asserts that no exported byte contains private data.
fn tells_none_of(collector: &Collector, private: &[String]) {
    for request in collector.requests() {
        let bytes = String::from_utf8_lossy(&request.body);
        assert_no_secret(&bytes);
        for text in private {
            assert!(!bytes.contains(text.as_str()), "it is told: {text}");
        }
    }
}
