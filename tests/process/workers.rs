//! How workers start, are watched and end.

use std::time::Duration;

use blackbox::{Finished, World, run};
use reqwest::Method;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use testkit::{Client, ServerOptions, TestDatabase, sealing_key};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    net::TcpListener,
    process::{Child, Command},
    time::{Instant, sleep, timeout},
};

use crate::PROGRAM;

const PATIENCE: Duration = Duration::from_secs(20);

/// A running `seller-api worker`.
struct Worker {
    child: Child,
    url: String,
}

impl Worker {
    async fn start(database: &str) -> Self {
        let mut child = Command::new(PROGRAM)
            .args(["worker", "--bind", "127.0.0.1:0"])
            .env("DATABASE_URL", database)
            .env("SELLER_API__KEYS__SEALING", sealing_key())
            .env("SELLER_API__LOG__FORMAT", "json")
            .stderr(std::process::Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let listening = async {
            while let Some(line) = lines.next_line().await.unwrap() {
                let event = serde_json::from_str::<Value>(&line).unwrap_or_default();
                if let Some(address) = event["fields"]["probes"].as_str() {
                    return address.to_owned();
                }
            }
            panic!("the worker ends before it listens")
        };
        let address = timeout(PATIENCE, listening).await.unwrap();
        // Read on, so that the worker never waits for somebody to do so.
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        Self {
            child,
            url: format!("http://{address}"),
        }
    }

    async fn status(&self, path: &str) -> u16 {
        let answer = Client::new().get(&format!("{}{path}", self.url)).send().await;
        assert!(answer.header("x-trace-id").is_some());
        answer.status
    }

    async fn end(mut self) -> Option<i32> {
        let id = i32::try_from(self.child.id().unwrap()).unwrap();
        kill_process(Pid::from_raw(id).unwrap(), Signal::TERM).unwrap();
        timeout(PATIENCE, self.child.wait())
            .await
            .unwrap()
            .unwrap()
            .code()
    }
}

async fn eventually(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let began = Instant::now();
    while !is_so().await {
        assert!(began.elapsed() < PATIENCE, "{what}: it does not come");
        sleep(Duration::from_millis(20)).await;
    }
}

/// Has an order placed, paid and shipped.
async fn ship(world: &World) {
    let seller = world.seller().await;
    let token = world.personal_token(&seller, &["shipments:write"]).await.token;
    let offer = world.offer(&seller, 1, json!({})).await;
    let order = json!({
        "payment_method": "blik",
        "delivery_method": "courier",
        "buyer": {"name": "Ewa Żak", "email": "ewa@buyer.example"},
        "shipping_address": {"country": "PL"},
        "items": [{"seller_id": seller.id, "offer_id": offer, "quantity": 1}],
    });
    let placed = world.office_post("/orders", &order).await.expect(201).json();
    let id = placed["order_id"].as_str().unwrap();
    world
        .office(Method::POST, &format!("/orders/{id}/payment"))
        .send()
        .await
        .expect(200);
    let shipment = json!({"carrier": "dpd", "tracking_number": "1234"});
    let url = world.url(&format!("/v1/orders/{id}/shipments"));
    world
        .client
        .post(&url)
        .bearer(&token)
        .json(&shipment)
        .send()
        .await
        .expect(201);
}

#[tokio::test]
async fn a_worker_waits_for_the_schema() {
    let database = TestDatabase::empty().await;
    let worker = Worker::start(database.url()).await;
    assert_eq!(worker.status("/healthz").await, 200);
    assert_eq!(worker.status("/readyz").await, 503);
    let migrated: Finished = run(PROGRAM, &["migrate"], &[("DATABASE_URL", database.url())]).await;
    migrated.success();
    eventually("readiness", async || worker.status("/readyz").await == 200).await;
    assert_eq!(worker.status("/metrics").await, 200);
    assert_eq!(worker.status("/v1/me").await, 404);
    assert_eq!(worker.end().await, Some(0));
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
    ship(&world).await;
    let (_held, _) = timeout(PATIENCE, silent.accept()).await.unwrap().unwrap();
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
