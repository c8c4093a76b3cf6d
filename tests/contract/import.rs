//! Importing NDJSON: counts, bad lines, what a line is.

use blackbox::{Expect, Seller, World, offer_body, offer_id, offer_line};
use chrono::TimeDelta;
use reqwest::Method;
use serde_json::{Value, json};

use crate::world;

async fn import(world: &World, seller: &Seller, text: &str) -> Value {
    world.import(seller, text).await.expect(200).json()
}

fn counts(report: &Value) -> [u64; 4] {
    ["created", "updated", "unchanged", "rejected_total"].map(|name| report[name].as_u64().unwrap())
}

/// Line numbers and paths of what was rejected.
fn rejected(report: &Value) -> Vec<(u64, Vec<Option<String>>)> {
    let paths = |errors: &Value| {
        let entries = errors.as_array().unwrap().iter();
        let path = |entry: &Value| {
            assert_eq!(entry["code"], "validation_error");
            assert!(entry["message"].is_string());
            entry.get("path").map(|path| path.as_str().unwrap().to_owned())
        };
        entries.map(path).collect()
    };
    let lines = report["rejected"].as_array().unwrap().iter();
    lines
        .map(|line| (line["line"].as_u64().unwrap(), paths(&line["errors"])))
        .collect()
}

#[tokio::test]
async fn lines_are_created_updated_or_left_alone() {
    let world = world().await;
    let clock = world.stop_clock("2040-01-01T12:00:00Z").await;
    let (seller, token) = world.reader().await;
    let three: Vec<_> = (1..=3).map(|n| offer_line(n, json!({}))).collect();
    let report = import(&world, &seller, &three.join("\n")).await;
    assert_eq!(
        report,
        json!({"created": 3, "updated": 0, "unchanged": 0, "rejected_total": 0, "rejected": []})
    );
    clock.advance(TimeDelta::seconds(1)).await;
    let mixed = [
        offer_line(2, json!({})),
        offer_line(3, json!({"stock": 1})),
        offer_line(4, json!({})),
    ];
    assert_eq!(
        counts(&import(&world, &seller, &mixed.join("\n")).await),
        [1, 1, 1, 0]
    );
    let list = world
        .get(&token, "/v1/offers?fields=updated_at")
        .await
        .expect(200)
        .json();
    let times: Vec<_> = list["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|offer| offer["updated_at"].as_str().unwrap())
        .collect();
    let (then, now) = ("2040-01-01T12:00:00.000000Z", "2040-01-01T12:00:01.000000Z");
    assert_eq!(times, [now, now, then, then]);
    assert_eq!(
        counts(&import(&world, &seller, &mixed.join("\n")).await),
        [0, 0, 3, 0]
    );
}

#[tokio::test]
async fn lines_may_end_in_crlf_and_blank_ones_count_as_lines() {
    let world = world().await;
    let (seller, token) = world.reader().await;
    let [one, two, three] = [1, 2, 3].map(|n| offer_line(n, json!({})));
    let text = format!("\r\n{one}\r\n\n  \t \n{two}\nbad\r\n\n{three}");
    let report = import(&world, &seller, &text).await;
    assert_eq!(counts(&report), [3, 0, 0, 1]);
    assert_eq!(rejected(&report), [(6, vec![None])]);
    assert_eq!(
        world.get(&token, "/v1/offers").await.json()["items"]
            .as_array()
            .unwrap()
            .len(),
        3
    );
    for nothing in ["", "\n", "\r\n\r\n", "   "] {
        assert_eq!(counts(&import(&world, &seller, nothing).await), [0, 0, 0, 0]);
    }
    assert_eq!(
        counts(&import(&world, &seller, &format!("{one}\n")).await),
        [0, 0, 1, 0]
    );
}

#[tokio::test]
async fn good_lines_apply_though_others_are_rejected_with_their_reasons() {
    let world = world().await;
    let seller = world.seller().await;
    let without_id = offer_body(1, json!({})).to_string();
    let lines = [
        offer_line(1, json!({})),
        "{".to_owned(),
        "[]".to_owned(),
        "null".to_owned(),
        without_id,
        offer_line(2, json!({"id": "two"})),
        offer_line(2, json!({"id": 2})),
        offer_line(
            2,
            json!({"price": {"amount": 1.5, "currency": "EUR"}, "stock": -1, "zzz": 1}),
        ),
        offer_line(2, json!({"title": null})),
        offer_line(2, json!({})).replacen('{', r#"{"title":"twice","#, 1),
        offer_line(2, json!({"brand": "\0"})),
        format!("\u{feff}{}", offer_line(2, json!({}))),
        format!("{} {}", offer_line(2, json!({})), offer_line(2, json!({}))),
        offer_line(3, json!({})),
    ];
    let report = import(&world, &seller, &lines.join("\n")).await;
    assert_eq!(counts(&report), [2, 0, 0, 12]);
    let rejected = rejected(&report);
    assert_eq!(
        rejected.iter().map(|(line, _)| *line).collect::<Vec<_>>(),
        (2..=13).collect::<Vec<_>>()
    );
    let some = |paths: &[&str]| {
        paths
            .iter()
            .map(|path| Some((*path).to_owned()))
            .collect::<Vec<_>>()
    };
    assert_eq!(rejected[0].1, [None]);
    assert_eq!(rejected[1].1, [None]);
    assert_eq!(rejected[3].1, some(&["id"]));
    assert_eq!(rejected[4].1, some(&["id"]));
    assert_eq!(rejected[5].1, some(&["id"]));
    assert_eq!(
        rejected[6].1,
        some(&["price.amount", "price.currency", "stock", "zzz"])
    );
    assert_eq!(rejected[7].1, some(&["title"]));
    world
        .office_get(&format!("/sellers/{}/offers/{}", seller.id, offer_id(2)))
        .await
        .refused(404, "not_found");
}

#[tokio::test]
async fn a_line_that_is_no_utf_8_is_rejected_alone() {
    let world = world().await;
    let seller = world.seller().await;
    let text = [
        offer_line(1, json!({})).as_bytes(),
        b"\n{\"title\":\"\xff\"}\n",
        offer_line(2, json!({})).as_bytes(),
    ]
    .concat();
    let report = world.import(&seller, text).await.expect(200).json();
    assert_eq!(counts(&report), [2, 0, 0, 1]);
    assert_eq!(rejected(&report)[0].0, 2);
}

#[tokio::test]
async fn of_two_lines_with_one_id_the_later_wins() {
    let world = world().await;
    let (seller, token) = world.reader().await;
    let lines = [
        offer_line(1, json!({"stock": 1})),
        offer_line(1, json!({"stock": 2})),
        offer_line(2, json!({})),
        offer_line(1, json!({"stock": 2})),
        offer_line(1, json!({"stock": -3})),
    ];
    let report = import(&world, &seller, &lines.join("\n")).await;
    assert_eq!(counts(&report), [2, 1, 1, 1]);
    assert_eq!(rejected(&report), [(5, vec![Some("stock".to_owned())])]);
    assert_eq!(
        world
            .get(&token, &format!("/v1/offers/{}", offer_id(1)))
            .await
            .json()["stock"],
        2
    );
}

#[tokio::test]
async fn an_import_says_what_it_is() {
    let world = world().await;
    let seller = world.seller().await;
    let path = format!("/sellers/{}/offers:import", seller.id);
    let send = |kind: &str| {
        world
            .office(Method::POST, &path)
            .header("content-type", kind)
            .body(offer_line(1, json!({})))
            .send()
    };
    for kind in ["application/x-ndjson", "application/x-ndjson; charset=utf-8"] {
        send(kind).await.expect(200);
    }
    send("text/csv").await.invalid(&["Content-Type"]);
    world
        .office(Method::GET, &path)
        .send()
        .await
        .refused(404, "not_found");
}

#[tokio::test]
async fn every_rejected_line_is_counted_and_the_first_10_000_are_listed() {
    let world = world().await;
    let seller = world.seller().await;
    let text = "{}\n".repeat(10_005) + &offer_line(1, json!({}));
    let report = import(&world, &seller, &text).await;
    assert_eq!(counts(&report), [1, 0, 0, 10_005]);
    let listed = report["rejected"].as_array().unwrap();
    assert_eq!((listed.len(), &listed[9_999]["line"]), (10_000, &json!(10_000)));
}

#[tokio::test]
async fn one_endless_line_is_rejected_and_the_next_applies() {
    let world = world().await;
    let seller = world.seller().await;
    let endless = offer_line(1, json!({"title": "x".repeat(3 * 1024 * 1024)}));
    let report = import(
        &world,
        &seller,
        &format!("{endless}\n{}", offer_line(2, json!({}))),
    )
    .await;
    assert_eq!(counts(&report), [1, 0, 0, 1]);
    assert_eq!(rejected(&report)[0].0, 1);
}

#[tokio::test]
async fn an_imported_offer_of_another_seller_is_another_offer() {
    let world = world().await;
    let ((one, first), (other, second)) = (world.reader().await, world.reader().await);
    let both = |stock: u64| offer_line(1, json!({"stock": stock}));
    assert_eq!(counts(&import(&world, &one, &both(1)).await), [1, 0, 0, 0]);
    assert_eq!(counts(&import(&world, &other, &both(2)).await), [1, 0, 0, 0]);
    for (token, stock) in [(first, 1), (second, 2)] {
        assert_eq!(
            world
                .get(&token, &format!("/v1/offers/{}", offer_id(1)))
                .await
                .json()["stock"],
            stock
        );
    }
}

#[tokio::test]
async fn imports_of_the_same_offers_at_once_all_succeed() {
    let world = world().await;
    let seller = world.seller().await;
    let path = format!("/sellers/{}/offers:import", seller.id);
    let imports = (0..6).map(|n| {
        let mut lines: Vec<_> = (1..=500).map(|id| offer_line(id, json!({"stock": n}))).collect();
        if n % 2 == 1 {
            lines.reverse();
        }
        let request = world
            .office(Method::POST, &path)
            .header("content-type", "application/x-ndjson");
        tokio::spawn(request.body(lines.join("\n")).send())
    });
    let mut created = 0;
    for import in imports.collect::<Vec<_>>() {
        let report = import.await.unwrap().expect(200).json();
        let counts = counts(&report);
        assert_eq!(counts.iter().sum::<u64>(), 500, "{report}");
        created += counts[0];
    }
    assert_eq!(created, 500);
}
