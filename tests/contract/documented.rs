//! Errors that operations have in common, tested with every operation that documents them.

use std::collections::BTreeSet;

use blackbox::{
    Document, Expect, HOOK_SCOPES, Operation, World, entry, local_receivers, parcel, text, whole,
};
use serde_json::{Value, json};
use testkit::Request;

use crate::{PROGRAM, world, world_of_trade, world_with};

/// An id that does not exist.
const NOBODYS: &str = "00000000-0000-4000-8000-000000000000";

/// All operations that require a bearer token.
fn operations() -> impl Iterator<Item = &'static Operation> {
    let operations = Document::current().operations().iter();
    operations.filter(|operation| operation.template.starts_with("/v1/"))
}

/// The operations that change something.
fn writing() -> impl Iterator<Item = &'static Operation> {
    operations().filter(|operation| operation.method != "GET")
}

/// A valid request for the operation, with the document's example as body. Two ids are separated by a space.
fn asking(world: &World, operation: &Operation, id: &str, query: &str) -> Request {
    // The tests that need a delivery make one with the id that stands for all.
    let (id, part) = id.split_once(' ').unwrap_or((id, NOBODYS));
    let path = operation
        .template
        .replace("{id}", id)
        .replace("{shipment_id}", part)
        .replace("{delivery_id}", part);
    let request = world.at(&operation.method, &format!("{path}{query}"));
    let content = &operation.json["requestBody"]["content"]["application/json"];
    match &content["examples"]["example"]["value"] {
        Value::Null => request,
        body => request.json(body),
    }
}

#[tokio::test]
async fn every_operation_has_the_common_errors() {
    let world = world().await;
    let seller = world.seller().await;
    let token = world.personal_token(&seller, &HOOK_SCOPES).await.token;
    let without = world.personal_token(&seller, &["messaging"]).await.token;
    for operation in operations() {
        let has = |status: &str| operation.json["responses"].get(status).is_some();
        let ask = |query: &str| asking(&world, operation, NOBODYS, query);
        let answer = ask("").without("user-agent").bearer(&token).send().await;
        answer.is_problem(400, &[whole("missing_user_agent")]);
        let answer = ask("?colour=red").bearer(&token).send().await;
        answer.is_problem(400, &[entry("validation_error", "colour")]);
        let mut responses = operation.responses(Document::current());
        let (_, refused) = responses.find(|(status, _)| *status == "400").unwrap();
        let documented = &refused["content"]["application/json"]["examples"]["validation_error"]["value"];
        assert_eq!(answer.json()["errors"], documented["errors"]);
        ask("").send().await.is_problem(401, &[whole("unauthorized")]);
        if has("403") {
            let answer = ask("").bearer(&without).send().await;
            answer.is_problem(403, &[whole("insufficient_scope")]);
            // The message names the scope, as the end of the challenge does: `scope="…"`.
            let message = text(&answer.json()["errors"][0], "message");
            let scope = answer.must("www-authenticate").rsplit('"').nth(1);
            assert!(message.contains(scope.unwrap()), "{message}");
        }
        let is_about_one = operation.template.contains("{id}");
        // The journal is there once the schema is finished.
        let is_journal = operation.template == "/v1/events";
        assert_eq!(has("404"), is_about_one || is_journal, "{}", operation.name());
        if is_about_one {
            let answer = ask("").bearer(&token).send().await;
            answer.is_problem(404, &[whole("not_found")]);
        }
    }
}

#[tokio::test]
async fn every_operation_counts_against_one_limit() {
    let world = world().await;
    world.stop_clock("2026-03-01T12:00:30Z").await;
    let app = world.application(&world.seller().await, &["messaging"]).await;
    let token = world.token(&app).await;
    world.set_limit(&token, 1).await;
    // The journal has a limit of its own.
    for operation in operations().filter(|operation| operation.id != "listEvents") {
        let answer = asking(&world, operation, NOBODYS, "").bearer(&token).send().await;
        answer.is_problem(429, &[whole("rate_limited")]);
    }
}

#[tokio::test]
async fn every_write_operation_refuses_a_reused_key() {
    let (world, trader, offer) = world_of_trade().await;
    let token = world.personal_token(&trader.seller, &HOOK_SCOPES).await.token;
    let first = world.patching(&token, &offer, &json!({"stock": 1}));
    first.header("idempotency-key", "k").send().await.expect(200);
    for operation in writing() {
        let again = asking(&world, operation, NOBODYS, "").bearer(&token);
        let answer = again.header("idempotency-key", "k").send().await;
        answer.is_problem(422, &[whole("idempotency_key_reused")]);
    }
}

