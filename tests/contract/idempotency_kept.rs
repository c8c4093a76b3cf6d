//! How long answers are stored, and their form in the database.

use blackbox::{Expect, eventually, parcel, text};
use chrono::TimeDelta;
use reqwest::Method;
use serde_json::json;

use crate::world_of_trade;

#[tokio::test]
async fn an_answer_is_remembered_for_24_hours_and_cleared_away_then() {
    let (world, trader, offer) = world_of_trade().await;
    let clock = world.database.control_clock().await;
    let patch = |stock: u32, key: &str| {
        let request = world.patching(&trader.token, &offer, &json!({"stock": stock}));
        request.header("idempotency-key", key).send()
    };
    patch(3, "k").await.expect(200);
    clock.advance(TimeDelta::hours(24) - TimeDelta::minutes(1)).await;
    assert_eq!(
        patch(3, "k").await.expect(200).must("idempotent-replayed"),
        "true"
    );
    patch(4, "k").await.refused(422, "idempotency_key_reused");
    // The time counts from the completion, not from the last replay.
    clock.advance(TimeDelta::minutes(2)).await;
    assert_eq!(
        patch(4, "k").await.expect(200).header("idempotent-replayed"),
        None
    );
    assert_eq!(world.stock(&trader.seller, &offer).await, 4);
    patch(3, "k").await.refused(422, "idempotency_key_reused");
    clock.advance(TimeDelta::hours(20)).await;
    patch(5, "young").await.expect(200);
    clock.advance(TimeDelta::hours(6)).await;
    // Cleaning starts when the process starts.
    let _cleaner = world.another().await;
    let client = world.database.connect().await;
    let keys = async || {
        let rows = client
            .query("select key from idempotency order by key", &[])
            .await
            .unwrap();
        let keys: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
        (keys.len() < 2).then_some(keys)
    };
    assert_eq!(eventually("the cleaning", keys).await, ["young"]);
    assert_eq!(
        patch(5, "young").await.expect(200).must("idempotent-replayed"),
        "true"
    );
}

#[tokio::test]
async fn what_is_remembered_is_sealed_and_holds_no_text_of_the_answer() {
    let (world, trader, offer) = world_of_trade().await;
    let order = world.paid_order(&trader).await;
    let body = json!({"name": "script", "scopes": ["offers:read"]});
    let path = format!("/sellers/{}/personal-tokens", trader.seller.id);
    let mut answers = Vec::new();
    for request in [
        world.shipping(&trader.token, &order.id, &parcel("TRACK-ME-1")),
        world.patching(&trader.token, &offer, &json!({"stock": 3})),
        world.office(Method::POST, &path).json(&body),
    ] {
        let key = answers.len().to_string();
        answers.push(request.header("idempotency-key", &key).send().await);
    }
    let made = text(&answers.remove(2).expect(201).json(), "token");
    let client = world.database.connect().await;
    let rows = client
        .query("select body, i::text from idempotency i", &[])
        .await
        .unwrap();
    assert_eq!(rows.len(), 3);
    for row in rows {
        let (sealed, whole): (Vec<u8>, String) = (row.get(0), row.get(1));
        let sealed = String::from_utf8_lossy(&sealed);
        for secret in [
            "TRACK-ME-1",
            "kettle",
            "price",
            "tracking_number",
            &made,
            "ps_pt_",
        ] {
            let found = sealed.contains(secret) || whole.contains(secret);
            assert!(!found, "{secret} lies there in clear");
        }
    }
}
