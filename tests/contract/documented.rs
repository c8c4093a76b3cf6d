//! The refusals that operations have in common, got from every operation that the document says can give them.

use blackbox::{
    Document, Expect, HOOK_SCOPES, Operation, TRADE_SCOPES, World, entry, local_receivers, whole,
};
use reqwest::Method;
use serde_json::{Value, json};
use testkit::Request;

use crate::idempotency_claims::held;
use crate::{PROGRAM, world};

/// An id that nothing has.
const NOBODYS: &str = "00000000-0000-4000-8000-000000000000";

/// The operations that call for a bearer token.
fn operations() -> impl Iterator<Item = &'static Operation> {
    let operations = Document::current().operations().iter();
    operations.filter(|operation| operation.template.starts_with("/v1/"))
}

/// Those that change something.
fn writing() -> impl Iterator<Item = &'static Operation> {
    operations().filter(|operation| operation.method != "GET")
}

/// A request that the operation would take, with the document's own example as its body.
fn asking(world: &World, operation: &Operation, id: &str, query: &str) -> Request {
    let method: Method = operation.method.parse().unwrap();
    let path = operation.template.replace("{id}", id);
    let request = world
        .client
        .request(method, &world.url(&format!("{path}{query}")));
    let content = &operation.json["requestBody"]["content"]["application/json"];
    match &content["examples"]["example"]["value"] {
        Value::Null => request,
        body => request.json(body),
    }
}

fn has(operation: &Operation, status: &str) -> bool {
    operation.json["responses"].get(status).is_some()
}

async fn everything(world: &World) -> String {
    let seller = world.seller().await;
    world
        .personal_token(&seller, &[&TRADE_SCOPES[..], &HOOK_SCOPES[..]].concat())
        .await
        .token
}

#[tokio::test]
async fn every_operation_refuses_what_all_refuse() {
    let world = world().await;
    let token = everything(&world).await;
    let seller = world.seller().await;
    let without = world.personal_token(&seller, &["messaging"]).await.token;
    for operation in operations() {
        let ask = |query: &str| asking(&world, operation, NOBODYS, query);
        let answer = ask("").without("user-agent").bearer(&token).send().await;
        answer.is_problem(400, &[whole("missing_user_agent")]);
        let answer = ask("?colour=red").bearer(&token).send().await;
        answer.is_problem(400, &[entry("validation_error", "colour")]);
        ask("").send().await.is_problem(401, &[whole("unauthorized")]);
        if has(operation, "403") {
            let answer = ask("").bearer(&without).send().await;
            answer.is_problem(403, &[whole("insufficient_scope")]);
        }
        if has(operation, "404") {
            let answer = ask("").bearer(&token).send().await;
            answer.is_problem(404, &[whole("not_found")]);
        }
    }
}

#[tokio::test]
async fn every_operation_counts_against_one_limit() {
    let world = world().await;
    world.stop_clock("2026-03-01T12:00:30Z").await;
    let seller = world.seller().await;
    let application = world.application(&seller, &["messaging"]).await;
    let token = world.token(&application).await;
    world
        .adjust(&application.client_id, &json!({"rate_limit": 1}))
        .await
        .expect(200);
    world.get(&token, "/v1/me").await.expect(200);
    for operation in operations() {
        let answer = asking(&world, operation, NOBODYS, "").bearer(&token).send().await;
        answer.is_problem(429, &[whole("rate_limited")]);
    }
}

#[tokio::test]
async fn every_operation_that_writes_refuses_a_key_that_was_used() {
    let world = world().await;
    let trader = world.trader().await;
    let token = world
        .personal_token(&trader.seller, &[&TRADE_SCOPES[..], &HOOK_SCOPES[..]].concat())
        .await
        .token;
    let offer = world.any_offer(&trader.seller, json!({})).await;
    let first = world
        .patching(&token, &offer, &json!({"stock": 1}))
        .header("idempotency-key", "k");
    first.send().await.expect(200);
    for operation in writing() {
        let again = asking(&world, operation, NOBODYS, "")
            .bearer(&token)
            .header("idempotency-key", "k");
        again
            .send()
            .await
            .is_problem(422, &[whole("idempotency_key_reused")]);
    }
}