#[tokio::test]
async fn every_write_operation_is_409_while_the_first_request_runs() {
    let world = World::with(PROGRAM, local_receivers).await;
    let trader = world.trader().await;
    let token = world.personal_token(&trader.seller, &HOOK_SCOPES).await.token;
    let offer = world.any_offer(&trader.seller, json!({})).await;
    let order = world.paid_order(&trader).await;
    let subscription = json!({"url": "http://127.0.0.1:9/", "events": ["order.paid"]});
    let sent = world.paid_order(&trader).await;
    let shipment = world.shipped(&trader.token, &sent.id, &parcel("AAAA1")).await;
    let shipment = format!("{} {}", sent.id, text(&shipment, "id"));
    for operation in writing() {
        // Each has its own, since one of them deletes it.
        let hook = world.subscribing(&token, &subscription).send().await.expect(201);
        let hook = text(&hook.json(), "id");
        let delivered = format!(
            "insert into deliveries (seller_id, subscription_id, id, created_at, attempt, response_status, event, body) \
             select seller_id, id, '{NOBODYS}', api_now(), 6, 500, 'order.paid', '{{}}' from subscriptions where id = '{hook}'"
        );
        world.execute(&delivered).await;
        let id = match operation.id.as_str() {
            "updateOffer" => &offer,
            "createShipment" => &order.id,
            "correctShipment" => &shipment,
            _ => &hook,
        };
        let ask = |key: &str| {
            let request = asking(&world, operation, id, "").bearer(&token);
            let request = request.header("idempotency-key", key);
            match operation.id.as_str() {
                "createWebhook" => request.without("content-type").json(&subscription),
                "updateOffers" => request
                    .without("content-type")
                    .json(&json!({"items": [{"id": offer, "stock": 1}]})),
                _ => request,
            }
        };
        let rows = format!(
            "select from offers where seller_id = '{}' for update; \
             lock table seller_orders, subscriptions, subscription_quota in exclusive mode",
            trader.seller.id
        );
        for n in 0.. {
            let key = format!("{}-{n}", operation.id);
            let held = world.open_transaction(&rows).await;
            let first = tokio::spawn(ask(&key).send());
            world.until_claimed(&key, &first).await;
            let second = ask(&key).send().await;
            held.end("rollback").await;
            let first = first.await.unwrap();
            if first.status < 300 {
                second.is_problem(409, &[whole("idempotency_in_progress")]);
                break;
            }
            // It waits for two seconds, and a busy machine may take longer.
            assert!(first.status == 500 && n < 5, "{}: {first:?}", operation.name());
        }
    }
}

#[tokio::test]
async fn every_operation_is_500_without_a_database() {
    let world = world().await;
    let (_, token) = world.reader().await;
    world.database.block_connections().await;
    for operation in operations() {
        let answer = asking(&world, operation, NOBODYS, "").bearer(&token).send().await;
        answer.is_problem(500, &[whole("internal_error")]);
        // Nothing of the cause: the message is the same for all.
        let message = "Internal error. Quote the traceId to support.";
        let said = json!([{"code": "internal_error", "message": message}]);
        assert_eq!(answer.json()["errors"], said, "{}", operation.name());
    }
    let form = "grant_type=client_credentials&client_id=psa_x&client_secret=pss_x&token=ps_rt_x";
    for request in [
        world.at("POST", "/oauth/token").form(form),
        world.at("POST", "/oauth/revoke").form(form),
        world.at("GET", "/oauth/authorize?client_id=psa_x"),
    ] {
        let answer = request.send().await;
        answer.oauth_error(500, "server_error");
        let said = "Internal error. Quote the traceId to support.";
        assert_eq!(answer.json()["error_description"], said);
    }
}

#[tokio::test]
async fn the_document_is_served_without_a_token() {
    let docs = "https://docs.shop.example";
    let world = world_with(&[("SERVER__DOCS_URL", docs)]).await;
    let request = world.at("GET", "/openapi.json").without("user-agent");
    let answer = request.send().await.expect(200);
    assert_eq!(answer.must("content-type"), "application/json");
    assert_eq!(answer.must("cache-control"), "public, max-age=300");
    let document = answer.json();
    assert_eq!(document["servers"], json!([{"url": world.server.base_url}]));
    assert_eq!(document["externalDocs"]["url"], docs);
    let committed: Value = serde_json::from_str(include_str!("../../docs/openapi.json")).unwrap();
    let paths = |document: &Value| {
        document["paths"]
            .as_object()
            .unwrap()
            .keys()
            .cloned()
            .collect::<BTreeSet<_>>()
    };
    assert_eq!(paths(&document), paths(&committed));
    let schemas = |document: &Value| document["components"]["schemas"].clone();
    assert_eq!(schemas(&document), schemas(&committed));
    let head = world.at("HEAD", "/openapi.json").send().await.expect(200);
    assert!(head.bytes.is_empty());
    let wrong = world.at("POST", "/openapi.json").send().await.expect(404);
    assert_eq!(wrong.must("allow"), "GET");
}
