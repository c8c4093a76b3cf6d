//! How long answers are stored, and their form in the database.

use blackbox::{Expect, eventually, keyed, parcel, text};
use chrono::TimeDelta;
use serde_json::json;

use crate::world_of_trade;

#[tokio::test]
async fn an_answer_is_stored_for_24_hours_and_then_deleted() {
    let (world, trader, offer) = world_of_trade().await;
    let clock = world.database.control_clock().await;
    let patch = |stock: u32, key: &str| {
        let request = world.patching(&trader.token, &offer, &json!({"stock": stock}));
        keyed(request, key).send()
    };
    patch(3, "k").await.expect(200);
    clock.advance(TimeDelta::hours(24) - TimeDelta::minutes(1)).await;
    assert!(patch(3, "k").await.expect(200).is_replayed());
    patch(4, "k").await.refused(422, "idempotency_key_reused");
    // The time counts from the completion, not from the last replay.
    clock.advance(TimeDelta::minutes(2)).await;
    assert!(!patch(4, "k").await.expect(200).is_replayed());
    assert_eq!(world.stock(&trader.seller, &offer).await, 4);
    patch(3, "k").await.refused(422, "idempotency_key_reused");
    clock.advance(TimeDelta::hours(20)).await;
    patch(5, "young").await.expect(200);
    clock.advance(TimeDelta::hours(6)).await;
    // Cleaning starts when the process starts.
    let _cleaner = world.another().await;
    let old = "select count(*) from idempotency where key <> $1";
    let cleaned = async || (world.count(old, "young").await == 0).then_some(());
    eventually("the cleaning", cleaned).await;
    assert!(patch(5, "young").await.expect(200).is_replayed());
}

#[tokio::test]
async fn a_stored_answer_is_sealed() {
    let (world, trader, offer) = world_of_trade().await;
    let order = world.paid_order(&trader).await;
    let mut answers = Vec::new();
    for request in [
        world.shipping(&trader.token, &order.id, &parcel("TRACK-ME-1")),
        world.patching(&trader.token, &offer, &json!({"stock": 3})),
        world.issuing(&trader.seller, json!({})),
    ] {
        let key = answers.len().to_string();
        answers.push(keyed(request, &key).send().await);
    }
    let token = text(&answers.remove(2).expect(201).json(), "token");
    let client = world.database.connect().await;
    let stored = "select body, i::text from idempotency i";
    let rows = client.query(stored, &[]).await.unwrap();
    assert_eq!(rows.len(), 3);
    for row in rows {
        let (sealed, whole): (Vec<u8>, String) = (row.get(0), row.get(1));
        let sealed = String::from_utf8_lossy(&sealed);
        for secret in [
            "TRACK-ME-1",
            "kettle",
            "price",
            "tracking_number",
            &token,
            "ps_pt_",
        ] {
            let found = sealed.contains(secret) || whole.contains(secret);
            assert!(!found, "{secret} is stored in plaintext");
        }
    }
}
