//! Many connections at a time cost little memory.

use blackbox::{Wire, request, resident_kib};
use serde_json::json;

use crate::world;

#[tokio::test]
async fn two_thousand_kept_connections_stay_within_100_mb() {
    let world = world().await;
    let (_, token) = world.reader().await;
    let me = world.get(&token, "/v1/me").await.json();
    world
        .adjust(
            me["app"]["client_id"].as_str().unwrap(),
            &json!({"rate_limit": 100_000}),
        )
        .await
        .expect(200);
    let bearer = format!("Bearer {token}");
    let bytes = request(
        "GET",
        "/v1/me",
        &[("user-agent", "App/1.0"), ("authorization", &bearer)],
    );
    let mut wires = Vec::new();
    while wires.len() < 2_000 {
        let batch: Vec<_> = (0..100)
            .map(|_| {
                let (base, bytes) = (world.server.base_url.clone(), bytes.clone());
                tokio::spawn(async move {
                    let mut wire = Wire::connect(&base).await;
                    wire.send(&bytes).await;
                    wire.answer().await.expect("an answer").expect(200);
                    wire
                })
            })
            .collect();
        for wire in batch {
            wires.push(wire.await.unwrap());
        }
    }
    let resident = resident_kib(world.server.id(), "VmRSS");
    assert!(resident <= 100 * 1000, "{resident} KiB are resident");
    for wire in wires.iter_mut().step_by(200) {
        wire.send(&bytes).await;
        wire.answer().await.expect("the connection was kept").expect(200);
    }
}
