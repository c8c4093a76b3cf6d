//! `Idempotency-Key`: valid keys, repeats, and keys that were used for a different request.

use blackbox::{
    Expect, TRADE_SCOPES, Trader, World, keyed, line, number_of, offer_body, offer_line, order_body, parcel,
    whole,
};
use reqwest::Method;
use serde_json::{Value, json};
use testkit::Answer;

use crate::world_of_trade;

/// Changes an offer with a key.
async fn patch(world: &World, token: &str, offer: &str, body: Value, key: &str) -> Answer {
    keyed(world.patching(token, offer, &body), key).send().await
}

/// Reports a shipment with a key.
async fn ship(world: &World, trader: &Trader, order: &str, key: &str) -> Answer {
    let request = world.shipping(&trader.token, order, &parcel("AAAA1"));
    keyed(request, key).send().await
}

/// Asserts that `second` has the same content as `first` and is marked as a replay.
#[track_caller]
pub(crate) fn replays(first: &Answer, second: &Answer) {
    assert!(!first.is_replayed(), "{first:?}");
    assert!(second.is_replayed(), "{second:?}");
    assert_eq!((second.status, &second.bytes), (first.status, &first.bytes));
    let (mut kept, mut again) = (first.headers.clone(), second.headers.clone());
    let own = "x-trace-id date x-ratelimit-remaining x-ratelimit-reset ratelimit idempotent-replayed";
    for own in own.split(' ') {
        kept.remove(own);
        again.remove(own);
    }
    assert_eq!(again, kept);
    assert_ne!(second.must("x-trace-id"), first.must("x-trace-id"));
}

#[tokio::test]
async fn a_repeat_is_replayed_byte_for_byte_and_changes_nothing() {
    let (world, trader, offer) = world_of_trade().await;
    let patch = |stock: u32, key| patch(&world, &trader.token, &offer, json!({"stock": stock}), key);
    let stock = async || world.stock(&trader.seller, &offer).await;
    let first = patch(3, "a").await.expect(200);
    // The data change meanwhile: the repeat returns the old answer.
    world.patched(&trader.token, &offer, &json!({"stock": 4})).await;
    for _ in 0..3 {
        replays(&first, &patch(3, "a").await);
    }
    assert_eq!(stock().await, 4);
    let (before, after) = (patch(3, "a").await, patch(3, "a").await);
    let used = before.number("x-ratelimit-remaining") - after.number("x-ratelimit-remaining");
    let same_window = before.must("x-ratelimit-reset") == after.must("x-ratelimit-reset");
    assert!(!same_window || used == 1, "a replay is counted");
    patch(3, "b").await.expect(200);
    assert_eq!(stock().await, 3, "another key is another request");
    // A repeated shipment is the stored 201 and not `already_shipped`.
    let order = world.paid_order(&trader).await;
    let first = ship(&world, &trader, &order.id, "k").await.expect(201);
    replays(&first, &ship(&world, &trader, &order.id, "k").await);
    world.order_moved(&order.id, "delivery").await;
    replays(&first, &ship(&world, &trader, &order.id, "k").await);
    assert_eq!(world.mails(&order.id).await, 1);
    let anew = world.ship(&trader.token, &order.id, &parcel("AAAA1")).await;
    anew.refused(409, "already_shipped");
}

