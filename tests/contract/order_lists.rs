//! `GET /v1/orders`: order, filters, pages, cursors, fields.

use blackbox::{Expect, Trader, World, line};
use serde_json::{Value, json};

use crate::{instant, world};

/// A seller with `count` orders, one a second, the first at 12:00:01 in 2040; oldest first.
pub(crate) async fn prepared(count: u32) -> (World, Trader, Vec<String>) {
    let world = world().await;
    let clock = world.database.control_clock().await;
    let trader = world.trader().await;
    let offer = world.any_offer(&trader.seller, json!({"stock": null})).await;
    let mut ids = Vec::new();
    for second in 1..=count {
        clock
            .freeze(instant(&format!("2040-01-01T12:00:{second:02}.000001Z")))
            .await;
        ids.push(
            world
                .unpaid(&[line(&trader.seller, &offer, 1)], json!({}))
                .await
                .id,
        );
    }
    (world, trader, ids)
}

pub(crate) async fn page(world: &World, token: &str, query: &str) -> Value {
    world
        .get(token, &format!("/v1/orders?{query}"))
        .await
        .expect(200)
        .json()
}

fn ids(page: &Value) -> Vec<String> {
    let items = page["items"].as_array().unwrap();
    items
        .iter()
        .map(|order| order["id"].as_str().unwrap().to_owned())
        .collect()
}

async fn all(world: &World, token: &str, query: &str) -> Vec<Vec<String>> {
    let mut pages = vec![page(world, token, query).await];
    while let Some(next) = pages.last().and_then(|page| page["next"].as_str()) {
        let following = page(world, token, &format!("{query}&after={next}")).await;
        pages.push(following);
    }
    pages.iter().map(ids).collect()
}

#[tokio::test]
async fn newest_first_in_pages_that_lose_nothing() {
    let (world, trader, mut placed) = prepared(7).await;
    placed.reverse();
    for limit in 1..=8 {
        let expected: Vec<_> = placed.chunks(limit).map(<[String]>::to_vec).collect();
        assert_eq!(
            all(&world, &trader.token, &format!("limit={limit}")).await,
            expected
        );
    }
    for clamped in ["0", "-5", "-99999999999999999999"] {
        assert_eq!(
            ids(&page(&world, &trader.token, &format!("limit={clamped}")).await).len(),
            1
        );
    }
    assert_eq!(
        ids(&page(&world, &trader.token, "limit=99999999999999999999").await),
        placed
    );
    for bad in ["abc", "", "1.5", "%2B5", "1e1"] {
        world
            .get(&trader.token, &format!("/v1/orders?limit={bad}"))
            .await
            .invalid(&["limit"]);
    }
    // An order placed while pages are read does not shift them.
    let first = page(&world, &trader.token, "limit=3").await;
    world.paid_order(&trader).await;
    let next = first["next"].as_str().unwrap();
    assert_eq!(
        ids(&page(&world, &trader.token, &format!("limit=10&after={next}")).await),
        placed[3..]
    );
}

#[tokio::test]
async fn orders_of_one_instant_are_in_order_of_their_ids() {
    let world = world().await;
    let clock = world.database.control_clock().await;
    let trader = world.trader().await;
    let offer = world.any_offer(&trader.seller, json!({"stock": null})).await;
    clock.freeze(instant("2040-01-01T12:00:00Z")).await;
    let mut placed = Vec::new();
    for _ in 0..6 {
        placed.push(
            world
                .unpaid(&[line(&trader.seller, &offer, 1)], json!({}))
                .await
                .id,
        );
    }
    placed.sort_unstable_by(|a, b| b.cmp(a));
    assert_eq!(all(&world, &trader.token, "limit=2").await.concat(), placed);
}

