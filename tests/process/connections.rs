//! Many concurrent connections need little memory.
//!
//! A process's resident memory includes the pages of its executable. A test build has four times as many of
//! them as the shipped one, and connections do not add to them, so they are counted only in a release build.

use blackbox::{Wire, resident_kib};

use crate::{me, world};

#[tokio::test]
async fn two_thousand_kept_connections_add_little() {
    let world = world().await;
    let (_, token) = world.reader().await;
    world.set_limit(&token, 100_000).await;
    let bytes = me(&token);
    let before = resident_kib(world.server.id(), "RssAnon");
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
    let own = resident_kib(world.server.id(), "RssAnon");
    assert!(own <= 65_000, "{own} KiB of its own are resident");
    let added = own - before;
    assert!(added <= 2_000 * 20, "2 000 connections added {added} KiB");
    if !cfg!(debug_assertions) {
        let resident = resident_kib(world.server.id(), "VmRSS");
        assert!(resident <= 100 * 1000, "{resident} KiB are resident");
    }
    for wire in wires.iter_mut().step_by(200) {
        wire.send(&bytes).await;
        wire.answer().await.expect("the connection was kept").expect(200);
    }
}
