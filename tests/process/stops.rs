//! SIGTERM and SIGINT: requests in progress are finished, then the program exits with success.

use std::sync::Arc;
use std::time::{Duration, Instant};

use blackbox::{Expect, Wire, World, at_once, offer_line, request, text, until};
use reqwest::Method;
use rustix::process::Signal;
use serde_json::json;
use testkit::Answer;
use tokio::{net::TcpStream, sync::Barrier, task::JoinHandle};

use crate::{me, stop, take_server, world, world_with};

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

async fn refuses_connections(base_url: &str) {
    let address = base_url.strip_prefix("http://").unwrap();
    let is_closed = async || TcpStream::connect(address).await.is_err();
    until("the listener closes", is_closed).await;
}

#[tokio::test]
async fn what_runs_is_finished_and_nothing_new_begun() {
    let mut world = world().await;
    let mut import = begun_import(&world).await;
    let server = take_server(&mut world).await;
    let urls = [server.base_url.clone(), server.backoffice_url.clone()];
    server.terminate();
    for url in &urls {
        refuses_connections(url).await;
    }
    import.send_chunk(&offer_line(2, json!({}))).await;
    import.send("0\r\n\r\n").await;
    let report = import.answer().await.expect("a report").expect(200);
    assert_eq!(report.json()["created"], 2);
    assert_eq!(server.exit_code().await, Some(0));
}

/// Readers of the journal that wait for an event.
async fn waiting_readers(world: &World) -> (String, Vec<JoinHandle<Answer>>) {
    let (_, token) = world.reader().await;
    let wait = || world.at("GET", "/v1/events?wait=30").bearer(&token);
    let waiting = world.admitted_to_journal([(); 3].map(|()| wait())).await;
    (token, waiting)
}

#[tokio::test]
async fn readers_that_wait_for_an_event_are_answered_at_once() {
    let mut world = world().await;
    let (token, waiting) = waiting_readers(&world).await;
    let server = take_server(&mut world).await;
    let began = Instant::now();
    server.terminate();
    for reader in waiting {
        let page = reader.await.unwrap().expect(200).json();
        assert_eq!((&page["items"], &page["has_more"]), (&json!([]), &json!(false)));
        let next = format!("/v1/events?after={}", text(&page, "cursor"));
        assert_eq!(world.read(&token, &next).await["items"], json!([]));
    }
    assert_eq!(server.exit_code().await, Some(0));
    assert!(began.elapsed() < Duration::from_secs(15), "{:?}", began.elapsed());
}

#[tokio::test]
async fn readers_that_wait_for_an_event_are_told_when_the_database_is_lost() {
    let world = world().await;
    let (_, waiting) = waiting_readers(&world).await;
    let began = Instant::now();
    world.database.block_connections().await;
    for reader in waiting {
        reader.await.unwrap().refused(500, "internal_error");
    }
    assert!(began.elapsed() < Duration::from_secs(15), "{:?}", began.elapsed());
    world.database.allow_connections().await;
    world.server.ready().await;
}

#[tokio::test]
async fn idle_connections_do_not_delay_the_stop() {
    for signal in [Signal::TERM, Signal::INT] {
        let mut world = world_with(&[("SERVER__SHUTDOWN_TIMEOUT", "1m")]).await;
        let (_, token) = world.reader().await;
        let mut idle = Vec::new();
        for _ in 0..5 {
            let mut wire = Wire::connect(&world.server.base_url).await;
            wire.send(me(&token)).await;
            wire.answer().await.unwrap().expect(200);
            idle.push((wire, Wire::connect(&world.server.base_url).await));
        }
        let server = take_server(&mut world).await;
        let began = Instant::now();
        server.signal(signal);
        assert_eq!(server.exit_code().await, Some(0));
        assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
    }
}