#[tokio::test]
async fn filters_alone_and_together() {
    let (world, trader, placed) = prepared(6).await;
    for order in &placed[1..5] {
        world.settle(order, "payment").await.expect(200);
    }
    world
        .ship(&trader.token, &placed[2], &blackbox::parcel("AAAA1"))
        .await
        .expect(201);
    world.settle(&placed[3], "delivery").await.expect(200);
    world.settle(&placed[4], "cancellation").await.expect(200);
    for (status, expected) in [
        ("pending", vec![5, 0]),
        ("processing", vec![1]),
        ("shipped", vec![2]),
        ("delivered", vec![3]),
        ("cancelled", vec![4]),
    ] {
        let expected: Vec<_> = expected.into_iter().map(|n: usize| placed[n].clone()).collect();
        assert_eq!(
            all(&world, &trader.token, &format!("limit=1&status={status}"))
                .await
                .concat(),
            expected,
            "{status}"
        );
    }
    let after = "placed_after=2040-01-01T12:00:04.000001Z";
    let expected = [placed[5].clone(), placed[4].clone()];
    assert_eq!(
        ids(&page(&world, &trader.token, after).await),
        expected,
        "strictly later"
    );
    assert_eq!(
        ids(&page(&world, &trader.token, &format!("{after}&status=cancelled")).await),
        expected[1..]
    );
    assert_eq!(
        ids(&page(
            &world,
            &trader.token,
            "placed_after=2040-01-01T13:00:04.000000%2B01:00"
        )
        .await)
        .len(),
        3
    );
    let updated = world.order(&trader.token, &placed[0]).await["updated_at"]
        .as_str()
        .unwrap()
        .to_owned();
    let later = page(&world, &trader.token, &format!("updated_after={updated}")).await;
    assert!(!ids(&later).contains(&placed[0]) && ids(&later).contains(&placed[5]));
    assert_eq!(
        all(&world, &trader.token, &format!("limit=2&updated_after={updated}"))
            .await
            .concat(),
        ids(&later)
    );
    let none = world.trader().await;
    assert_eq!(
        page(&world, &none.token, "").await,
        json!({"items": [], "next": null})
    );
}

#[tokio::test]
async fn a_move_brings_an_order_into_updated_after() {
    let world = world().await;
    let clock = world.database.control_clock().await;
    let trader = world.trader().await;
    clock.freeze(instant("2040-01-01T12:00:00Z")).await;
    let order = world.paid_order(&trader).await;
    for (n, moved) in ["shipment", "delivery"].into_iter().enumerate() {
        let query = format!("updated_after=2040-01-01T12:00:0{n}Z&fields=status");
        assert_eq!(
            ids(&page(&world, &trader.token, &query).await).len(),
            0,
            "before the {moved}"
        );
        clock
            .freeze(instant(&format!("2040-01-01T12:00:0{}Z", n + 1)))
            .await;
        if moved == "shipment" {
            world
                .ship(&trader.token, &order.id, &blackbox::parcel("AAAA1"))
                .await
                .expect(201);
        } else {
            world.settle(&order.id, "delivery").await.expect(200);
        }
        assert_eq!(
            ids(&page(&world, &trader.token, &query).await),
            [order.id.as_str()],
            "after the {moved}"
        );
    }
}

#[tokio::test]
async fn bad_parameters_are_told_by_their_names() {
    let (world, trader, _) = prepared(1).await;
    for (query, path) in [
        ("status=published", "status"),
        ("status=", "status"),
        ("status=Pending", "status"),
        ("placed_after=2040-01-01", "placed_after"),
        ("placed_after=2040-01-01T12:00:00", "placed_after"),
        ("updated_after=yesterday", "updated_after"),
        ("fields=", "fields"),
        ("fields=price", "fields"),
        ("fields=buyer.name", "fields"),
        ("after=", "after"),
        ("after=x", "after"),
        ("colour=red", "colour"),
        ("status=pending&status=pending", "status"),
    ] {
        let answer = world.get(&trader.token, &format!("/v1/orders?{query}")).await;
        assert_eq!(answer.status, 400, "{query}");
        answer.invalid(&[path]);
    }
}

#[tokio::test]
async fn each_field_alone_comes_with_the_id() {
    let (world, trader, placed) = prepared(1).await;
    let whole = world.order(&trader.token, &placed[0]).await;
    for field in whole.as_object().unwrap().keys() {
        let expected = json!({"id": placed[0], field: whole[field]});
        let alone = world
            .get(&trader.token, &format!("/v1/orders/{}?fields={field}", placed[0]))
            .await
            .expect(200)
            .json();
        assert_eq!(alone, expected);
        let list = page(&world, &trader.token, &format!("fields={field}")).await;
        assert_eq!(list, json!({"items": [expected], "next": null}));
    }
}
