//! SIGTERM and SIGINT: requests in progress are finished, then the program exits with success.

use std::time::{Duration, Instant};

use blackbox::{Expect, Wire, World, offer_line, request};
use rustix::process::Signal;
use serde_json::json;
use testkit::TestServer;
use tokio::net::TcpStream;

use crate::{PROGRAM, me, world};

/// An import whose body has started but not ended.
async fn begun_import(world: &World) -> Wire {
    let seller = world.seller().await;
    let mut wire = Wire::importing(&world.server, &seller.id).await;
    let line = offer_line(1, json!({})) + "\n";
    wire.send_chunk(&line).await;
    // The import has started once a later request on another connection is answered.
    world.office_get("/sellers").await.expect(200);
    wire
}

/// Takes the server out of its world. The world keeps the database.
async fn replaced(world: &mut World) -> TestServer {
    let another = world.another().await;
    std::mem::replace(&mut world.server, another)
}

async fn refuses_connections(base_url: &str) {
    let address = base_url.strip_prefix("http://").unwrap();
    let refused = async {
        while TcpStream::connect(address).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), refused)
        .await
        .expect("the listener closes");
}

#[tokio::test]
async fn what_runs_is_finished_and_nothing_new_begun() {
    let mut world = world().await;
    let mut import = begun_import(&world).await;
    let server = replaced(&mut world).await;
    let urls = [server.base_url.clone(), server.backoffice_url.clone()];
    server.terminate();
    for url in &urls {
        refuses_connections(url).await;
    }
    import.send_chunk(&offer_line(2, json!({}))).await;
    import.send("0\r\n\r\n").await;
    let report = import
        .answer()
        .await
        .expect("the import is finished")
        .expect(200)
        .json();
    assert_eq!(report["created"], 2);
    assert_eq!(server.exit_code().await, Some(0));
}

#[tokio::test]
async fn idle_connections_do_not_hold_it_up() {
    for signal in [Signal::TERM, Signal::INT] {
        let mut world = world().await;
        let (_, token) = world.reader().await;
        let mut idle = Vec::new();
        for _ in 0..5 {
            let mut wire = Wire::connect(&world.server.base_url).await;
            wire.send(me(&token)).await;
            wire.answer().await.unwrap().expect(200);
            idle.push((wire, Wire::connect(&world.server.base_url).await));
        }
        let server = replaced(&mut world).await;
        let began = Instant::now();
        server.signal(signal);
        assert_eq!(server.exit_code().await, Some(0));
        assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    }
}

#[tokio::test]
async fn what_never_ends_is_given_the_time_that_was_configured() {
    let mut world = World::with(PROGRAM, |options| {
        options.set("SELLER_API__SERVER__SHUTDOWN_TIMEOUT", "1s")
    })
    .await;
    let _import = begun_import(&world).await;
    let server = replaced(&mut world).await;
    let began = Instant::now();
    server.terminate();
    assert_eq!(server.exit_code().await, Some(0));
    assert!(
        (1..6).contains(&began.elapsed().as_secs()),
        "{:?}",
        began.elapsed()
    );
}

#[tokio::test]
async fn it_stops_while_the_database_is_away() {
    let mut world = world().await;
    world.server.ready().await;
    let server = replaced(&mut world).await;
    world.database.block_connections().await;
    server.not_ready().await;
    server.terminate();
    assert_eq!(server.exit_code().await, Some(0));
    world.database.allow_connections().await;
    world.server.ready().await;
}

/// Repeats requests on one connection until an answer announces its end.
async fn busy(base_url: String, token: String) -> u32 {
    let ask = me(&token);
    let mut wire = Wire::connect(&base_url).await;
    let mut answered = 0;
    loop {
        assert!(
            wire.send(&ask).await,
            "closed without notice after {answered} answers"
        );
        let answer = wire.answer().await;
        let answer = answer.unwrap_or_else(|| panic!("no answer after {answered} answers"));
        answered += 1;
        if answer
            .header("connection")
            .is_some_and(|value| value.eq_ignore_ascii_case("close"))
        {
            assert!(wire.is_closed().await);
            return answered;
        }
    }
}

#[tokio::test]
async fn who_keeps_asking_is_told_to_go_and_loses_no_request() {
    let mut world = World::with(PROGRAM, |options| {
        options
            .set("SELLER_API__SERVER__DRAIN", "1s")
            .set("SELLER_API__RATE_LIMIT__DEFAULT", "1000000")
    })
    .await;
    let (_, token) = world.reader().await;
    let server = replaced(&mut world).await;
    let clients: Vec<_> = (0..8)
        .map(|_| tokio::spawn(busy(server.base_url.clone(), token.clone())))
        .collect();
    tokio::time::sleep(Duration::from_millis(500)).await;
    server.terminate();
    for client in clients {
        assert!(client.await.unwrap() > 1);
    }
    assert_eq!(server.exit_code().await, Some(0));
}

#[tokio::test]
async fn while_it_drains_it_answers_and_says_that_it_is_not_ready() {
    let mut world = World::with(PROGRAM, |options| options.set("SELLER_API__SERVER__DRAIN", "3s")).await;
    let server = replaced(&mut world).await;
    let began = Instant::now();
    server.terminate();
    server.log_with(|log| log.contains("SIGTERM")).await;
    let unready = Wire::exchange(&server.backoffice_url, request("GET", "/readyz", &[])).await;
    assert_eq!(unready.status, 503);
    assert_eq!(unready.must("connection").to_lowercase(), "close");
    let elsewhere = Wire::exchange(&server.base_url, request("GET", "/nothing", &[])).await;
    assert_eq!(elsewhere.status, 404);
    assert_eq!(elsewhere.must("connection").to_lowercase(), "close");
    assert_eq!(server.exit_code().await, Some(0));
    assert!(began.elapsed() >= Duration::from_secs(3), "{:?}", began.elapsed());
}
