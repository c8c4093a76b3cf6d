//! `GET /changes`: the feed of sellers' changes, complete and in one order.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use blackbox::{TRADE_SCOPES, World, all_invalid, items, parcel, text, until};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::{unlimited, world_of_trade};

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
    assert!((Duration::from_secs(1)..Duration::from_secs(6)).contains(&began.elapsed()));
    let path = format!("/changes?after={}&wait=30", text(&empty, "next"));
    let poll = tokio::spawn(world.office(reqwest::Method::GET, &path).send());
    let began = Instant::now();
    world.patched(&trader.token, &offer, &json!({"stock": 1})).await;
    let told = poll.await.unwrap().expect(200).json();
    assert!(began.elapsed() < Duration::from_secs(25), "it ended early");
    assert_eq!(told["items"][0]["stock"], 1);
    // If there are changes already, the answer comes at once.
    let began = Instant::now();
    assert_eq!(items(&page(&world, "?wait=30").await).len(), 1);
    assert!(began.elapsed() < Duration::from_secs(10));
}

/// Writes directly into the table in transactions that stay open for a while: the worst case for a reader.
async fn slow_writer(world: Arc<World>, seller: String, stocks: std::ops::Range<i32>) {
    let mut client = world.database.connect().await;
    for stock in stocks {
        let transaction = client.transaction().await.unwrap();
        let write = "insert into changes (seller_id, at, kind, offer_id, stock) values ($1::text::uuid, api_now(), 'offer.stock_changed', $1::text::uuid, $2)";
        transaction.execute(write, &[&seller, &stock]).await.unwrap();
        // The test needs time between write and commit.
        tokio::time::sleep(Duration::from_millis(u64::from(stock.unsigned_abs() % 40))).await;
        transaction.commit().await.unwrap();
    }
}

/// Reads the page after `after`.
async fn read_on(world: &World, limit: usize, seen: &mut Vec<i64>, after: &mut String) {
    let page = page(world, &format!("?limit={limit}{after}")).await;
    seen.extend(items(&page).iter().map(|item| item["stock"].as_i64().unwrap()));
    *after = format!("&after={}", text(&page, "next"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_by_cursor_sees_each_change_of_32_writers_once() {
    let world = Arc::new(unlimited().await);
    let trader = world.trader().await;
    let mut writers = Vec::new();
    for writer in 0..32 {
        let (world, seller) = (Arc::clone(&world), trader.seller.id.clone());
        if writer % 4 == 0 {
            let first = 1_000_000 + writer * 100;
            writers.push(tokio::spawn(slow_writer(world, seller, first..first + 20)));
        } else {
            let offer = world.any_offer(&trader.seller, json!({})).await;
            let token = trader.token.clone();
            writers.push(tokio::spawn(async move {
                for n in 0..20 {
                    let body = json!({"stock": writer * 1_000 + n});
                    world.patched(&token, &offer, &body).await;
                }
            }));
        }
    }
    let (mut seen, mut after) = (Vec::new(), String::new());
    while !writers.iter().all(JoinHandle::is_finished) {
        read_on(&world, 7, &mut seen, &mut after).await;
    }
    for writer in writers {
        writer.await.unwrap();
    }
    // Other tests' transactions on the same cluster may still hold back the last rows.
    let expected = 32 * 20;
    until("the rest", async || {
        read_on(&world, 1000, &mut seen, &mut after).await;
        seen.len() >= expected
    })
    .await;
    let distinct: BTreeSet<_> = seen.iter().collect();
    assert_eq!((seen.len(), distinct.len()), (expected, expected));
    let again = world.feed().await;
    let again: Vec<_> = again.iter().map(|item| item["stock"].as_i64().unwrap()).collect();
    assert_eq!(again, seen, "the order is stable");
}