#[tokio::test]
async fn another_body_path_query_or_method_under_the_same_key_is_refused() {
    let (world, trader, offer) = world_of_trade().await;
    let other = world.any_offer(&trader.seller, json!({})).await;
    let order = world.paid_order(&trader).await;
    let send = async |method: &str, path: &str, body: &'static str| {
        let request = world.at(method, path).bearer(&trader.token);
        let request = request.header("content-type", "application/json").body(body);
        keyed(request, "one").send().await
    };
    let (path, body) = (format!("/v1/offers/{offer}"), r#"{"stock":3}"#);
    let first = send("PATCH", &path, body).await.expect(200);
    let shipment = r#"{"carrier":"dpd","tracking_number":"AAAA1"}"#;
    for (method, path, body) in [
        ("PATCH", path.clone(), r#"{"stock":4}"#),
        ("PATCH", path.clone(), r#"{"stock": 3}"#),
        ("PATCH", format!("{path}?fields=stock"), body),
        ("PATCH", format!("/v1/offers/{other}"), body),
        ("POST", format!("/v1/orders/{}/shipments", order.id), shipment),
    ] {
        let answer = send(method, &path, body).await;
        answer.is_problem(422, &[whole("idempotency_key_reused")]);
    }
    // The input is checked before the key.
    send("PATCH", &path, r#"{"stock":-1}"#).await.invalid("stock");
    replays(&first, &send("PATCH", &path, body).await);
    let untouched = world.order(&trader.token, &order.id).await;
    assert_eq!(untouched["status"], "processing");
    assert_eq!(world.stock(&trader.seller, &other).await, 7);
}

#[tokio::test]
async fn keys_belong_to_the_seller_and_not_to_the_application() {
    let (world, trader, offer) = world_of_trade().await;
    let patch = |token, offer| patch(&world, token, offer, json!({"stock": 3}), "shared");
    let first = patch(&trader.token, &offer).await.expect(200);
    let app = world.application(&trader.seller, &TRADE_SCOPES).await;
    let token = world.token(&app).await;
    replays(&first, &patch(&token, &offer).await);
    let stranger = world.trader().await;
    let theirs = world.any_offer(&stranger.seller, json!({})).await;
    assert!(!patch(&stranger.token, &theirs).await.expect(200).is_replayed());
    // The marketplace's keys are separate too.
    let order = world.ordered(&trader.seller, &[&offer]).await;
    let payment = world.office(Method::POST, &format!("/orders/{}/payment", order.id));
    let paid = keyed(payment, "shared").send().await.expect(200);
    assert!(!paid.is_replayed());
    // Token and scope are checked before a replay.
    let writer = world.personal_token(&trader.seller, &["offers:write"]).await;
    replays(&first, &patch(&writer.token, &offer).await);
    let reader = world.personal_token(&trader.seller, &["offers:read"]).await.token;
    patch(&reader, &offer).await.refused(403, "insufficient_scope");
    world.revoke_personal(&trader.seller, &writer).await;
    patch(&writer.token, &offer).await.refused(401, "unauthorized");
}

#[tokio::test]
async fn a_key_has_1_to_128_visible_characters() {
    let (world, trader, offer) = world_of_trade().await;
    let patch = |key| patch(&world, &trader.token, &offer, json!({"stock": 3}), key);
    let all: String = (0x21..0x7f_u8).map(char::from).collect();
    let longest = "k".repeat(128);
    for good in ["a", "a, b", "two words", &all, &longest] {
        let first = patch(good).await.expect(200);
        replays(&first, &patch(good).await);
    }
    for bad in ["", &"k".repeat(129), "tab\there", "ż"] {
        let answer = patch(bad).await;
        assert_eq!(answer.status, 400, "{bad:?}");
        answer.invalid("Idempotency-Key");
    }
    let twice = world.patching(&trader.token, &offer, &json!({"stock": 3}));
    let twice = keyed(keyed(twice, "x"), "x").send().await;
    twice.invalid("Idempotency-Key");
    // On GET the header is ignored, even if malformed.
    let get = world.at("GET", "/v1/offers").bearer(&trader.token);
    keyed(keyed(get, ""), &"k".repeat(129)).send().await.expect(200);
}

#[tokio::test]
async fn an_error_releases_the_key() {
    let (world, trader, offer) = world_of_trade().await;
    let order = world.ordered(&trader.seller, &[&offer]).await;
    let ship = || ship(&world, &trader, &order.id, "ship");
    ship().await.refused(409, "order_unpaid");
    world.order_moved(&order.id, "payment").await;
    let first = ship().await.expect(201);
    replays(&first, &ship().await);
    let proposed = json!({"status": "proposed"});
    let locked = world.any_offer(&trader.seller, proposed).await;
    let patch = |offer, body| patch(&world, &trader.token, offer, body, "patch");
    patch(&offer, json!({"stock": -1})).await.invalid("stock");
    let of_locked = async || patch(&locked, json!({"status": "draft"})).await;
    of_locked().await.refused(422, "status_locked_by_moderation");
    let missing = patch("nothing", json!({"stock": 1})).await;
    missing.refused(404, "not_found");
    patch(&offer, json!({"stock": 5})).await.expect(200);
    of_locked().await.refused(422, "idempotency_key_reused");
}

#[tokio::test]
async fn every_post_of_the_back_office_takes_a_key() {
    let (world, trader, offer) = world_of_trade().await;
    let lines = [line(&trader.seller, &offer, 1)];
    let order = world.unpaid(&lines, json!({})).await;
    // The table of routes says which ones take a key; a test of it counts them.
    for (path, body) in [
        (
            "/sellers".to_owned(),
            json!({"name": "K", "email": "once@shop.example"}),
        ),
        ("/orders".to_owned(), order_body(&lines, json!({}))),
        (format!("/orders/{}/payment", order.id), json!({})),
    ] {
        let send = || keyed(world.office(Method::POST, &path).json(&body), &path).send();
        let (first, second) = (send().await, send().await);
        assert!(matches!(first.status, 200 | 201), "{path}: {first:?}");
        replays(&first, &second);
        let other = keyed(world.office(Method::POST, "/orders/PL-1/payment"), &path);
        other.send().await.refused(422, "idempotency_key_reused");
    }
    let stock = world.stock(&trader.seller, &offer).await;
    assert_eq!(stock, 5, "two orders were placed, not three");
    // Other methods ignore it, even if it was used or is malformed, and so does the import.
    let (seller, n) = (&trader.seller.id, number_of(&json!(offer)));
    let path = format!("/sellers/{seller}/offers/{offer}");
    let import = format!("/sellers/{seller}/offers:import");
    for (stock, key) in [(1, "k"), (2, "k"), (3, "")] {
        let feeding = world.office(Method::PUT, &path);
        let feeding = feeding.json(&offer_body(n, json!({"stock": stock})));
        keyed(feeding, key).send().await.expect(200);
        assert_eq!(world.stock(&trader.seller, &offer).await, stock);
        let importing = world.office(Method::POST, &import);
        let importing = keyed(importing, key).header("content-type", "application/x-ndjson");
        let importing = importing.body(offer_line(n, json!({"stock": stock + 10})));
        let report = importing.send().await.expect(200).json();
        assert_eq!(report["updated"], 1, "{report}");
    }
}
