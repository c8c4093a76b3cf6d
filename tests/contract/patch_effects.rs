//! `PATCH /v1/offers/{id}`: what it does, to whom, and when `updated_at` moves.

use blackbox::{Expect, Trader, World, entry, eventually, merged, number_of, offer_body};
use reqwest::Method;
use serde_json::{Value, json};

use crate::{instant, world};

fn pln(amount: u64) -> Value {
    json!({"amount": amount, "currency": "PLN"})
}

async fn automatic(world: &World, trader: &Trader, offer: &str, amount: u64) -> testkit::Answer {
    let path = format!("/sellers/{}/offers/{offer}/automatic-price", trader.seller.id);
    world.office_post(&path, &json!({"price": pln(amount)})).await
}

async fn moderate(world: &World, trader: &Trader, offer: &str, decision: &str) {
    let path = format!("/sellers/{}/offers/{offer}/moderation", trader.seller.id);
    world
        .office_post(&path, &json!({"decision": decision}))
        .await
        .expect(200);
}

/// Feeds the offer again as it is, `changes` put over it.
async fn feed_again(world: &World, trader: &Trader, offer: &str, changes: Value) {
    let body = offer_body(number_of(&json!(offer)), changes);
    world.put(&trader.seller, offer, &body).await.expect(200);
}

#[tokio::test]
async fn a_price_that_is_set_is_manual_and_neither_feed_nor_engine_overwrites_it() {
    let world = world().await;
    let trader = world.trader().await;
    let offer = world.any_offer(&trader.seller, json!({})).await;
    let source = async || world.fed_offer(&trader.seller, &offer).await["price_source"].clone();
    assert_eq!(source().await, "automatic");
    automatic(&world, &trader, &offer, 11_000).await.expect(200);
    // The same amount again still becomes manual.
    world
        .patch(&trader.token, &offer, &json!({"price": pln(11_000)}))
        .await
        .expect(200);
    assert_eq!(source().await, "manual");
    automatic(&world, &trader, &offer, 10_000)
        .await
        .is_problem(409, &[entry("price_is_manual", "price")]);
    feed_again(&world, &trader, &offer, json!({"price": pln(9_000), "stock": 3})).await;
    let kept = world.fed_offer(&trader.seller, &offer).await;
    assert_eq!((&kept["price"], &kept["stock"]), (&pln(11_000), &json!(3)));
    // A feed without a price removes the row and the mark.
    feed_again(&world, &trader, &offer, json!({"price": null})).await;
    feed_again(&world, &trader, &offer, json!({"price": pln(8_000)})).await;
    assert_eq!(source().await, "automatic");
    automatic(&world, &trader, &offer, 7_000).await.expect(200);
    let whole = world
        .get(&trader.token, &format!("/v1/offers/{offer}"))
        .await
        .expect(200)
        .json();
    assert_eq!(whole["price"], pln(7_000));
    assert!(
        whole.get("price_source").is_none(),
        "it is not a field of the contract"
    );
}

#[tokio::test]
async fn a_change_without_a_price_leaves_the_price_automatic() {
    let world = world().await;
    let trader = world.trader().await;
    let offer = world.any_offer(&trader.seller, json!({})).await;
    world
        .patch(&trader.token, &offer, &json!({"stock": 1, "status": "draft"}))
        .await
        .expect(200);
    automatic(&world, &trader, &offer, 10_000).await.expect(200);
    let bare = world.any_offer(&trader.seller, json!({"price": null})).await;
    automatic(&world, &trader, &bare, 10_000)
        .await
        .is_problem(422, &[entry("no_price_row", "price")]);
    let missing = format!(
        "/sellers/{}/offers/{}/automatic-price",
        trader.seller.id, trader.seller.id
    );
    world
        .office_post(&missing, &json!({"price": pln(1)}))
        .await
        .refused(404, "not_found");
    let path = format!("/sellers/{}/offers/{offer}/automatic-price", trader.seller.id);
    world
        .office_post(&path, &json!({"price": null}))
        .await
        .invalid(&["price"]);
    world.office_post(&path, &json!({})).await.invalid(&["price"]);
    world
        .office_post(&path, &json!({"price": {"amount": 1, "currency": "EUR"}}))
        .await
        .invalid(&["price.currency"]);
}

#[tokio::test]
async fn updated_at_moves_exactly_when_a_returned_field_does() {
    let world = world().await;
    let clock = world.database.control_clock().await;
    let trader = world.trader().await;
    clock.freeze(instant("2040-01-01T12:00:00Z")).await;
    let offer = world.any_offer(&trader.seller, json!({})).await;
    let mut before = "2040-01-01T12:00:00.000000Z".to_owned();
    for (n, (change, moves)) in [
        (json!({"stock": 7}), false),
        (json!({"status": "published"}), false),
        (json!({"price": pln(12_900)}), false),
        (
            json!({"price": pln(12_900), "stock": 7, "status": "published"}),
            false,
        ),
        (json!({"stock": 8}), true),
        (json!({"stock": 8}), false),
        (json!({"status": "draft", "stock": 8}), true),
        (json!({"price": pln(1)}), true),
    ]
    .into_iter()
    .enumerate()
    {
        clock
            .freeze(instant(&format!("2040-01-01T12:01:{n:02}.000007Z")))
            .await;
        let changed = world
            .patch(&trader.token, &offer, &change)
            .await
            .expect(200)
            .json();
        let now = format!("2040-01-01T12:01:{n:02}.000007Z");
        let expected = if moves { now } else { before };
        assert_eq!(changed["updated_at"], expected.as_str(), "{change}");
        before = expected;
    }
    let query = "/v1/offers?updated_after=2040-01-01T12:01:06Z";
    assert_eq!(
        world.get(&trader.token, query).await.json()["items"][0]["id"],
        offer.as_str()
    );
}

