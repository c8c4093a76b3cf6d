//! `PATCH /v1/offers/{id}`: its effects and access.

use blackbox::{Expect, Trader, World, assert_members, entry, keyed, number_of, offer_id, offer_line};
use serde_json::{Value, json};
use testkit::Answer;

use crate::{world, world_of_trade};

fn pln(amount: u64) -> Value {
    json!({"amount": amount, "currency": "PLN"})
}

/// A back office request about an offer: `automatic-price` or `moderation`.
async fn office(world: &World, trader: &Trader, offer: &str, call: &str, body: Value) -> Answer {
    let path = format!("/sellers/{}/offers/{offer}/{call}", trader.seller.id);
    world.office_post(&path, &body).await
}

async fn automatic(world: &World, trader: &Trader, offer: &str, amount: u64) -> Answer {
    let body = json!({"price": pln(amount)});
    office(world, trader, offer, "automatic-price", body).await
}

#[tokio::test]
async fn a_sellers_price_is_not_overwritten_by_feed_or_price_engine() {
    let (world, trader, offer) = world_of_trade().await;
    let fed = async || world.fed_offer(&trader.seller, &offer).await;
    let patched = async |change: Value| world.patched(&trader.token, &offer, &change).await;
    assert_eq!(fed().await["price_source"], "automatic");
    // A change without a price leaves the price automatic.
    patched(json!({"stock": 1, "status": "draft"})).await;
    automatic(&world, &trader, &offer, 11_000).await.expect(200);
    // Setting the same amount still makes the price manual.
    patched(json!({"price": pln(11_000)})).await;
    assert_eq!(fed().await["price_source"], "manual");
    let refused = automatic(&world, &trader, &offer, 10_000).await;
    refused.is_problem(409, &[entry("price_is_manual", "price")]);
    let again = json!({"price": pln(9_000), "stock": 3});
    world.feed_again(&trader.seller, &offer, again).await;
    assert_members(&fed().await, json!({"price": pln(11_000), "stock": 3}));
    // Rejected back office requests.
    let bare = world.any_offer(&trader.seller, json!({"price": null})).await;
    let refused = automatic(&world, &trader, &bare, 10_000).await;
    refused.is_problem(422, &[entry("no_price_row", "price")]);
    let euros = json!({"price": {"amount": 1, "currency": "EUR"}});
    for (call, body, path) in [
        ("automatic-price", json!({"price": null}), "price"),
        ("automatic-price", json!({}), "price"),
        ("automatic-price", euros, "price.currency"),
        ("moderation", json!({"decision": "delete"}), "decision"),
        ("moderation", json!({}), "decision"),
    ] {
        office(&world, &trader, &offer, call, body).await.invalid(path);
    }
    for (call, body) in [
        ("automatic-price", json!({"price": pln(1)})),
        ("moderation", json!({"decision": "reject"})),
    ] {
        let missing = office(&world, &trader, &offer_id(1), call, body).await;
        missing.refused(404, "not_found");
    }
}

#[tokio::test]
async fn moderation_sets_any_status_and_locks_its_own() {
    let world = world().await;
    let trader = world.trader().await;
    for status in ["proposed", "rejected"] {
        let offer = world.any_offer(&trader.seller, json!({"status": status})).await;
        let before = world.fed_offer(&trader.seller, &offer).await;
        for requested in ["published", "draft"] {
            let change = json!({"status": requested, "stock": 1, "price": pln(6)});
            let answer = world.patch(&trader.token, &offer, &change).await;
            answer.is_problem(422, &[entry("status_locked_by_moderation", "status")]);
        }
        assert_eq!(world.fed_offer(&trader.seller, &offer).await, before);
        // Only the status is locked.
        let rest = json!({"stock": 2, "price": pln(5)});
        world.patched(&trader.token, &offer, &rest).await;
    }
    for status in ["published", "draft", "proposed", "rejected"] {
        // Moderation applies in any status and may be repeated.
        for (decision, to) in [
            ("propose", "proposed"),
            ("approve", "published"),
            ("reject", "rejected"),
        ] {
            let offer = world.any_offer(&trader.seller, json!({"status": status})).await;
            let moderate = async || {
                world.moderate(&trader.seller, &offer, decision).await;
                world.fed_offer(&trader.seller, &offer).await
            };
            let once = moderate().await;
            assert_eq!(once["status"], to, "{status} {decision}");
            assert_eq!(moderate().await, once);
        }
    }
}

#[tokio::test]
async fn an_external_id_is_the_sellers_alone() {
    let (world, trader, offer) = world_of_trade().await;
    let patched = async |change: Value| world.patched(&trader.token, &offer, &change).await;
    let before = patched(json!({"stock": 7})).await;
    assert_eq!(before["external_id"], Value::Null);
    let named = patched(json!({"external_id": "K 1"})).await;
    assert_eq!(named["external_id"], "K 1");
    assert_ne!(named["etag"], before["etag"]);
    assert_eq!(patched(json!({"external_id": "K 1"})).await, named);
    // The marketplace's feeds keep it, and may not name it.
    world
        .feed_again(&trader.seller, &offer, json!({"title": "Other"}))
        .await;
    let line = |changes: Value| offer_line(number_of(&json!(offer)), changes);
    let lines = [line(json!({"stock": 2})), line(json!({"external_id": "K 2"}))].join("\n");
    let report = world.import(&trader.seller, lines).await.expect(200).json();
    assert_members(&report, json!({"updated": 1, "rejected_total": 1}));
    assert_eq!(report["rejected"][0]["errors"][0]["path"], "external_id");
    let fed = world.fed_offer(&trader.seller, &offer).await;
    assert_members(&fed, json!({"external_id": "K 1", "stock": 2}));
    let unnamed = json!({"external_id": null});
    let unnamed = keyed(world.patching(&trader.token, &offer, &unnamed), "unnamed").send();
    let unnamed = unnamed.await.expect(200).json();
    assert_eq!(unnamed["external_id"], Value::Null);
    let read = world.read(&trader.token, &format!("/v1/offers/{offer}")).await;
    assert_eq!(read, unnamed);
    // The marketplace is not told of it.
    let kinds = world.caught_up_feed().await;
    let kinds: Vec<_> = kinds
        .iter()
        .filter(|item| item["offer_id"] == offer.as_str())
        .collect();
    assert!(
        kinds.iter().all(|item| item["kind"] == "offer.stock_changed"),
        "{kinds:?}"
    );
}
