//! Every process is replaced, one after another, behind a balancer under load: no request fails.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use blackbox::{Application, Trader, World};
use reqwest::Method;
use serde_json::json;
use testkit::{Balancer, Client, Request, ServerOptions, TestServer};
use tokio::{task::JoinHandle, time::interval};

use crate::PROGRAM;

const SERVERS: usize = 3;
const CLIENTS: u32 = 16;
/// Load of all clients together, in requests a second.
const RATE: u32 = 200;
/// Minimum number of answers, even on a slow machine, for the test to be meaningful.
const AT_LEAST: usize = 1_000;

fn settings(options: ServerOptions) -> ServerOptions {
    options
        // Longer than the balancer needs to notice, and than any client is idle.
        .set("SELLER_API__SERVER__DRAIN", "3s")
        .set("SELLER_API__RATE_LIMIT__DEFAULT", 1_000_000)
        .set("SELLER_API__OAUTH__TOKEN_LIMIT_PER_IP", 1_000_000)
        .set("SELLER_API__OAUTH__TOKEN_LIMIT_PER_CLIENT", 1_000_000)
}

/// A client that reuses one connection as long as possible.
struct Asking {
    client: Client,
    base_url: String,
    trader: Trader,
    application: Application,
    offer: String,
    ends: Arc<AtomicBool>,
}

/// A client's results.
#[derive(Default)]
struct Asked {
    answered: usize,
    failed: Vec<String>,
    /// The stock of the last write.
    stock: u64,
}

impl Asking {
    /// Alternates reads, writes and token requests.
    fn request(&self, n: u64) -> Request {
        let offer = format!("{}/v1/offers/{}", self.base_url, self.offer);
        match n % 3 {
            0 => self.client.get(&offer).bearer(&self.trader.token),
            1 => self
                .client
                .request(Method::PATCH, &offer)
                .bearer(&self.trader.token)
                .header("idempotency-key", &format!("{}-{n}", self.offer))
                .json(&json!({"stock": n})),
            _ => self
                .client
                .post(&format!("{}/oauth/token", self.base_url))
                .json(&json!({
                    "grant_type": "client_credentials",
                    "client_id": self.application.client_id,
                    "client_secret": self.application.client_secret,
                })),
        }
    }

    async fn ask(self) -> Asked {
        let mut pace = interval(Duration::from_secs(1) * CLIENTS / RATE);
        let mut asked = Asked::default();
        for n in 0.. {
            if self.ends.load(Ordering::Relaxed) {
                break;
            }
            pace.tick().await;
            match self.request(n).try_send().await {
                Ok(answer) if answer.status == 200 => {
                    asked.answered += 1;
                    if n % 3 == 1 {
                        asked.stock = n;
                    }
                }
                other => asked.failed.push(format!("request {n}: {other:?}")),
            }
        }
        asked
    }
}

/// The processes and the balancer.
struct Fleet {
    world: World,
    balancer: Balancer,
    servers: Vec<TestServer>,
}

impl Fleet {
    async fn start() -> Self {
        let world = World::with(PROGRAM, settings).await;
        let balancer = Balancer::start();
        let mut servers = Vec::new();
        for _ in 0..SERVERS {
            servers.push(world.another().await);
        }
        for server in &servers {
            balancer.add(server);
        }
        balancer.wait_for_servers(SERVERS).await;
        Self {
            world,
            balancer,
            servers,
        }
    }

    async fn grow(&mut self) {
        let server = self.world.another().await;
        self.balancer.add(&server);
        self.servers.push(server);
        self.balancer.wait_for_servers(self.servers.len()).await;
    }

    async fn stop_the_oldest(&mut self) {
        let oldest = self.servers.remove(0);
        oldest.terminate();
        self.balancer.wait_for_servers(self.servers.len()).await;
        self.balancer.remove(&oldest);
        assert_eq!(oldest.exit_code().await, Some(0));
    }
}

/// Starts clients, each with a separate offer.
async fn clients(fleet: &Fleet, ends: &Arc<AtomicBool>) -> Vec<(String, JoinHandle<Asked>)> {
    let trader = fleet.world.trader().await;
    let application = fleet.world.application(&trader.seller, &["offers:read"]).await;
    let mut clients = Vec::new();
    for _ in 0..CLIENTS {
        let offer = fleet.world.any_offer(&trader.seller, json!({"stock": 0})).await;
        let asking = Asking {
            client: Client::new(),
            base_url: fleet.balancer.base_url.clone(),
            trader: trader.clone(),
            application: application.clone(),
            offer: offer.clone(),
            ends: Arc::clone(ends),
        };
        clients.push((offer, tokio::spawn(asking.ask())));
    }
    clients
}

#[tokio::test(flavor = "multi_thread")]
async fn no_request_fails_while_every_process_is_replaced_twice() {
    let mut fleet = Fleet::start().await;
    let ends = Arc::new(AtomicBool::new(false));
    let began = Instant::now();
    let clients = clients(&fleet, &ends).await;
    // With one additional server during the replacement, and with one server fewer.
    for _ in 0..SERVERS {
        fleet.grow().await;
        fleet.stop_the_oldest().await;
    }
    for _ in 0..SERVERS {
        fleet.stop_the_oldest().await;
        fleet.grow().await;
    }
    ends.store(true, Ordering::Relaxed);
    let (mut answered, mut failed) = (0, Vec::new());
    for (offer, client) in clients {
        let asked = client.await.unwrap();
        answered += asked.answered;
        failed.extend(asked.failed);
        let stored = "select stock::bigint from offers where id::text = $1";
        let stored = fleet.world.count(stored, &[&offer]).await;
        assert_eq!(u64::try_from(stored).unwrap(), asked.stock, "{offer}");
    }
    assert!(failed.is_empty(), "of {answered}: {failed:#?}");
    assert!(answered >= AT_LEAST, "{answered} in {:?}", began.elapsed());
}