#[tokio::test]
async fn the_table_of_statuses() {
    let world = world().await;
    let trader = world.trader().await;
    for (status, wanted, allowed) in [
        ("published", "draft", true),
        ("draft", "published", true),
        ("published", "published", true),
        ("draft", "draft", true),
        ("proposed", "draft", false),
        ("proposed", "published", false),
        ("rejected", "draft", false),
        ("rejected", "published", false),
    ] {
        let offer = world.any_offer(&trader.seller, json!({"status": status})).await;
        let answer = world
            .patch(&trader.token, &offer, &json!({"status": wanted, "stock": 1}))
            .await;
        let now = world.fed_offer(&trader.seller, &offer).await;
        if allowed {
            assert_eq!(answer.expect(200).json()["status"], wanted);
            assert_eq!((&now["status"], &now["stock"]), (&json!(wanted), &json!(1)));
        } else {
            answer.is_problem(422, &[entry("status_locked_by_moderation", "status")]);
            assert_eq!((&now["status"], &now["stock"]), (&json!(status), &json!(7)));
            // Only the status is locked.
            let rest = json!({"stock": 2, "price": pln(5)});
            world.patch(&trader.token, &offer, &rest).await.expect(200);
        }
    }
}

#[tokio::test]
async fn moderation_moves_from_any_status_and_repeating_is_harmless() {
    let world = world().await;
    let trader = world.trader().await;
    for from in ["published", "draft", "proposed", "rejected"] {
        for (decision, to) in [
            ("propose", "proposed"),
            ("approve", "published"),
            ("reject", "rejected"),
        ] {
            let offer = world.any_offer(&trader.seller, json!({"status": from})).await;
            moderate(&world, &trader, &offer, decision).await;
            let once = world.fed_offer(&trader.seller, &offer).await;
            assert_eq!(once["status"], to, "{from} {decision}");
            moderate(&world, &trader, &offer, decision).await;
            assert_eq!(world.fed_offer(&trader.seller, &offer).await, once);
        }
    }
    let path = format!(
        "/sellers/{}/offers/{}/moderation",
        trader.seller.id, trader.seller.id
    );
    world
        .office_post(&path, &json!({"decision": "reject"}))
        .await
        .refused(404, "not_found");
    world
        .office_post(&path, &json!({"decision": "delete"}))
        .await
        .invalid(&["decision"]);
    world.office_post(&path, &json!({})).await.invalid(&["decision"]);
}

#[tokio::test]
async fn the_answer_can_be_cut_down_to_some_fields() {
    let world = world().await;
    let trader = world.trader().await;
    let offer = world.any_offer(&trader.seller, json!({})).await;
    let patch = async |query: &str, body: &Value| {
        let url = world.url(&format!("/v1/offers/{offer}?{query}"));
        world
            .client
            .request(Method::PATCH, &url)
            .bearer(&trader.token)
            .json(body)
            .send()
            .await
    };
    let answer = patch("fields=stock,title,stock", &json!({"stock": 3}))
        .await
        .expect(200)
        .json();
    assert_eq!(answer.as_object().unwrap().len(), 3);
    assert_eq!((&answer["id"], &answer["stock"]), (&json!(offer), &json!(3)));
    patch("fields=price_source", &json!({"stock": 4}))
        .await
        .invalid(&["fields"]);
    patch("fields=", &json!({"stock": 4})).await.invalid(&["fields"]);
    patch("limit=1", &json!({"stock": 4})).await.invalid(&["limit"]);
    assert_eq!(world.fed_offer(&trader.seller, &offer).await["stock"], 3);
}

#[tokio::test]
async fn each_field_that_a_seller_changed_is_one_change_of_the_feed() {
    let world = world().await;
    let trader = world.trader().await;
    let offer = world.any_offer(&trader.seller, json!({})).await;
    let whole = json!({"price": pln(5), "stock": 0, "status": "draft"});
    world.patch(&trader.token, &offer, &whole).await.expect(200);
    world
        .patch(&trader.token, &offer, &json!({"stock": 0, "status": "draft"}))
        .await
        .expect(200);
    // What the marketplace did itself is not told.
    moderate(&world, &trader, &offer, "reject").await;
    feed_again(&world, &trader, &offer, json!({"stock": 9})).await;
    world
        .patch(&trader.token, &offer, &json!({"stock": 4}))
        .await
        .expect(200);
    let of_offer = async || {
        let items = world.caught_up_feed().await;
        let items: Vec<_> = items
            .into_iter()
            .filter(|item| item["offer_id"] == offer.as_str())
            .collect();
        (items.iter().any(|item| item["stock"] == 4)).then_some(items)
    };
    let items = eventually("the last change", of_offer).await;
    let mut first: Vec<_> = items[..3]
        .iter()
        .map(|item| item["kind"].as_str().unwrap())
        .collect();
    first.sort_unstable();
    assert_eq!(
        first,
        [
            "offer.price_changed",
            "offer.status_changed",
            "offer.stock_changed"
        ]
    );
    assert_eq!(items.len(), 4, "{items:#?}");
    let common = json!({"kind": "offer.stock_changed", "seller_id": trader.seller.id, "offer_id": offer});
    let last = merged(common, json!({"at": items[3]["at"], "stock": 4}));
    assert_eq!(items[3], last);
    let price = items
        .iter()
        .find(|item| item["kind"] == "offer.price_changed")
        .unwrap();
    assert_eq!(price["price"], pln(5));
}
