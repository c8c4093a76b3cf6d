//! Kept connections that idle go to rest, which their clients do not notice and which costs next to no memory.

use std::time::{Duration, Instant};

use blackbox::{Expect, Wire, World, eventually, request, resident_kib};
use tokio::io::AsyncReadExt;

use crate::{
    PROGRAM,
    tls::{connected, secured, status},
    world,
};

const USUAL: &[(&str, &str)] = &[("user-agent", "Tests/1.0")];

/// A request that every connection may make; it is answered 401.
fn me(method: &str) -> String {
    request(method, "/v1/me", USUAL)
}

/// What the metrics of the public listener say.
async fn metric(world: &World, name: &str, label: &str) -> u64 {
    let url = format!("{}/metrics", world.server.backoffice_url);
    let answer = world.client.get(&url).send().await.expect(200);
    let text = String::from_utf8(answer.bytes).unwrap();
    let series = format!("{name}{{listener=\"api\"{label}}} ");
    let value = text.lines().find_map(|line| line.strip_prefix(&series));
    value.map_or(0, |value| value.parse().unwrap())
}

async fn resting(world: &World) -> u64 {
    metric(world, "http_connections_resting", "").await
}

async fn slow(world: &World) -> u64 {
    metric(world, "http_connections_cut_total", ",reason=\"slow\"").await
}

/// Waits until so many connections rest.
async fn rest(world: &World, connections: u64) {
    eventually("the connections rest", async || {
        (resting(world).await == connections).then_some(())
    })
    .await;
}

/// A connection that was used once.
async fn used(world: &World) -> Wire {
    let mut wire = Wire::connect(&world.server.base_url).await;
    wire.send(me("GET")).await;
    wire.answer().await.expect("an answer").expect(401);
    wire
}

async fn statuses(wire: &mut Wire, expected: &[u16]) {
    for status in expected {
        wire.answer().await.expect("an answer").expect(*status);
    }
}

#[tokio::test]
async fn a_connection_that_rested_is_as_good_as_new() {
    let world = world().await;
    let mut wires = Vec::new();
    for _ in 0..5 {
        wires.push(used(&world).await);
    }
    let [together, split, bare, chunked, preceded] = wires.as_mut_slice() else {
        panic!("five connections");
    };
    let none = request("GET", "/openapi.json/none", USUAL);
    let form = [
        USUAL,
        &[
            ("content-type", "application/x-www-form-urlencoded"),
            ("transfer-encoding", "chunked"),
        ],
    ]
    .concat();
    for _ in 0..3 {
        rest(&world, 5).await;
        together.send(me("GET") + &none + &me("GET")).await;
        statuses(together, &[401, 404, 401]).await;

        let asked = me("GET");
        let (begin, end) = asked.split_at(12);
        split.send(begin).await;
        eventually("the beginning is read", async || {
            (resting(&world).await < 4).then_some(())
        })
        .await;
        split.send(end).await;
        statuses(split, &[401]).await;

        bare.send(me("HEAD") + &me("GET")).await;
        bare.bare_answer().await.expect("an answer").expect(401);
        statuses(bare, &[401]).await;

        chunked.send(request("POST", "/oauth/token", &form)).await;
        chunked.send_chunk("grant_type=").await;
        chunked.send_chunk("none").await;
        chunked.send("0\r\n\r\n").await;
        statuses(chunked, &[400]).await;

        preceded.send("\r\n".to_owned() + &me("GET")).await;
        statuses(preceded, &[401]).await;
    }
    assert_eq!(slow(&world).await, 0);
}

#[tokio::test]
async fn a_connection_over_tls_rests_too_and_ends_as_tls_has_it() {
    let settings = |options: testkit::ServerOptions| options.set("SELLER_API__SERVER__KEEP_ALIVE", "4s");
    let (world, _files, certificate) = secured(settings).await;
    let mut stream = connected(&world.server.base_url, &certificate).await;
    for _ in 0..3 {
        assert_eq!(status(&mut stream, "/v1/me").await, 401);
        assert_eq!(status(&mut stream, "/openapi.json/none").await, 404);
        rest(&world, 1).await;
    }
    let mut rest = Vec::new();
    let end = tokio::time::timeout(Duration::from_secs(30), stream.read_to_end(&mut rest));
    let read = end.await.expect("the connection ends").expect("as TLS has it");
    assert_eq!(read, 0);
    assert_eq!(slow(&world).await, 0, "idling is not slow");
}

