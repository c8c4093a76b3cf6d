//! `etag`, `If-Match` and `stock_adjustment`: changes of what was seen, and relative ones.

use blackbox::{Expect, Trader, World, at_once, count_of, entry, keyed, offer_id, parcel, text, whole};
use serde_json::{Value, json};
use testkit::Request;

use crate::world_of_trade;

fn conditional(world: &World, trader: &Trader, offer: &str, change: &Value, tag: &str) -> Request {
    world
        .patching(&trader.token, offer, change)
        .header("if-match", tag)
}

async fn etag(world: &World, trader: &Trader, offer: &str) -> String {
    let path = format!("/v1/offers/{offer}?fields=etag");
    let answer = world.get(&trader.token, &path).await.expect(200);
    let tag = text(&answer.json(), "etag");
    assert_eq!(answer.must("etag"), tag);
    tag
}

#[tokio::test]
async fn a_change_is_made_only_in_the_state_that_its_client_has_seen() {
    let (world, trader, offer) = world_of_trade().await;
    let seen = etag(&world, &trader, &offer).await;
    assert!(seen.starts_with('"') && seen.ends_with('"'));
    let send =
        async |change: Value, tag: &str| conditional(&world, &trader, &offer, &change, tag).send().await;
    // What changes nothing leaves the tag; a change moves it for everyone.
    let same = send(json!({"stock": 7}), &seen).await.expect(200);
    assert_eq!(same.must("etag"), seen);
    let changed = send(json!({"stock": 8}), &seen).await.expect(200);
    let next = changed.must("etag").to_owned();
    assert_ne!(next, seen);
    assert_eq!(etag(&world, &trader, &offer).await, next);
    let listed = world.read(&trader.token, "/v1/offers").await;
    assert_eq!(listed["items"][0]["etag"], next);
    let weak = format!("W/{next}");
    for unmet in [seen.as_str(), weak.as_str(), "\"other\""] {
        let refused = send(json!({"stock": 9}), unmet).await;
        refused.is_problem(412, &[whole("precondition_failed")]);
    }
    let list = format!("{next}, {next}");
    for malformed in ["", "tag", list.as_str(), "\"a"] {
        send(json!({"stock": 9}), malformed).await.invalid("If-Match");
    }
    let twice = conditional(&world, &trader, &offer, &json!({"stock": 9}), &next).header("if-match", &next);
    twice.send().await.invalid("If-Match");
    assert_eq!(world.stock(&trader.seller, &offer).await, 8);
    send(json!({"stock": 9}), "*").await.expect(200);
    // The offer's absence comes first, then its state, then its rules.
    let nine = json!({"stock": 9});
    let absent = conditional(&world, &trader, &offer_id(99), &nine, "*");
    absent.send().await.refused(404, "not_found");
    let bare = world.any_offer(&trader.seller, json!({"stock": null})).await;
    let unmet = conditional(&world, &trader, &bare, &nine, &seen).send().await;
    unmet.is_problem(412, &[whole("precondition_failed")]);
    // Reads ignore it, and its opposite.
    for (name, tag) in [("if-match", "\"other\""), ("if-none-match", "*")] {
        let read = world.at("GET", &format!("/v1/offers/{offer}"));
        let read = read.bearer(&trader.token).header(name, tag);
        read.send().await.expect(200);
    }
    // So do other changes.
    let batch = json!({"items": [{"id": offer, "stock": 4}]});
    for tag in ["\"other\"", "tag"] {
        let request = world.at("POST", "/v1/offers/batch").bearer(&trader.token);
        let request = request.header("if-match", tag).json(&batch);
        let made = request.send().await.expect(200).json();
        assert_eq!(made["items"][0]["http_status"], 200, "{made}");
        let order = world.paid_order(&trader).await;
        let shipping = world.shipping(&trader.token, &order.id, &parcel("AAAA1"));
        shipping.header("if-match", tag).send().await.expect(201);
    }
}

#[tokio::test]
async fn a_repeat_comes_before_the_condition_with_the_first_answers_tag() {
    let (world, trader, offer) = world_of_trade().await;
    let seen = etag(&world, &trader, &offer).await;
    let path = format!("{offer}?fields=stock");
    let send = async |tag: &str| {
        let request = conditional(&world, &trader, &path, &json!({"stock": 8}), tag);
        request.header("idempotency-key", "conditional").send().await
    };
    let first = send(&seen).await.expect(200);
    world.patched(&trader.token, &offer, &json!({"stock": 3})).await;
    for tag in [seen.as_str(), "*", "\"other\""] {
        let again = send(tag).await.expect(200);
        assert_eq!(again.must("idempotent-replayed"), "true");
        assert_eq!(again.must("etag"), first.must("etag"));
        assert_eq!(again.bytes, first.bytes);
    }
    assert_eq!(world.stock(&trader.seller, &offer).await, 3);
}

#[tokio::test]
async fn of_changes_that_have_seen_the_same_state_one_is_made() {
    let (world, trader, offer) = world_of_trade().await;
    let seen = etag(&world, &trader, &offer).await;
    let requests = (0..20).map(|n| {
        let request = conditional(&world, &trader, &offer, &json!({"stock": 100 + n}), &seen);
        request.header("idempotency-key", &format!("race-{n}"))
    });
    let answers = at_once(requests).await;
    assert_eq!(count_of(&answers, 200), 1);
    for lost in answers.iter().filter(|answer| answer.status != 200) {
        lost.is_problem(412, &[whole("precondition_failed")]);
    }
}

#[tokio::test]
async fn parallel_adjustments_all_count_and_sell_exactly_the_stock() {
    let (world, trader, _) = world_of_trade().await;
    let offer = world.any_offer(&trader.seller, json!({"stock": 30})).await;
    let requests = (0..40).map(|n| {
        let request = world.patching(&trader.token, &offer, &json!({"stock_adjustment": -1}));
        // With and without keys.
        if n % 2 == 0 {
            keyed(request, &format!("sold-{n}"))
        } else {
            request
        }
    });
    let answers = at_once(requests).await;
    assert_eq!(count_of(&answers, 200), 30);
    for refused in answers.iter().filter(|answer| answer.status != 200) {
        refused.is_problem(422, &[entry("stock_out_of_range", "stock_adjustment")]);
        let message = text(&refused.json()["errors"][0], "message");
        assert!(message.starts_with("The stock is 0,"), "{message}");
    }
    assert_eq!(world.stock(&trader.seller, &offer).await, 0);
    let full = world
        .any_offer(&trader.seller, json!({"stock": 2_147_483_647}))
        .await;
    let bare = world.any_offer(&trader.seller, json!({"stock": null})).await;
    for (offer, code) in [(full, "stock_out_of_range"), (bare, "no_inventory_row")] {
        let refused = world
            .patch(&trader.token, &offer, &json!({"stock_adjustment": 1}))
            .await;
        refused.is_problem(422, &[entry(code, "stock_adjustment")]);
    }
}