#[tokio::test]
async fn an_unfinished_import_delays_the_stop_by_the_configured_time() {
    let mut world = world_with(&[("SERVER__SHUTDOWN_TIMEOUT", "1s")]).await;
    let _import = begun_import(&world).await;
    let server = take_server(&mut world).await;
    let began = Instant::now();
    stop(server).await;
    let took = began.elapsed().as_secs();
    assert!((1..8).contains(&took), "{took} s");
}

#[tokio::test]
async fn it_stops_while_the_database_is_away() {
    let mut world = world().await;
    world.server.ready().await;
    let server = take_server(&mut world).await;
    world.database.block_connections().await;
    server.not_ready().await;
    stop(server).await;
    world.database.allow_connections().await;
    world.server.ready().await;
}

/// Repeats requests on one connection until an answer announces its end; waits for the others after the
/// first. Returns the number of answers.
async fn ask_until_closed(base_url: String, token: String, all_begun: Arc<Barrier>) -> u32 {
    let request = me(&token);
    let mut wire = Wire::connect(&base_url).await;
    for answered in 1.. {
        assert!(
            wire.send(&request).await,
            "closed without notice before answer {answered}"
        );
        let answer = wire.answer().await.expect("an answer to each request");
        if answer
            .header("connection")
            .is_some_and(|value| value.eq_ignore_ascii_case("close"))
        {
            assert!(wire.is_closed().await);
            return answered;
        }
        if answered == 1 {
            all_begun.wait().await;
        }
    }
    unreachable!("requests without end")
}

#[tokio::test]
async fn a_busy_connection_is_closed_with_notice_and_loses_no_request() {
    let mut world = world_with(&[("SERVER__DRAIN", "5s"), ("RATE_LIMIT__DEFAULT", "1000000")]).await;
    let (_, token) = world.reader().await;
    let server = take_server(&mut world).await;
    let all_begun = Arc::new(Barrier::new(9));
    let ask = |_| ask_until_closed(server.base_url.clone(), token.clone(), Arc::clone(&all_begun));
    let clients: Vec<_> = (0..8).map(ask).map(tokio::spawn).collect();
    all_begun.wait().await;
    server.terminate();
    for client in clients {
        assert!(client.await.unwrap() > 1);
    }
    assert_eq!(server.exit_code().await, Some(0));
}

/// Threads without a connection end at once; what they have opened is still used by others.
#[tokio::test]
async fn a_request_in_flight_outlives_the_threads_that_have_nothing_to_do() {
    for _ in 0..3 {
        let mut world = world().await;
        let trader = world.trader().await;
        let offer = world.any_offer(&trader.seller, json!({})).await;
        // The back office's threads open the pool's connections.
        at_once((0..40).map(|_| world.office(Method::GET, "/changes"))).await;
        let patching = world.patching(&trader.token, &offer, &json!({"stock": 3}));
        let server = take_server(&mut world).await;
        let held = world.open_transaction("select from offers for update").await;
        let patching = tokio::spawn(patching.send());
        world.waiters(1).await;
        server.terminate();
        for url in [&server.base_url, &server.backoffice_url] {
            refuses_connections(url).await;
        }
        held.end("rollback").await;
        patching.await.unwrap().expect(200);
        assert_eq!(server.exit_code().await, Some(0));
    }
}

#[tokio::test]
async fn while_it_drains_it_answers_but_is_not_ready() {
    let mut world = world_with(&[("SERVER__DRAIN", "6s")]).await;
    let server = take_server(&mut world).await;
    let began = Instant::now();
    server.terminate();
    server.log_with(|log| log.contains("SIGTERM")).await;
    for (base, path, status) in [
        (&server.backoffice_url, "/readyz", 503),
        (&server.base_url, "/nothing", 404),
    ] {
        let answer = Wire::exchange(base, request("GET", path, &[]))
            .await
            .expect(status);
        assert_eq!(answer.must("connection").to_lowercase(), "close");
    }
    assert_eq!(server.exit_code().await, Some(0));
    assert!(began.elapsed() >= Duration::from_secs(6), "{:?}", began.elapsed());
}
