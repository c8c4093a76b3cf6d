//! `GET /changes`: the feed of what sellers changed, complete and in one order.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use blackbox::{Expect, TRADE_SCOPES, World, entry, eventually, parcel};
use serde_json::{Value, json};

use crate::{PROGRAM, world};

async fn page(world: &World, query: &str) -> Value {
    let page = world
        .office_get(&format!("/changes{query}"))
        .await
        .expect(200)
        .json();
    assert_eq!(page.as_object().unwrap().len(), 2, "{page}");
    page
}

/// A cursor behind everything that is told by now.
async fn end(world: &World) -> String {
    let mut cursor = page(world, "").await;
    while !cursor["items"].as_array().unwrap().is_empty() {
        let after = cursor["next"]
            .as_str()
            .expect("there always is a next")
            .to_owned();
        cursor = page(world, &format!("?after={after}")).await;
    }
    cursor["next"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn every_kind_with_its_fields() {
    let world = world().await;
    let seller = world.seller().await;
    let registered = world.application(&seller, &TRADE_SCOPES).await;
    let trader = world.trader().await;
    let offer = world.any_offer(&trader.seller, json!({})).await;
    let whole = json!({"price": {"amount": 5, "currency": "PLN"}, "stock": 2, "status": "draft"});
    world.patch(&trader.token, &offer, &whole).await.expect(200);
    let order = world.paid_order(&trader).await;
    world
        .ship(&trader.token, &order.id, &parcel("AAAA1"))
        .await
        .expect(201);
    let items = async || {
        Some(world.feed().await).filter(|items| items.iter().any(|item| item["kind"] == "order.shipped"))
    };
    let items = eventually("the shipment", items).await;
    // The back office registered the application itself, so that is not repeated here.
    assert!(
        items
            .iter()
            .all(|item| item["client_id"] != registered.client_id.as_str()),
        "{items:#?}"
    );
    assert_eq!(items.len(), 4, "{items:#?}");
    for item in &items {
        assert_eq!(item["seller_id"], trader.seller.id.as_str());
        assert!(item["at"].as_str().unwrap().ends_with('Z'));
        let (kind, own) = match item["kind"].as_str().unwrap() {
            "offer.price_changed" => ("price", &whole["price"]),
            "offer.stock_changed" => ("stock", &whole["stock"]),
            "offer.status_changed" => ("status", &whole["status"]),
            _ => {
                let fields = json!({"kind": "order.shipped", "seller_id": trader.seller.id, "order_id": order.id, "at": item["at"]});
                assert_eq!(item, &fields);
                continue;
            }
        };
        let fields = json!({"kind": item["kind"], "seller_id": trader.seller.id, "offer_id": offer, "at": item["at"], kind: own});
        assert_eq!(item, &fields);
    }
}

#[tokio::test]
async fn limit_and_wait_are_clamped_and_the_rest_is_strict() {
    let world = world().await;
    let trader = world.trader().await;
    let offer = world.any_offer(&trader.seller, json!({})).await;
    for stock in 0..3 {
        world
            .patch(&trader.token, &offer, &json!({"stock": stock}))
            .await
            .expect(200);
    }
    eventually("all", async || (world.feed().await.len() == 3).then_some(())).await;
    for (limit, expected) in [("0", 1), ("-7", 1), ("2", 2), ("99999999999999999999", 3)] {
        assert_eq!(
            page(&world, &format!("?limit={limit}")).await["items"]
                .as_array()
                .unwrap()
                .len(),
            expected
        );
    }
    let began = Instant::now();
    let after = end(&world).await;
    assert_eq!(
        page(&world, &format!("?after={after}&wait=-5")).await["items"],
        json!([])
    );
    assert!(
        began.elapsed() < Duration::from_secs(5),
        "a negative wait is none"
    );
    for (query, path) in [
        ("limit=x", "limit"),
        ("limit=", "limit"),
        ("wait=1.5", "wait"),
        ("wait=x", "wait"),
        ("after=", "after"),
        ("after=x", "after"),
        ("colour=red", "colour"),
        ("limit=1&limit=1", "limit"),
    ] {
        let answer = world.office_get(&format!("/changes?{query}")).await;
        assert_eq!(answer.status, 400, "{query}");
        answer.invalid(&[path]);
    }
    // In every order of pages the same items come in the same order.
    let whole = world.feed().await;
    let (mut one_by_one, mut after) = (Vec::new(), String::new());
    while one_by_one.len() < whole.len() {
        let next = page(&world, &format!("?limit=1{after}")).await;
        one_by_one.extend(next["items"].as_array().unwrap().clone());
        after = format!("&after={}", next["next"].as_str().unwrap());
    }
    assert_eq!(one_by_one, whole);
}

#[tokio::test]
async fn a_long_poll_ends_with_the_first_change_and_an_empty_one_with_its_time() {
    let world = Arc::new(world().await);
    let trader = world.trader().await;
    let offer = world.any_offer(&trader.seller, json!({})).await;
    let after = end(&world).await;
    let began = Instant::now();
    let empty = page(&world, &format!("?after={after}&wait=1")).await;
    assert_eq!(empty["items"], json!([]));
    assert!((Duration::from_secs(1)..Duration::from_secs(6)).contains(&began.elapsed()));
    let poll = {
        let (world, after) = (Arc::clone(&world), empty["next"].as_str().unwrap().to_owned());
        tokio::spawn(async move { page(&world, &format!("?after={after}&wait=30")).await })
    };
    let began = Instant::now();
    world
        .patch(&trader.token, &offer, &json!({"stock": 1}))
        .await
        .expect(200);
    let told = poll.await.unwrap();
    assert!(began.elapsed() < Duration::from_secs(10), "it ended early");
    assert_eq!(told["items"][0]["stock"], 1);
    // With something to tell already, nobody waits.
    let began = Instant::now();
    assert_eq!(
        page(&world, "?wait=30").await["items"].as_array().unwrap().len(),
        1
    );
    assert!(began.elapsed() < Duration::from_secs(10));
}

#[tokio::test]
async fn a_cursor_of_another_cluster_is_refused_clearly() {
    let world = world().await;
    let folder = tempfile::tempdir().unwrap();
    let elsewhere = blackbox::Sandbox::start(PROGRAM, &folder.path().join("data"), &[], &[]).await;
    let url = format!(
        "{}/changes?limit=1",
        elsewhere.credentials["backoffice_url"].as_str().unwrap()
    );
    let token = elsewhere.credentials["backoffice_token"].as_str().unwrap();
    let foreign = world
        .client
        .get(&url)
        .bearer(token)
        .send()
        .await
        .expect(200)
        .json();
    let answer = world
        .office_get(&format!("/changes?after={}", foreign["next"].as_str().unwrap()))
        .await;
    answer.is_problem(409, &[entry("conflict", "after")]);
    assert_eq!(elsewhere.end(rustix::process::Signal::TERM).await, Some(0));
}

/// Writes straight into the table in transactions that stay open for a while, which is the worst that a reader can meet.
async fn slow_writer(world: Arc<World>, seller: String, stocks: std::ops::Range<i32>) {
    let mut client = world.database.connect().await;
    for stock in stocks {
        let transaction = client.transaction().await.unwrap();
        let write = "insert into changes (seller_id, at, kind, offer_id, stock) values ($1::text::uuid, api_now(), 'offer.stock_changed', $1::text::uuid, $2)";
        transaction.execute(write, &[&seller, &stock]).await.unwrap();
        // The time between writing and committing is the point of it.
        tokio::time::sleep(Duration::from_millis(u64::from(stock.unsigned_abs() % 40))).await;
        transaction.commit().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_by_cursor_misses_nothing_of_32_writers() {
    let world = World::with(PROGRAM, |options| {
        options.set("SELLER_API__RATE_LIMIT__DEFAULT", 1_000_000)
    });
    let world = Arc::new(world.await);
    let trader = world.trader().await;
    let mut writers = Vec::new();
    for writer in 0..32 {
        let world = Arc::clone(&world);
        if writer % 4 == 0 {
            let first = 1_000_000 + writer * 100;
            writers.push(tokio::spawn(slow_writer(
                world,
                trader.seller.id.clone(),
                first..first + 20,
            )));
        } else {
            let offer = world.any_offer(&trader.seller, json!({})).await;
            let token = trader.token.clone();
            writers.push(tokio::spawn(async move {
                for n in 0..20 {
                    let body = json!({"stock": writer * 1_000 + n});
                    world.patch(&token, &offer, &body).await.expect(200);
                }
            }));
        }
    }
    let done = Arc::new(AtomicBool::new(false));
    let reader = {
        let (world, done) = (Arc::clone(&world), Arc::clone(&done));
        tokio::spawn(async move {
            let (mut seen, mut after) = (Vec::new(), String::new());
            loop {
                let last = done.load(Ordering::Acquire);
                let page = page(&world, &format!("?limit=7{after}")).await;
                let items = page["items"].as_array().unwrap();
                seen.extend(items.iter().map(|item| item["stock"].as_i64().unwrap()));
                after = format!("&after={}", page["next"].as_str().unwrap());
                if last && items.is_empty() {
                    return (seen, after);
                }
            }
        })
    };
    for writer in writers {
        writer.await.unwrap();
    }
    done.store(true, Ordering::Release);
    let (mut seen, after) = reader.await.unwrap();
    // Other tests' transactions on the same cluster may still hold the last rows back.
    let expected = 32 * 20;
    let mut after = after;
    eventually("the rest", async || {
        let page = page(&world, &format!("?limit=1000{after}")).await;
        seen.extend(
            page["items"]
                .as_array()
                .unwrap()
                .iter()
                .map(|item| item["stock"].as_i64().unwrap()),
        );
        after = format!("&after={}", page["next"].as_str().unwrap());
        (seen.len() >= expected).then_some(())
    })
    .await;
    let distinct: BTreeSet<_> = seen.iter().collect();
    assert_eq!(
        (seen.len(), distinct.len()),
        (expected, expected),
        "none twice, none missed"
    );
    let again: Vec<_> = world
        .feed()
        .await
        .iter()
        .map(|item| item["stock"].as_i64().unwrap())
        .collect();
    assert_eq!(again, seen, "the order is stable");
}
