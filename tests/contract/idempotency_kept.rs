//! How long answers are remembered, and how they lie in the database.

use blackbox::{Expect, Trader, World, eventually, parcel};
use chrono::TimeDelta;
use reqwest::Method;
use serde_json::{Value, json};
use testkit::Request;

use crate::world_of_trade;

fn keyed(world: &World, trader: &Trader, offer: &str, body: &Value, key: &str) -> Request {
    world
        .patching(&trader.token, offer, body)
        .header("idempotency-key", key)
}

#[tokio::test]
async fn an_answer_is_remembered_for_24_hours() {
    let (world, trader, offer) = world_of_trade().await;
    let clock = world.database.control_clock().await;
    let patch = |stock: u32| keyed(&world, &trader, &offer, &json!({"stock": stock}), "k").send();
    patch(3).await.expect(200);
    clock.advance(TimeDelta::hours(24) - TimeDelta::minutes(1)).await;
    assert_eq!(patch(3).await.expect(200).must("idempotent-replayed"), "true");
    patch(4).await.refused(422, "idempotency_key_reused");
    // It is the completion that counts, not the last replay.
    clock.advance(TimeDelta::minutes(2)).await;
    assert_eq!(patch(4).await.expect(200).header("idempotent-replayed"), None);
    assert_eq!(world.fed_offer(&trader.seller, &offer).await["stock"], 4);
    patch(3).await.refused(422, "idempotency_key_reused");
}

#[tokio::test]
async fn what_is_remembered_is_sealed_and_holds_no_text_of_the_answer() {
    let (world, trader, offer) = world_of_trade().await;
    let order = world.paid_order(&trader).await;
    world
        .shipping(&trader.token, &order.id, &parcel("TRACK-ME-1"))
        .header("idempotency-key", "s")
        .send()
        .await
        .expect(201);
    keyed(&world, &trader, &offer, &json!({"stock": 3}), "p")
        .send()
        .await
        .expect(200);
    let body = json!({"name": "script", "scopes": ["offers:read"]});
    let path = format!("/sellers/{}/personal-tokens", trader.seller.id);
    let made = world
        .office(Method::POST, &path)
        .header("idempotency-key", "t")
        .json(&body)
        .send()
        .await
        .expect(201)
        .json();
    let client = world.database.connect().await;
    let rows = client
        .query("select body, i::text from idempotency i", &[])
        .await
        .unwrap();
    assert_eq!(rows.len(), 3);
    let secrets = [
        "TRACK-ME-1",
        "kettle",
        "price",
        "tracking_number",
        made["token"].as_str().unwrap(),
        "ps_pt_",
    ];
    for row in rows {
        let sealed: Vec<u8> = row.get(0);
        let text = row.get::<_, String>(1);
        for secret in secrets {
            assert!(
                !sealed
                    .windows(secret.len())
                    .any(|window| window == secret.as_bytes()),
                "{secret} lies there in clear"
            );
            assert!(!text.contains(secret), "{secret} lies there in clear");
        }
    }
}

#[tokio::test]
async fn retention_clears_what_has_expired_and_nothing_else() {
    let (world, trader, offer) = world_of_trade().await;
    let clock = world.database.control_clock().await;
    keyed(&world, &trader, &offer, &json!({"stock": 3}), "old")
        .send()
        .await
        .expect(200);
    clock.advance(TimeDelta::hours(20)).await;
    keyed(&world, &trader, &offer, &json!({"stock": 4}), "young")
        .send()
        .await
        .expect(200);
    clock.advance(TimeDelta::hours(6)).await;
    // Its cleaning begins with the process.
    let _cleaner = world.another().await;
    let keys = async || {
        let client = world.database.connect().await;
        let rows = client
            .query("select key from idempotency order by key", &[])
            .await
            .unwrap();
        let keys: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
        (keys.len() < 2).then_some(keys)
    };
    assert_eq!(eventually("the cleaning", keys).await, ["young"]);
    let again = keyed(&world, &trader, &offer, &json!({"stock": 4}), "young")
        .send()
        .await
        .expect(200);
    assert_eq!(again.must("idempotent-replayed"), "true");
}
