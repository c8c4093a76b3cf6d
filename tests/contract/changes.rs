//! `GET /changes`: the feed of sellers' changes, complete and in one order.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use blackbox::{Expect as _, TRADE_SCOPES, World, all_invalid, items, parcel, text};
use serde_json::{Value, json};

use crate::world_of_trade;

async fn page(world: &World, query: &str) -> Value {
    let page = world.office_read(&format!("/changes{query}")).await;
    assert_eq!(page.as_object().unwrap().len(), 2, "{page}");
    page
}

/// The cursor after all changes so far.
async fn end(world: &World) -> String {
    let mut cursor = page(world, "").await;
    while !items(&cursor).is_empty() {
        cursor = page(world, &format!("?after={}", text(&cursor, "next"))).await;
    }
    text(&cursor, "next")
}

#[tokio::test]
async fn the_feed_lists_each_field_that_a_seller_changed_and_each_shipment() {
    let (world, trader, offer) = world_of_trade().await;
    // Neither repeated values nor the marketplace's own changes are listed.
    world.application(&trader.seller, &TRADE_SCOPES).await;
    let whole = json!({"price": {"amount": 5, "currency": "PLN"}, "stock": 2, "status": "draft"});
    world.patched(&trader.token, &offer, &whole).await;
    let same = json!({"stock": 2, "status": "draft"});
    world.patched(&trader.token, &offer, &same).await;
    world.moderate(&trader.seller, &offer, "reject").await;
    let reset = json!({"stock": 9});
    world.feed_again(&trader.seller, &offer, reset).await;
    let order = world.paid_order(&trader).await;
    world.shipped(&trader.token, &order.id, &parcel("AAAA1")).await;
    let (markets, unshipped) = (world.paid_order(&trader).await, world.paid_order(&trader).await);
    world.market_ship(&markets.id, &parcel("AAAA2")).await.expect(201);
    for moved in [&order, &markets, &unshipped] {
        world.order_moved(&moved.id, "delivery").await;
    }
    let feed = world.caught_up_feed().await;
    assert_eq!(feed.len(), 4, "{feed:#?}");
    let mut kinds = BTreeSet::new();
    for item in &feed {
        assert!(text(item, "at").ends_with('Z'));
        let kind = text(item, "kind");
        let mut expected = json!({"kind": kind, "seller_id": trader.seller.id, "at": item["at"]});
        let field = kind
            .strip_prefix("offer.")
            .and_then(|kind| kind.strip_suffix("_changed"));
        match field {
            Some(field) => {
                expected["offer_id"] = json!(offer);
                expected[field] = whole[field].clone();
            }
            None => expected["order_id"] = json!(order.id),
        }
        assert_eq!(item, &expected);
        kinds.insert(kind);
    }
    let expected = [
        "offer.price_changed",
        "offer.status_changed",
        "offer.stock_changed",
        "order.shipped",
    ];
    assert!(kinds.iter().eq(expected), "{kinds:?}");
}

#[tokio::test]
async fn limit_and_wait_are_clamped_and_other_parameters_are_refused() {
    let (world, trader, offer) = world_of_trade().await;
    for stock in 0..3 {
        let change = json!({"stock": stock});
        world.patched(&trader.token, &offer, &change).await;
    }
    assert_eq!(world.caught_up_feed().await.len(), 3);
    for (limit, expected) in [("0", 1), ("-7", 1), ("2", 2), ("99999999999999999999", 3)] {
        let page = page(&world, &format!("?limit={limit}")).await;
        assert_eq!(items(&page).len(), expected);
    }
    let after = end(&world).await;
    let began = Instant::now();
    let empty = page(&world, &format!("?after={after}&wait=-5")).await;
    assert_eq!(empty["items"], json!([]));
    assert!(began.elapsed() < Duration::from_secs(5));
    let table = "
        limit=x         => limit
        limit=          => limit
        wait=1.5        => wait
        wait=x          => wait
        after=          => after
        after=x         => after
        colour=red      => colour
        limit=1&limit=1 => limit";
    let get = async |query: &str| world.office_get(&format!("/changes?{query}")).await;
    all_invalid(table, get).await;
}

#[tokio::test]
async fn a_long_poll_returns_at_the_first_change_or_after_its_wait() {
    let (world, trader, offer) = world_of_trade().await;
    let after = end(&world).await;
    let began = Instant::now();
    let empty = page(&world, &format!("?after={after}&wait=1")).await;
    assert_eq!(empty["items"], json!([]));
    assert!((Duration::from_secs(1)..Duration::from_secs(15)).contains(&began.elapsed()));
    let path = format!("/changes?after={}&wait=30", text(&empty, "next"));
    let poll = tokio::spawn(world.office(reqwest::Method::GET, &path).send());
    let began = Instant::now();
    world.patched(&trader.token, &offer, &json!({"stock": 1})).await;
    let told = poll.await.unwrap().expect(200).json();
    assert!(began.elapsed() < Duration::from_secs(25), "it ended early");
    assert_eq!(told["items"][0]["stock"], 1);
    // A token that ends meanwhile gets nothing.
    world.execute("update operator_tokens set used_at = null").await;
    let path = format!("/changes?after={}&wait=3", text(&told, "next"));
    let poll = tokio::spawn(world.office(reqwest::Method::GET, &path).send());
    let used = "select count(used_at) from operator_tokens";
    world.until_count("the call is admitted", used, &[], 1).await;
    world
        .execute("update operator_tokens set revoked_at = now()")
        .await;
    poll.await.unwrap().refused(401, "unauthorized");
    world
        .execute("update operator_tokens set revoked_at = null")
        .await;
    // If there are changes already, the answer comes at once.
    let began = Instant::now();
    assert_eq!(items(&page(&world, "?wait=30").await).len(), 1);
    assert!(began.elapsed() < Duration::from_secs(10));
}
