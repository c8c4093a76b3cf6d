//! `GET /v1/offers`: order, filters, time.

use blackbox::{Expect, World, number_of, offer_line};
use chrono::TimeDelta;
use serde_json::{Value, json};

use crate::{instant, world};

/// The numbers of the offers that a list answers.
async fn listed(world: &World, token: &str, query: &str) -> Vec<usize> {
    let answer = world
        .get(token, &format!("/v1/offers{query}"))
        .await
        .expect(200)
        .json();
    numbers(&answer)
}

fn numbers(list: &Value) -> Vec<usize> {
    list["items"]
        .as_array()
        .expect("items")
        .iter()
        .map(|offer| number_of(&offer["id"]))
        .collect()
}

#[tokio::test]
async fn the_newest_comes_first_and_of_one_instant_the_largest_id() {
    let world = world().await;
    let clock = world.database.control_clock().await;
    let (seller, token) = world.reader().await;
    clock.freeze(instant("2040-01-01T12:00:00Z")).await;
    let lines: Vec<_> = [5, 3, 9].map(|n| offer_line(n, json!({}))).into();
    world.import(&seller, lines.join("\n")).await.expect(200);
    clock.advance(TimeDelta::microseconds(1000)).await;
    for n in [4, 8, 1] {
        world.offer(&seller, n, json!({})).await;
    }
    clock.advance(TimeDelta::seconds(-3600)).await;
    world.offer(&seller, 7, json!({})).await;
    assert_eq!(listed(&world, &token, "").await, [8, 4, 1, 9, 5, 3, 7]);
    // A change moves nothing: the order is that of creation.
    clock.advance(TimeDelta::seconds(7200)).await;
    world.offer(&seller, 7, json!({"stock": 1})).await;
    assert_eq!(listed(&world, &token, "").await, [8, 4, 1, 9, 5, 3, 7]);
}

#[tokio::test]
async fn status_filters_and_combines_with_updated_after() {
    let world = world().await;
    let clock = world.database.control_clock().await;
    let (seller, token) = world.reader().await;
    clock.freeze(instant("2040-01-01T12:00:00Z")).await;
    for n in 1..=6 {
        let status = if n % 2 == 0 { "draft" } else { "published" };
        world.offer(&seller, n, json!({"status": status})).await;
        clock.advance(TimeDelta::seconds(1)).await;
    }
    assert_eq!(listed(&world, &token, "?status=draft").await, [6, 4, 2]);
    assert_eq!(listed(&world, &token, "?status=published").await, [5, 3, 1]);
    assert!(listed(&world, &token, "?status=rejected").await.is_empty());
    assert_eq!(
        listed(&world, &token, "?updated_after=2040-01-01T12:00:03Z").await,
        [6, 5]
    );
    assert_eq!(
        listed(&world, &token, "?status=draft&updated_after=2040-01-01T12:00:01Z").await,
        [6, 4]
    );
    assert!(
        listed(&world, &token, "?updated_after=2040-01-01T12:00:05Z")
            .await
            .is_empty()
    );
}

#[tokio::test]
async fn updated_after_is_strict_and_takes_what_was_read() {
    let world = world().await;
    let clock = world.database.control_clock().await;
    let (seller, token) = world.reader().await;
    clock.freeze(instant("2040-01-01T12:00:00.123456Z")).await;
    for n in 1..=3 {
        world.offer(&seller, n, json!({})).await;
        clock
            .freeze(
                instant("2040-01-01T12:00:00.123456Z") + TimeDelta::microseconds(i64::try_from(n).unwrap()),
            )
            .await;
    }
    let read = world
        .get(&token, "/v1/offers?limit=2&fields=updated_at")
        .await
        .expect(200)
        .json();
    let second = read["items"][1]["updated_at"].as_str().unwrap();
    assert_eq!(second, "2040-01-01T12:00:00.123457Z");
    assert_eq!(
        listed(&world, &token, &format!("?updated_after={second}")).await,
        [3]
    );
    assert_eq!(
        listed(&world, &token, "?updated_after=2040-01-01T12:00:00.123455Z").await,
        [3, 2, 1]
    );
    assert_eq!(
        listed(&world, &token, "?updated_after=2040-01-01T12:00:00.123458Z").await,
        Vec::<usize>::new()
    );
    // An older offer comes back in once it is changed.
    clock.freeze(instant("2040-01-01T12:00:05Z")).await;
    world.offer(&seller, 1, json!({"stock": 1})).await;
    assert_eq!(
        listed(&world, &token, &format!("?updated_after={second}")).await,
        [3, 1]
    );
}

#[tokio::test]
async fn updated_after_is_rfc_3339_with_an_offset() {
    let world = world().await;
    let clock = world.database.control_clock().await;
    let (seller, token) = world.reader().await;
    for (n, at) in [(1, "2040-01-01T12:00:00Z"), (2, "2040-01-01T12:00:01Z")] {
        clock.freeze(instant(at)).await;
        world.offer(&seller, n, json!({})).await;
    }
    for same in [
        "2040-01-01T12:00:00Z",
        "2040-01-01T12:00:00.0Z",
        "2040-01-01T12:00:00.000000Z",
        "2040-01-01T12:00:00%2B00:00",
        "2040-01-01T12:00:00-00:00",
        "2040-01-01T13:30:00%2B01:30",
        "2040-01-01T07:00:00-05:00",
        "2040-01-01T12%3A00%3A00Z",
    ] {
        assert_eq!(
            listed(&world, &token, &format!("?updated_after={same}")).await,
            [2],
            "{same}"
        );
    }
    assert_eq!(
        listed(&world, &token, "?updated_after=0001-01-01T00:00:00Z").await,
        [2, 1]
    );
    assert!(
        listed(&world, &token, "?updated_after=9999-12-31T23:59:59Z")
            .await
            .is_empty()
    );
    for bad in [
        "",
        "2040-01-01",
        "2040-01-01T12:00:00",
        "2040-01-01T12:00Z",
        "2040-02-30T12:00:00Z",
        "2040-01-01T25:00:00Z",
        "2040-01-01T12:00:00%2B25:00",
        "2040-01-01T12:00:00.Z",
        "2209032000",
        "yesterday",
        "%202040-01-01T12:00:00Z",
    ] {
        let answer = world
            .get(&token, &format!("/v1/offers?updated_after={bad}"))
            .await;
        assert_eq!(answer.status, 400, "{bad}");
        answer.invalid(&["updated_after"]);
    }
}
