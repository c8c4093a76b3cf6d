//! `Idempotency-Key`: which keys are taken, what a repeat gets, and what is another request.

use blackbox::{Expect, TRADE_SCOPES, parcel};
use reqwest::Method;
use serde_json::{Value, json};
use testkit::{Answer, Request};

use crate::world_of_trade;

fn keyed(request: Request, key: &str) -> Request {
    request.header("idempotency-key", key)
}

/// Asserts that `second` is `first` again, and says so.
#[track_caller]
fn replays(first: &Answer, second: &Answer) {
    assert_eq!(first.header("idempotent-replayed"), None, "{first:?}");
    assert_eq!(second.must("idempotent-replayed"), "true");
    assert_eq!((second.status, &second.bytes), (first.status, &first.bytes));
    assert_ne!(
        second.must("x-trace-id"),
        first.must("x-trace-id"),
        "a trace id of its own"
    );
    assert_eq!(
        second.number("x-ratelimit-limit"),
        first.number("x-ratelimit-limit")
    );
    let mut kept = first.headers.clone();
    let mut again = second.headers.clone();
    for own in [
        "x-trace-id",
        "date",
        "x-ratelimit-remaining",
        "x-ratelimit-reset",
        "ratelimit",
        "idempotent-replayed",
    ] {
        kept.remove(own);
        again.remove(own);
    }
    assert_eq!(again, kept);
}

#[tokio::test]
async fn a_repeated_patch_is_replayed_byte_for_byte_and_changes_nothing() {
    let (world, trader, offer) = world_of_trade().await;
    let patch = |stock: u32, key: &str| {
        keyed(
            world.patching(&trader.token, &offer, &json!({"stock": stock})),
            key,
        )
        .send()
    };
    let first = patch(3, "a").await.expect(200);
    // Meanwhile the world goes on: the repeat tells how things were.
    world
        .patch(&trader.token, &offer, &json!({"stock": 4}))
        .await
        .expect(200);
    for _ in 0..3 {
        replays(&first, &patch(3, "a").await);
    }
    assert_eq!(world.fed_offer(&trader.seller, &offer).await["stock"], 4);
    let (before, after) = (patch(3, "a").await, patch(3, "a").await);
    let used = before.number("x-ratelimit-remaining") - after.number("x-ratelimit-remaining");
    let same_window = before.must("x-ratelimit-reset") == after.must("x-ratelimit-reset");
    assert!(!same_window || used == 1, "a replay is counted");
    patch(3, "b").await.expect(200);
    assert_eq!(
        world.fed_offer(&trader.seller, &offer).await["stock"],
        3,
        "another key is another request"
    );
}

#[tokio::test]
async fn a_repeated_shipment_is_the_stored_201_and_not_already_shipped() {
    let (world, trader, _) = world_of_trade().await;
    let order = world.paid_order(&trader).await;
    let ship = || keyed(world.shipping(&trader.token, &order.id, &parcel("AAAA1")), "k").send();
    let first = ship().await.expect(201);
    replays(&first, &ship().await);
    world.settle(&order.id, "delivery").await.expect(200);
    replays(&first, &ship().await);
    assert_eq!(world.mails(&order.id).await, 1);
    world
        .ship(&trader.token, &order.id, &parcel("AAAA1"))
        .await
        .refused(409, "already_shipped");
}