#[tokio::test]
async fn every_operation_that_writes_tells_that_the_first_request_still_runs() {
    let world = World::with(PROGRAM, local_receivers).await;
    let trader = world.trader().await;
    let token = world
        .personal_token(&trader.seller, &[&TRADE_SCOPES[..], &HOOK_SCOPES[..]].concat())
        .await
        .token;
    let offer = world.any_offer(&trader.seller, json!({})).await;
    let order = world.paid_order(&trader).await;
    let hook = world
        .subscribe_to(&token, "http://127.0.0.1:9/", &["order.paid"])
        .await
        .expect(201)
        .json();
    for operation in writing() {
        let id = match operation.id.as_str() {
            "updateOffer" => offer.as_str(),
            "createShipment" => &order.id,
            _ => hook["id"].as_str().unwrap(),
        };
        let ask = || {
            let request = asking(&world, operation, id, "")
                .bearer(&token)
                .header("idempotency-key", &operation.id);
            match operation.id.as_str() {
                "createWebhook" => {
                    let request = request.without("content-type");
                    request.json(&json!({"url": "http://127.0.0.1:9/", "events": ["order.paid"]}))
                }
                _ => request,
            }
        };
        let mut client = world.database.connect().await;
        let lock = client.transaction().await.unwrap();
        let tables = "lock table offers, seller_orders, subscriptions, subscription_quota in exclusive mode";
        lock.batch_execute(tables).await.unwrap();
        let first = held(&world, ask()).await;
        let second = ask().send().await;
        lock.rollback().await.unwrap();
        second.is_problem(409, &[whole("idempotency_in_progress")]);
        let first = first.await.unwrap();
        assert!(first.status < 300, "{}: {first:?}", operation.name());
    }
}

#[tokio::test]
async fn every_operation_answers_while_the_database_is_away() {
    let world = world().await;
    let token = everything(&world).await;
    world.database.go_away().await;
    for operation in operations() {
        let answer = asking(&world, operation, NOBODYS, "").bearer(&token).send().await;
        answer.is_problem(500, &[whole("internal_error")]);
    }
    let form = "grant_type=client_credentials&client_id=psa_x&client_secret=pss_x&token=ps_rt_x";
    for path in ["/oauth/token", "/oauth/revoke"] {
        let answer = world.client.post(&world.url(path)).form(form).send().await;
        answer.oauth_error(500, "server_error");
    }
    let answer = world
        .client
        .get(&world.url("/oauth/authorize?client_id=psa_x"))
        .send()
        .await;
    answer.oauth_error(500, "server_error");
}

#[tokio::test]
async fn the_document_is_served_to_everybody() {
    let world = world().await;
    let path = world.url("/openapi.json");
    let answer = world
        .client
        .get(&path)
        .without("user-agent")
        .header("x-request-id", "document-1")
        .send()
        .await
        .expect(200);
    assert_eq!(answer.must("content-type"), "application/json");
    assert_eq!(answer.must("cache-control"), "public, max-age=300");
    assert_eq!(answer.must("x-trace-id"), "document-1");
    let mut document = answer.json();
    assert_eq!(document["servers"], json!([{"url": world.server.base_url}]));
    let committed: Value = serde_json::from_str(include_str!("../../docs/openapi.json")).unwrap();
    let paths = |document: &Value| {
        document["paths"]
            .as_object()
            .unwrap()
            .keys()
            .cloned()
            .collect::<Vec<_>>()
    };
    assert_eq!(paths(&document), paths(&committed));
    assert_eq!(
        document["components"]["schemas"].take(),
        committed["components"]["schemas"]
    );
    let head = world.client.request(Method::HEAD, &path).send().await.expect(200);
    assert!(head.bytes.is_empty());
    let wrong = world.client.post(&path).send().await.expect(404);
    assert_eq!(wrong.must("allow"), "GET");
}
