//! Cursors of the lists of offers and orders: sealed, and bound to list, seller and filters.

use blackbox::{Expect, World, ids, offer_line, text};
use serde_json::json;
use testkit::{ServerOptions, TestServer, sealing_key};

use crate::{PROGRAM, set, world, world_with};

const SINCE: &str = "updated_after=2000-01-01T00:00:00Z";

/// A seller's token with three offers, and the cursor after the first.
async fn prepared(world: &World) -> (String, String) {
    let (seller, token) = world.reader().await;
    let lines = [1, 2, 3].map(|n| offer_line(n, json!({})));
    world.import(&seller, lines.join("\n")).await.expect(200);
    let cursor = first(world, &token, "/v1/offers?limit=1").await;
    (token, cursor)
}

/// The cursor after the first page.
async fn first(world: &World, token: &str, path: &str) -> String {
    text(&world.read(token, path).await, "next")
}

async fn refused(world: &World, token: &str, path: &str) {
    let answer = world.get(token, path).await;
    assert_eq!(answer.status, 400, "{path}");
    answer.invalid(&["after"]);
}

/// All variants of a cursor with one changed character.
fn tampered(cursor: &str) -> impl Iterator<Item = String> {
    (0..cursor.len()).map(|position| {
        let mut bytes = cursor.as_bytes().to_vec();
        bytes[position] = if bytes[position] == b'A' { b'B' } else { b'A' };
        String::from_utf8(bytes).unwrap()
    })
}

#[tokio::test]
async fn a_cursor_that_was_tampered_with_is_refused() {
    let world = world().await;
    let (token, cursor) = prepared(&world).await;
    world.read(&token, &format!("/v1/offers?after={cursor}")).await;
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.~".contains(c);
    assert!(cursor.chars().all(plain), "{cursor}");
    let (head, tail) = cursor.split_at(cursor.len() / 2);
    let mut bad: Vec<_> = tampered(&cursor).collect();
    bad.extend(["", "x", head, tail, &cursor[1..], &cursor[..cursor.len() - 1]].map(str::to_owned));
    bad.extend([
        format!("{cursor}A"),
        format!("{cursor}%3D"),
        format!("%20{cursor}"),
    ]);
    bad.extend([cursor.repeat(2), "A".repeat(4000), blackbox::offer_id(3)]);
    for bad in bad {
        refused(&world, &token, &format!("/v1/offers?after={bad}")).await;
    }
}

#[tokio::test]
async fn a_cursor_of_another_seller_or_list_is_refused_and_one_of_another_token_is_not() {
    let world = world().await;
    let (token, cursor) = prepared(&world).await;
    let path = format!("/v1/offers?after={cursor}");
    let (_, stranger) = world.reader().await;
    refused(&world, &stranger, &path).await;
    let me = world.read(&token, "/v1/me").await;
    let tokens = format!("/sellers/{}/personal-tokens", text(&me["seller"], "id"));
    let body = json!({"name": "second", "scopes": ["offers:read"]});
    let second = text(&world.office_made(&tokens, &body).await, "token");
    assert_eq!(ids(&world.read(&second, &path).await).len(), 2);
    let sellers = text(&world.office_read("/sellers?limit=1").await, "next");
    refused(&world, &token, &format!("/v1/offers?after={sellers}")).await;
    let answer = world.office_get(&format!("/sellers?after={cursor}")).await;
    answer.invalid(&["after"]);
}

#[tokio::test]
async fn a_cursor_holds_for_its_filters_alone() {
    let world = world().await;
    let (token, _) = prepared(&world).await;
    let both = format!("&status=published&{SINCE}");
    let filters = ["", "&status=published", &format!("&{SINCE}"), &both];
    let elsewhere = ["&status=draft", "&updated_after=2000-01-01T00:00:00.000001Z"];
    for own in filters {
        let cursor = first(&world, &token, &format!("/v1/offers?limit=1{own}")).await;
        for other in filters.into_iter().chain(elsewhere) {
            let path = format!("/v1/offers?after={cursor}{other}");
            if own == other {
                world.read(&token, &path).await;
            } else {
                refused(&world, &token, &path).await;
            }
        }
    }
    let cursor = first(&world, &token, "/v1/offers?limit=1&status=published&fields=id").await;
    let other_page = format!("/v1/offers?after={cursor}&fields=title&status=published&limit=9");
    world.read(&token, &other_page).await;
}

#[tokio::test]
async fn a_cursor_of_orders_belongs_to_resource_seller_and_filters() {
    let world = world().await;
    let (trader, stranger) = (world.trader().await, world.trader().await);
    for _ in 0..3 {
        world.any_order(&trader.seller).await;
    }
    let plain = first(&world, &trader.token, "/v1/orders?limit=1").await;
    let page = world
        .read(
            &trader.token,
            &format!("/v1/orders?limit=2&fields=status&after={plain}"),
        )
        .await;
    assert_eq!(ids(&page).len(), 2);
    refused(&world, &stranger.token, &format!("/v1/orders?after={plain}")).await;
    refused(&world, &trader.token, &format!("/v1/offers?after={plain}")).await;
    let filters = ["", "status=pending", "placed_after=2000-01-01T00:00:00Z", SINCE];
    for filter in filters {
        let own = first(&world, &trader.token, &format!("/v1/orders?limit=1&{filter}")).await;
        for other in filters {
            let path = format!("/v1/orders?after={own}&{other}");
            if filter == other {
                world.read(&trader.token, &path).await;
            } else {
                refused(&world, &trader.token, &path).await;
            }
        }
    }
    let tampered: Vec<_> = tampered(&plain).collect();
    for position in [0, plain.len() / 2, plain.len() - 1] {
        let path = format!("/v1/orders?after={}", tampered[position]);
        refused(&world, &trader.token, &path).await;
    }
}

#[tokio::test]
async fn a_cursor_outlives_its_process_and_a_rotation_of_keys_but_not_its_key() {
    let (old, new) = (sealing_key().replace(':', "a:"), sealing_key().replace(':', "b:"));
    let world = world_with(&[("KEYS__SEALING", &old)]).await;
    let (token, cursor) = prepared(&world).await;
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
    ask(&forgotten, &cursor).await.invalid(&["after"]);
    // After the rotation, cursors are sealed with the new key.
    ask(&forgotten, &next).await.expect(200);
    ask(&same, &next).await.invalid(&["after"]);
}
