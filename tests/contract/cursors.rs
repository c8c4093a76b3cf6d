//! Cursors of the lists of offers and orders: sealed, and bound to list, seller and filters.

use blackbox::{Expect, Seller, World, ids, offer_line, text};
use serde_json::json;

use crate::world;

const SINCE: &str = "updated_after=2000-01-01T00:00:00Z";

/// A seller with three offers, a token, and the cursor after the first offer.
async fn prepared(world: &World) -> (Seller, String, String) {
    let (seller, token) = world.reader().await;
    let lines = [1, 2, 3].map(|n| offer_line(n, json!({})));
    world.import(&seller, lines.join("\n")).await.expect(200);
    let cursor = first(world, &token, "/v1/offers?limit=1").await;
    (seller, token, cursor)
}

/// The cursor after the first page.
async fn first(world: &World, token: &str, path: &str) -> String {
    text(&world.read(token, path).await, "next")
}

async fn refused(world: &World, token: &str, path: &str) {
    let answer = world.get(token, path).await;
    assert_eq!(answer.status, 400, "{path}");
    answer.invalid("after");
}

#[tokio::test]
async fn a_changed_cursor_is_refused() {
    let world = world().await;
    let (_, token, cursor) = prepared(&world).await;
    world.read(&token, &format!("/v1/offers?after={cursor}")).await;
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.~".contains(c);
    assert!(cursor.chars().all(plain), "{cursor}");
    let (start, last) = cursor.split_at(cursor.len() - 1);
    let changed = if last == "A" { "B" } else { "A" };
    let mut bad = vec![[start, changed].concat()];
    bad.extend(["", "x", start, &cursor[1..]].map(str::to_owned));
    bad.extend(
        ["CURSORA", "CURSOR%3D", "%20CURSOR", "CURSORCURSOR"].map(|form| form.replace("CURSOR", &cursor)),
    );
    bad.extend(["A".repeat(4000), blackbox::offer_id(3)]);
    for bad in bad {
        refused(&world, &token, &format!("/v1/offers?after={bad}")).await;
    }
}

#[tokio::test]
async fn a_cursor_is_bound_to_seller_and_list_but_not_to_the_token() {
    let world = world().await;
    let (seller, token, cursor) = prepared(&world).await;
    let path = format!("/v1/offers?after={cursor}");
    let (_, stranger) = world.reader().await;
    refused(&world, &stranger, &path).await;
    let second = world.personal_token(&seller, &["offers:read"]).await.token;
    assert_eq!(ids(&world.read(&second, &path).await).len(), 2);
    let sellers = text(&world.office_read("/sellers?limit=1").await, "next");
    let trader = world.trader().await;
    for _ in 0..2 {
        world.any_order(&trader.seller).await;
    }
    let orders = first(&world, &trader.token, "/v1/orders?limit=1").await;
    let other = world.trader().await.token;
    refused(&world, &other, &format!("/v1/orders?after={orders}")).await;
    for foreign in [sellers, orders] {
        refused(&world, &token, &format!("/v1/offers?after={foreign}")).await;
    }
    let answer = world.office_get(&format!("/sellers?after={cursor}")).await;
    answer.invalid("after");
}

#[tokio::test]
async fn a_cursor_is_bound_to_its_filters_but_not_to_limit_and_fields() {
    let world = world().await;
    let (_, token, _) = prepared(&world).await;
    let trader = world.trader().await;
    for _ in 0..3 {
        world.any_order(&trader.seller).await;
    }
    let (both, since) = (format!("&status=published&{SINCE}"), format!("&{SINCE}"));
    let later = "&updated_after=2000-01-01T00:00:00.000001Z";
    let ean = "&ean=5901234123457";
    let others = [
        "&status=draft",
        later,
        "&external_id=5901234123457",
        "&ean=",
        "&external_id=",
    ];
    let of_offers = [&["", "&status=published", &since, &both, ean], &others[..]].concat();
    let of_orders = [
        "",
        "&status=pending",
        "&placed_after=2000-01-01T00:00:00Z",
        &since,
    ];
    for (path, token, filters, used) in [
        ("/v1/offers", &token, &of_offers[..], 5),
        ("/v1/orders", &trader.token, &of_orders, 4),
    ] {
        for own in &filters[..used] {
            let cursor = first(&world, token, &format!("{path}?limit=1&fields=id{own}")).await;
            for other in filters {
                let path = format!("{path}?after={cursor}&limit=9{other}");
                if own == other {
                    world.read(token, &path).await;
                } else {
                    refused(&world, token, &path).await;
                }
            }
        }
    }
}
