//! Cursors: sealed, and bound to seller and filters.

use blackbox::{Expect, World, offer_line};
use serde_json::json;
use testkit::{ServerOptions, TestDatabase, TestServer, sealing_key};

use crate::{PROGRAM, world};

/// A seller with three offers, a token, and the cursor after the first.
async fn prepared(world: &World, query: &str) -> (String, String) {
    let (seller, token) = world.reader().await;
    let lines: Vec<_> = (1..=3).map(|n| offer_line(n, json!({}))).collect();
    world.import(&seller, lines.join("\n")).await.expect(200);
    let first = world
        .get(&token, &format!("/v1/offers?limit=1{query}"))
        .await
        .expect(200)
        .json();
    (
        token,
        first["next"].as_str().expect("more than one offer").to_owned(),
    )
}

async fn refused(world: &World, token: &str, query: &str) {
    let answer = world.get(token, &format!("/v1/offers?{query}")).await;
    assert_eq!(answer.status, 400, "{query}");
    answer.invalid(&["after"]);
}

#[tokio::test]
async fn a_cursor_that_was_tampered_with_is_refused() {
    let world = world().await;
    let (token, cursor) = prepared(&world, "").await;
    world
        .get(&token, &format!("/v1/offers?after={cursor}"))
        .await
        .expect(200);
    assert!(
        cursor
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '~')),
        "{cursor}"
    );
    for position in 0..cursor.len() {
        let mut bytes = cursor.clone().into_bytes();
        bytes[position] = if bytes[position] == b'A' { b'B' } else { b'A' };
        refused(
            &world,
            &token,
            &format!("after={}", String::from_utf8(bytes).unwrap()),
        )
        .await;
    }
    let (head, tail) = cursor.split_at(cursor.len() / 2);
    for bad in ["", "x", head, tail, &cursor[1..], &cursor[..cursor.len() - 1]] {
        refused(&world, &token, &format!("after={bad}")).await;
    }
    for bad in [
        format!("{cursor}A"),
        format!("{cursor}%3D"),
        format!("%20{cursor}"),
        format!("{cursor}{cursor}"),
    ] {
        refused(&world, &token, &format!("after={bad}")).await;
    }
    refused(&world, &token, &format!("after={}", "A".repeat(4000))).await;
    refused(&world, &token, "after=01900000-0000-7000-8000-000000000003").await;
}

#[tokio::test]
async fn a_cursor_of_another_seller_is_refused_and_one_of_another_token_is_not() {
    let world = world().await;
    let (token, cursor) = prepared(&world, "").await;
    let (stranger, _) = prepared(&world, "").await;
    refused(&world, &stranger, &format!("after={cursor}")).await;
    let me = world.get(&token, "/v1/me").await.expect(200).json();
    let path = format!(
        "/sellers/{}/personal-tokens",
        me["seller"]["id"].as_str().unwrap()
    );
    let body = json!({"name": "second", "scopes": ["offers:read"]});
    let second = world.office_post(&path, &body).await.expect(201).json();
    let second = second["token"].as_str().unwrap();
    let page = world
        .get(second, &format!("/v1/offers?after={cursor}"))
        .await
        .expect(200)
        .json();
    assert_eq!(page["items"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn a_cursor_holds_for_its_filters_alone() {
    let world = world().await;
    let filters = [
        "",
        "&status=published",
        "&updated_after=2000-01-01T00:00:00Z",
        "&status=published&updated_after=2000-01-01T00:00:00Z",
    ];
    let (token, _) = prepared(&world, "").await;
    for own in filters {
        let first = world
            .get(&token, &format!("/v1/offers?limit=1{own}"))
            .await
            .expect(200)
            .json();
        let cursor = first["next"].as_str().unwrap();
        for other in filters {
            let query = format!("after={cursor}{other}");
            if own == other {
                world
                    .get(&token, &format!("/v1/offers?{query}"))
                    .await
                    .expect(200);
            } else {
                refused(&world, &token, &query).await;
            }
        }
        refused(&world, &token, &format!("after={cursor}&status=draft")).await;
        refused(
            &world,
            &token,
            &format!("after={cursor}&updated_after=2000-01-01T00:00:00.000001Z"),
        )
        .await;
    }
    let first = world
        .get(&token, "/v1/offers?limit=1&status=published&fields=id")
        .await
        .expect(200)
        .json();
    let cursor = first["next"].as_str().unwrap();
    world
        .get(
            &token,
            &format!("/v1/offers?after={cursor}&fields=title&status=published&limit=9"),
        )
        .await
        .expect(200);
}

#[tokio::test]
async fn a_cursor_outlives_its_process_and_a_rotation_of_keys_but_not_its_key() {
    let (old, new) = (sealing_key().replace(':', "a:"), sealing_key().replace(':', "b:"));
    let keys = |options: ServerOptions, keys: &str| options.set("SELLER_API__KEYS__SEALING", keys);
    let world = World::over(PROGRAM, TestDatabase::create().await, |options| {
        keys(options, &old)
    })
    .await;
    let (token, cursor) = prepared(&world, "").await;
    let ask = async |server: &TestServer, cursor: &str| {
        let url = format!("{}/v1/offers?limit=1&after={cursor}", server.base_url);
        world.client.get(&url).bearer(&token).send().await
    };
    let start = async |list: &str| world.serving(&keys(ServerOptions::new(PROGRAM), list)).await;
    let (same, rotated, forgotten) = (
        start(&old).await,
        start(&format!("{new},{old}")).await,
        start(&new).await,
    );
    ask(&same, &cursor).await.expect(200);
    let next = ask(&rotated, &cursor).await.expect(200).json();
    ask(&forgotten, &cursor).await.invalid(&["after"]);
    // What is sealed after the rotation is sealed under the new key.
    ask(&forgotten, next["next"].as_str().unwrap()).await.expect(200);
    ask(&same, next["next"].as_str().unwrap())
        .await
        .invalid(&["after"]);
}

#[tokio::test]
async fn a_cursor_of_another_list_is_refused() {
    let world = world().await;
    let (token, offers) = prepared(&world, "").await;
    world.seller().await;
    let first = world.office_get("/sellers?limit=1").await.expect(200).json();
    let sellers = first["next"].as_str().expect("more than one seller");
    refused(&world, &token, &format!("after={sellers}")).await;
    world
        .office_get(&format!("/sellers?after={offers}"))
        .await
        .invalid(&["after"]);
}
