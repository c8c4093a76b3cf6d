//! Imports of any size use the same amount of memory.

use std::fmt::Write as _;

use blackbox::{Seller, Wire, World, offer_line, resident_kib};
use serde_json::{Value, json};

use crate::world;

/// Imports `lines` lines, the same thousand offers repeatedly, and returns the report.
async fn stream(world: &World, seller: &Seller, lines: usize) -> Value {
    let mut thousand = String::new();
    (1..=1_000).for_each(|n| writeln!(thousand, "{}", offer_line(n, json!({}))).unwrap());
    let mut wire = Wire::importing(&world.server, &seller.id).await;
    for _ in 0..lines / 1_000 {
        assert!(wire.send_chunk(&thousand).await, "the import is taken to its end");
    }
    wire.send("0\r\n\r\n").await;
    wire.answer().await.expect("a report").expect(200).json()
}

#[tokio::test]
async fn memory_does_not_grow_with_the_input() {
    let world = world().await;
    let seller = world.seller().await;
    let report = stream(&world, &seller, 20_000).await;
    assert_eq!(
        (&report["created"], &report["unchanged"]),
        (&json!(1_000), &json!(19_000))
    );
    let after_little = resident_kib(world.server.id(), "VmHWM");
    let report = stream(&world, &seller, 180_000).await;
    assert_eq!(report["unchanged"], 180_000);
    let after_much = resident_kib(world.server.id(), "VmHWM");
    // The kernel adds up what each thread counts, so the mark may seem to fall a little.
    assert!(
        after_much.saturating_sub(after_little) < 20_000,
        "{after_little} KiB before, {after_much} KiB after"
    );
    assert!(after_much < 200_000, "{after_much} KiB at most");
}
