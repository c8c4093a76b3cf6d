//! Cursors of the lists of offers and orders: sealed, and bound to list, seller and filters.

use blackbox::{Expect, Seller, World, ids, offer_line, text};
use serde_json::json;
use testkit::{ServerOptions, TestServer, sealing_key};

use crate::{PROGRAM, set, world, world_with};

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
    // Each variant with one changed character.
    let mut bad: Vec<_> = (0..cursor.len())
        .map(|position| {
            let mut bytes = cursor.as_bytes().to_vec();
            bytes[position] = if bytes[position] == b'A' { b'B' } else { b'A' };
            String::from_utf8(bytes).unwrap()
        })
        .collect();
    let (head, tail) = cursor.split_at(cursor.len() / 2);
    bad.extend(["", "x", head, tail, &cursor[1..], &cursor[..cursor.len() - 1]].map(str::to_owned));
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
    refused(
        &world,
        &world.trader().await.token,
        &format!("/v1/orders?after={orders}"),
    )
    .await;
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
    let of_offers = ["", "&status=published", &since, &both, "&status=draft", later];
    let of_orders = [
        "",
        "&status=pending",
        "&placed_after=2000-01-01T00:00:00Z",
        &since,
    ];
    for (path, token, filters, used) in [
        ("/v1/offers", &token, &of_offers[..], 4),
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

#[tokio::test]
async fn a_cursor_outlives_its_process_and_a_rotation_of_keys_but_not_its_key() {
    let (old, new) = (sealing_key().replace(':', "a:"), sealing_key().replace(':', "b:"));
    let world = world_with(&[("KEYS__SEALING", &old)]).await;
    let (_, token, cursor) = prepared(&world).await;
    let ask = async |server: &TestServer, cursor: &str| {
        let url = format!("{}/v1/offers?limit=1&after={cursor}", server.base_url);
        world.client.get(&url).bearer(&token).send().await
    };
    let start = async |keys: &str| {
        let options = set(ServerOptions::new(PROGRAM), &[("KEYS__SEALING", keys)]);
        world.serving(&options).await
    };
    let rotated = start(&format!("{new},{old}")).await;
    let (same, forgotten) = (start(&old).await, start(&new).await);
    ask(&same, &cursor).await.expect(200);
    let next = text(&ask(&rotated, &cursor).await.expect(200).json(), "next");
    ask(&forgotten, &cursor).await.invalid("after");
    // After the rotation, cursors are sealed with the new key.
    ask(&forgotten, &next).await.expect(200);
    ask(&same, &next).await.invalid("after");
}