#[tokio::test]
async fn another_body_path_query_or_method_under_the_same_key_is_refused() {
    let (world, trader, offer) = world_of_trade().await;
    let other = world.any_offer(&trader.seller, json!({})).await;
    let order = world.paid_order(&trader).await;
    let send = |method: Method, path: String, body: &'static str| {
        let request = world
            .client
            .request(method, &world.url(&path))
            .bearer(&trader.token);
        keyed(
            request.header("content-type", "application/json").body(body),
            "one",
        )
        .send()
    };
    let (path, body) = (format!("/v1/offers/{offer}"), r#"{"stock":3}"#);
    let first = send(Method::PATCH, path.clone(), body).await.expect(200);
    for answer in [
        send(Method::PATCH, path.clone(), r#"{"stock":4}"#).await,
        send(Method::PATCH, path.clone(), r#"{"stock": 3}"#).await,
        send(Method::PATCH, format!("{path}?fields=stock"), body).await,
        send(Method::PATCH, format!("/v1/offers/{other}"), body).await,
        send(
            Method::POST,
            format!("/v1/orders/{}/shipments", order.id),
            r#"{"carrier":"dpd","tracking_number":"AAAA1"}"#,
        )
        .await,
    ] {
        answer.is_problem(422, &[blackbox::whole("idempotency_key_reused")]);
    }
    replays(&first, &send(Method::PATCH, path, body).await);
    assert_eq!(
        world.order(&trader.token, &order.id).await["status"],
        "processing"
    );
    assert_eq!(world.fed_offer(&trader.seller, &other).await["stock"], 7);
}

#[tokio::test]
async fn keys_belong_to_the_seller_and_not_to_the_application_or_to_anybody_else() {
    let (world, trader, offer) = world_of_trade().await;
    let patch =
        |token: &str, offer: &str| keyed(world.patching(token, offer, &json!({"stock": 3})), "shared").send();
    let first = patch(&trader.token, &offer).await.expect(200);
    let application = world.application(&trader.seller, &TRADE_SCOPES).await;
    let token = world.token(&application).await;
    replays(&first, &patch(&token, &offer).await);
    let stranger = world.trader().await;
    let theirs = world.any_offer(&stranger.seller, json!({})).await;
    let own = patch(&stranger.token, &theirs).await.expect(200);
    assert_eq!(own.header("idempotent-replayed"), None);
    // The marketplace's keys are its own, too.
    let order = world
        .unpaid(&[blackbox::line(&trader.seller, &offer, 1)], json!({}))
        .await;
    let request = world.office(Method::POST, &format!("/orders/{}/payment", order.id));
    assert_eq!(
        keyed(request, "shared")
            .send()
            .await
            .expect(200)
            .header("idempotent-replayed"),
        None
    );
}

#[tokio::test]
async fn a_replay_passes_token_and_scope_first() {
    let (world, trader, offer) = world_of_trade().await;
    let token = world.personal_token(&trader.seller, &["offers:write"]).await;
    let patch = |token: &str| keyed(world.patching(token, &offer, &json!({"stock": 3})), "k").send();
    patch(&token.token).await.expect(200);
    let reader = world.personal_token(&trader.seller, &["offers:read"]).await.token;
    patch(&reader).await.refused(403, "insufficient_scope");
    let revoked = format!("/sellers/{}/personal-tokens/{}", trader.seller.id, token.id);
    world.office(Method::DELETE, &revoked).send().await.expect(204);
    patch(&token.token).await.refused(401, "unauthorized");
}

#[tokio::test]
async fn which_keys_there_are() {
    let (world, trader, offer) = world_of_trade().await;
    let patch = |key: &str| keyed(world.patching(&trader.token, &offer, &json!({"stock": 3})), key).send();
    let all: String = (0x21..0x7f_u8).map(char::from).collect();
    let longest = "k".repeat(128);
    for good in ["a", "a, b", "two words", &all, &longest] {
        let first = patch(good).await.expect(200);
        replays(&first, &patch(good).await);
    }
    for bad in ["", &"k".repeat(129), "tab\there", "ż"] {
        let answer = patch(bad).await;
        assert_eq!(answer.status, 400, "{bad:?}");
        answer.invalid(&["Idempotency-Key"]);
    }
    let twice = keyed(
        keyed(world.patching(&trader.token, &offer, &json!({"stock": 3})), "x"),
        "x",
    );
    twice.send().await.invalid(&["Idempotency-Key"]);
    // On GET it is ignored, however it looks.
    let get = world.client.get(&world.url("/v1/offers")).bearer(&trader.token);
    get.header("idempotency-key", "")
        .header("idempotency-key", "x")
        .send()
        .await
        .expect(200);
}

#[tokio::test]
async fn an_error_releases_the_key() {
    let (world, trader, offer) = world_of_trade().await;
    let order = world
        .unpaid(&[blackbox::line(&trader.seller, &offer, 1)], json!({}))
        .await;
    let ship = || keyed(world.shipping(&trader.token, &order.id, &parcel("AAAA1")), "ship").send();
    ship().await.refused(409, "order_unpaid");
    world.settle(&order.id, "payment").await.expect(200);
    let first = ship().await.expect(201);
    replays(&first, &ship().await);
    let patch = |body: Value| keyed(world.patching(&trader.token, &offer, &body), "patch").send();
    patch(json!({"stock": -1})).await.invalid(&["stock"]);
    let locked = world
        .any_offer(&trader.seller, json!({"status": "proposed"}))
        .await;
    let of_locked = || {
        keyed(
            world.patching(&trader.token, &locked, &json!({"status": "draft"})),
            "patch",
        )
        .send()
    };
    of_locked().await.refused(422, "status_locked_by_moderation");
    keyed(
        world.patching(&trader.token, "nothing", &json!({"stock": 1})),
        "patch",
    )
    .send()
    .await
    .refused(404, "not_found");
    patch(json!({"stock": 5})).await.expect(200);
    of_locked().await.refused(422, "idempotency_key_reused");
}
