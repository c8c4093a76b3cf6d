//! `GET /v1/orders`: order, filters, pages, fields.

use blackbox::{Trader, World, all_invalid, ids, line, pages, parcel, text};
use chrono::TimeDelta;
use serde_json::{Value, json};
use testkit::TestClock;

use crate::{instant, world};

/// A seller with `count` orders, one per second from 12:00:01 in 2040; oldest first.
async fn prepared(count: u32) -> (World, Trader, Vec<String>, TestClock) {
    let world = world().await;
    let clock = world.database.control_clock().await;
    let trader = world.trader().await;
    let offer = world.any_offer(&trader.seller, json!({"stock": null})).await;
    let mut placed = Vec::new();
    for second in 1..=count {
        let at = instant(&format!("2040-01-01T12:00:{second:02}.000001Z"));
        clock.freeze(at).await;
        placed.push(world.ordered(&trader.seller, &[&offer]).await.id);
    }
    (world, trader, placed, clock)
}

async fn page(world: &World, trader: &Trader, query: &str) -> Value {
    world.read(&trader.token, &format!("/v1/orders?{query}")).await
}

/// The ids of each page.
async fn all(world: &World, trader: &Trader, query: &str) -> Vec<Vec<String>> {
    let read = async |path: &str| world.read(&trader.token, path).await;
    let pages = pages(&format!("/v1/orders?{query}"), read).await;
    pages.iter().map(ids).collect()
}

#[tokio::test]
async fn orders_are_listed_newest_first_in_stable_pages() {
    let (world, trader, mut placed, _clock) = prepared(7).await;
    placed.reverse();
    for limit in 1..=8 {
        let expected: Vec<_> = placed.chunks(limit).map(<[String]>::to_vec).collect();
        assert_eq!(all(&world, &trader, &format!("limit={limit}")).await, expected);
    }
    // A new order does not shift pages that are being read.
    let first = page(&world, &trader, "limit=3").await;
    world.paid_order(&trader).await;
    let rest = format!("limit=10&after={}", text(&first, "next"));
    assert_eq!(ids(&page(&world, &trader, &rest).await), placed[3..]);
}

#[tokio::test]
async fn filters_apply_alone_and_together() {
    let (world, trader, placed, _clock) = prepared(6).await;
    for order in &placed[1..5] {
        world.order_moved(order, "payment").await;
    }
    world.shipped(&trader.token, &placed[2], &parcel("AAAA1")).await;
    world.order_moved(&placed[3], "delivery").await;
    world.order_moved(&placed[4], "cancellation").await;
    let after = "placed_after=2040-01-01T12:00:04.000001Z";
    let updated = text(&world.order(&trader.token, &placed[0]).await, "updated_at");
    for (query, expected) in [
        ("status=pending", vec![5, 0]),
        ("status=processing", vec![1]),
        ("status=shipped", vec![2]),
        ("status=delivered", vec![3]),
        ("status=cancelled", vec![4]),
        (after, vec![5, 4]),
        (&format!("{after}&status=cancelled"), vec![4]),
        ("placed_after=2040-01-01T13:00:04.000000%2B01:00", vec![5, 4, 3]),
        (&format!("updated_after={updated}"), vec![5, 4, 3, 2, 1]),
    ] {
        let expected: Vec<_> = expected.into_iter().map(|n: usize| placed[n].clone()).collect();
        let found = all(&world, &trader, &format!("limit=1&{query}")).await;
        assert_eq!(found.concat(), expected, "{query}");
    }
    let nobodys = page(&world, &world.trader().await, "").await;
    assert_eq!(nobodys, json!({"items": [], "next": null}));
    let bad = "
        status=published                 => status
        placed_after=2040-01-01T12:00:00 => placed_after
        fields=buyer.name                => fields
        after=x                          => after";
    let get = async |query: &str| world.get(&trader.token, &format!("/v1/orders?{query}")).await;
    all_invalid(bad, get).await;
}

#[tokio::test]
async fn ids_name_orders_in_place_of_a_page() {
    let (world, trader, placed, clock) = prepared(3).await;
    clock.advance(TimeDelta::seconds(1)).await;
    let offer = world.any_offer(&trader.seller, json!({"stock": null})).await;
    let test = json!({"is_test": true});
    let test = world.unpaid(&[line(&trader.seller, &offer, 1)], test).await;
    let others = world.any_order(&world.trader().await.seller).await;
    let number = text(&world.order(&trader.token, &placed[1]).await, "order_number");
    let named = [&placed[0], &others.id, &number, &test.id, &placed[2], &placed[0]].map(String::as_str);
    let found = page(&world, &trader, &format!("limit=x&ids={}", named.join(","))).await;
    let expected = [&test.id, &placed[2], &placed[0]];
    let mut orders = Vec::new();
    for id in expected {
        orders.push(world.order(&trader.token, id).await);
    }
    assert_eq!(found, json!({"items": orders, "next": null}));
    assert_eq!(orders[0]["is_test"], true);
    let both = format!("ids={}&placed_after=2000-01-01T00:00:00Z", placed[0]);
    world
        .invalid(&trader.token, &format!("/v1/orders?{both}"), "ids")
        .await;
}

#[tokio::test]
async fn a_transition_moves_updated_at_and_each_field_can_be_selected() {
    let (world, trader, placed, clock) = prepared(1).await;
    let order = &placed[0];
    for (n, step) in ["payment", "shipment", "delivery"].into_iter().enumerate() {
        let query = format!("updated_after=2040-01-01T12:00:0{}.000001Z&fields=status", n + 1);
        let listed = async || ids(&page(&world, &trader, &query).await);
        assert!(listed().await.is_empty(), "before the {step}");
        clock.advance(TimeDelta::seconds(1)).await;
        match step {
            "shipment" => drop(world.shipped(&trader.token, order, &parcel("AAAA1")).await),
            step => world.order_moved(order, step).await,
        }
        assert_eq!(listed().await, placed, "after the {step}");
    }
    let whole = world.order(&trader.token, order).await;
    for field in whole.as_object().unwrap().keys() {
        let expected = json!({"id": order, field: whole[field]});
        let path = format!("/v1/orders/{order}?fields={field}");
        assert_eq!(world.read(&trader.token, &path).await, expected);
        let list = page(&world, &trader, &format!("fields={field}")).await;
        assert_eq!(list, json!({"items": [expected], "next": null}));
    }
}