#[tokio::test]
async fn a_connection_whose_client_goes_while_it_rests_is_gone() {
    let world = world().await;
    let files = || std::fs::read_dir(format!("/proc/{}/fd", world.server.id())).map(Iterator::count);
    let before = files().unwrap();
    let mut wires = Vec::new();
    for _ in 0..50 {
        wires.push(used(&world).await);
    }
    rest(&world, 50).await;
    assert!(files().unwrap() >= before + 50);
    wires.truncate(1);
    rest(&world, 1).await;
    eventually("the descriptors are closed", async || {
        (files().unwrap() < before + 25).then_some(())
    })
    .await;
    let [kept] = wires.as_mut_slice() else {
        panic!("one connection");
    };
    kept.send(me("GET")).await;
    statuses(kept, &[401]).await;
}

#[tokio::test]
async fn a_head_after_a_rest_has_no_more_time_than_others() {
    let world = World::with(PROGRAM, |options| {
        options.set("SELLER_API__SERVER__HEADER_TIMEOUT", "1s")
    })
    .await;
    let (mut stalled, mut dripping) = (used(&world).await, used(&world).await);
    rest(&world, 2).await;
    let began = Instant::now();
    stalled.send("G").await;
    let answer = stalled.answer().await.expect("an answer").expect(408);
    assert_eq!(answer.must("connection").to_lowercase(), "close");
    assert!(stalled.is_closed().await, "it is told once");
    let took = began.elapsed();
    assert!((900..6_000).contains(&took.as_millis()), "{took:?}");
    assert_eq!(slow(&world).await, 1);

    let began = Instant::now();
    dripping.send("GET /v1/me HTTP/1.1\r\nx-slow: ").await;
    while dripping.send("a").await {
        assert!(
            began.elapsed() < Duration::from_secs(6),
            "the connection is still open"
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    eventually("it is counted", async || (slow(&world).await == 2).then_some(())).await;
}

#[tokio::test]
async fn a_rest_ends_with_the_time_to_idle() {
    let world = World::with(PROGRAM, |options| {
        options.set("SELLER_API__SERVER__KEEP_ALIVE", "4s")
    })
    .await;
    let mut wire = used(&world).await;
    let began = Instant::now();
    rest(&world, 1).await;
    assert!(wire.is_closed().await);
    let took = began.elapsed();
    assert!((3_000..7_000).contains(&took.as_millis()), "{took:?}");
    rest(&world, 0).await;
    assert_eq!(slow(&world).await, 0, "idling is not slow");
}

#[tokio::test]
async fn connections_that_rest_do_not_hold_up_the_end() {
    let mut world = world().await;
    let mut wires = Vec::new();
    for _ in 0..5 {
        wires.push(used(&world).await);
    }
    rest(&world, 5).await;
    let another = world.another().await;
    let server = std::mem::replace(&mut world.server, another);
    let began = Instant::now();
    server.terminate();
    for wire in &mut wires {
        assert!(wire.is_closed().await);
    }
    assert_eq!(server.exit_code().await, Some(0));
    assert!(began.elapsed() < Duration::from_secs(8), "{:?}", began.elapsed());
}

/// A connection takes about 2 KiB while it rests, and more than 8 while it is served. The allocator gives pages back, on some of which
/// something else lies: hence the bound of 5, which no connection that is served would keep.
#[tokio::test]
async fn two_thousand_connections_at_rest_hold_little() {
    let world = world().await;
    drop(used(&world).await);
    let own = || resident_kib(world.server.id(), "RssAnon");
    let before = own();
    let mut wires = Vec::new();
    while wires.len() < 2_000 {
        let batch: Vec<_> = (0..50)
            .map(|_| {
                let base = world.server.base_url.clone();
                tokio::spawn(async move {
                    let mut wire = Wire::connect(&base).await;
                    wire.send(me("GET")).await;
                    wire.answer().await.expect("an answer").expect(401);
                    wire
                })
            })
            .collect();
        for wire in batch {
            wires.push(wire.await.unwrap());
        }
    }
    rest(&world, 2_000).await;
    let bound = 2_000 * 5;
    eventually("what they held is given back", async || {
        (own().saturating_sub(before) < bound).then_some(())
    })
    .await;
    for wire in wires.iter_mut().step_by(100) {
        wire.send(me("GET")).await;
        statuses(wire, &[401]).await;
    }
}
