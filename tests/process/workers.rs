//! How workers start, are monitored and stop.

use std::time::{Duration, Instant};

use blackbox::{World, parcel, run, until};
use testkit::{Client, ServerOptions, TestDatabase, TestWorker};
use tokio::{net::TcpListener, time::timeout};

use crate::PROGRAM;

#[tokio::test]
async fn a_worker_waits_for_the_schema() {
    let database = TestDatabase::empty().await;
    let (worker, url) = TestWorker::listening(&ServerOptions::new(PROGRAM), &database).await;
    let status = async |path: &str| {
        let answer = Client::new().get(&format!("{url}{path}")).send().await;
        assert!(answer.header("x-trace-id").is_some());
        answer.status
    };
    assert_eq!((status("/healthz").await, status("/readyz").await), (200, 503));
    run(PROGRAM, &["migrate"], &[("DATABASE_URL", database.url())])
        .await
        .success();
    until("readiness", async || status("/readyz").await == 200).await;
    assert_eq!((status("/metrics").await, status("/v1/me").await), (200, 404));
    worker.terminate();
    assert_eq!(worker.exit_code().await, Some(0));
}

#[tokio::test]
async fn a_mail_server_that_never_answers_holds_up_neither_requests_nor_the_end_for_long() {
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = silent.local_addr().unwrap().port();
    let settings = |options: ServerOptions| {
        options
            .set("SELLER_API__MAIL__HOST", "127.0.0.1")
            .set("SELLER_API__MAIL__PORT", port)
            .set("SELLER_API__MAIL__SECURITY", "plain")
            .set("SELLER_API__MAIL__SENDER_NAME", "Shop")
            .set("SELLER_API__MAIL__SENDER_ADDRESS", "shop@shop.example")
            .set("SELLER_API__SERVER__SHUTDOWN_TIMEOUT", "1s")
    };
    let mut world = World::with(PROGRAM, settings).await;
    let trader = world.trader().await;
    let ship = async |world: &World| {
        let order = world.paid_order(&trader).await;
        world
            .ship(&trader.token, &order.id, &parcel("1234"))
            .await
            .expect(201);
    };
    ship(&world).await;
    let (_held, _) = timeout(Duration::from_secs(20), silent.accept())
        .await
        .unwrap()
        .unwrap();
    ship(&world).await;
    let another = world.another().await;
    let server = std::mem::replace(&mut world.server, another);
    let began = Instant::now();
    server.terminate();
    assert_eq!(server.exit_code().await, Some(0));
    let took = began.elapsed();
    assert!(
        (Duration::from_millis(900)..Duration::from_secs(5)).contains(&took),
        "{took:?}"
    );
}
