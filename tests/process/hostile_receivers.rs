//! Hostile webhook receivers against the whole product: it survives, its memory stays small, and other
//! receivers get their deliveries.

use std::time::{Duration, Instant};

use blackbox::{EVENTS, Receiver, World, local_receivers, resident_kib};
use serde_json::{Value, json};
use testkit::HttpServer;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::sleep;

use crate::PROGRAM;

/// A hostile receiver's reaction to a request. The sender's own tests cover each of them.
#[derive(Debug, Clone, Copy)]
enum Harm {
    EndlessBody,
    EndlessHead,
    DrippingHead,
    /// A redirect to another port of this machine.
    Redirect(u16),
}

impl Harm {
    /// Starts a receiver that reacts like this to every connection. Returns its address.
    async fn waits(self) -> String {
        let server = HttpServer::start_raw(move |stream| self.is_done(stream)).await;
        format!("{}/", server.url())
    }

    /// The recorded response status, if there is one.
    fn noted(self) -> Option<u16> {
        match self {
            Self::EndlessBody => Some(200),
            Self::Redirect(_) => Some(307),
            Self::EndlessHead | Self::DrippingHead => None,
        }
    }

    /// Ends when the other side closes.
    async fn is_done(self, mut stream: TcpStream) {
        let mut request = [0; 4096];
        if stream.read(&mut request).await.is_err() {
            return;
        }
        let much = vec![b'x'; 1 << 20];
        match self {
            Self::EndlessBody => pour(stream, b"HTTP/1.1 200 OK\r\n\r\n", &much).await,
            Self::EndlessHead => {
                let lines = b"x-more: and more of it\r\n".repeat(1000);
                pour(stream, b"HTTP/1.1 200 OK\r\n", &lines).await;
            }
            Self::DrippingHead => {
                let head = b"HTTP/1.1 200 OK\r\nx-patience: "
                    .iter()
                    .chain([b'a'; 10_000].iter());
                for byte in head {
                    if stream.write_all(&[*byte]).await.is_err() {
                        return;
                    }
                    sleep(Duration::from_millis(20)).await;
                }
            }
            Self::Redirect(port) => {
                let answer = format!(
                    "HTTP/1.1 307 There\r\nlocation: http://127.0.0.1:{port}/\r\ncontent-length: 0\r\n\r\n"
                );
                drop(stream.write_all(answer.as_bytes()).await);
            }
        }
    }
}

async fn pour(mut stream: TcpStream, first: &[u8], again: &[u8]) {
    let mut written = stream.write_all(first).await;
    while written.is_ok() {
        written = stream.write_all(again).await;
    }
}

#[tokio::test]
async fn hostile_receivers_harm_no_other_delivery() {
    let world = World::with(PROGRAM, |options| {
        local_receivers(options)
            .set("SELLER_API__WEBHOOKS__ATTEMPT_TIMEOUT", "1s")
            .set("SELLER_API__WEBHOOKS__RETRY_DELAYS", "50ms,50ms,50ms,50ms,50ms")
    })
    .await;
    let (victim, other) = (world.integration().await, world.integration().await);
    let healthy = Receiver::start().await;
    world.hook(&other.token, &healthy).await;
    let mut hooks = Vec::new();
    let trap = Receiver::start().await;
    let (_, port) = trap.url.trim_end_matches("/hooks").rsplit_once(':').unwrap();
    let redirect = Harm::Redirect(port.parse().unwrap());
    for harm in [Harm::EndlessBody, Harm::EndlessHead, Harm::DrippingHead, redirect] {
        let url = harm.waits().await;
        let made = world.subscribe_to(&victim.token, &url, &EVENTS).await;
        let made = made.expect(201).json();
        hooks.push((harm, made["id"].as_str().unwrap().to_owned()));
    }

    // A warm-up: memory that the first round allocates for good is not counted.
    world.any_order(&victim.seller).await;
    world.any_order(&other.seller).await;
    healthy.has(1).await;
    let before = resident_kib(world.server.id(), "VmRSS");
    // Its six attempts, of up to a second each, last through the rounds.
    world.any_order(&victim.seller).await;
    for n in 2..=6 {
        let begun = Instant::now();
        world.any_order(&other.seller).await;
        healthy.has(n).await;
        assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
    }
    let open = "select count(*) from deliveries where due_at is not null";
    world.until_count("the end of all attempts", open, &[], 0).await;
    let grown = resident_kib(world.server.id(), "VmHWM").saturating_sub(before);
    assert!(grown < 64 * 1024, "{grown} KiB more than before");
    for (harm, hook) in hooks {
        for delivery in world.history(&victim.token, &hook).await {
            let (status, taken) = (harm.noted(), harm.noted() == Some(200));
            let told = (
                &delivery["response_status"],
                &delivery["attempt"],
                &delivery["next_retry_at"],
            );
            let expected = (&json!(status), &json!(if taken { 1 } else { 6 }), &Value::Null);
            assert_eq!(told, expected, "{harm:?}: {delivery}");
            assert_eq!(
                delivery["delivered_at"].is_string(),
                taken,
                "{harm:?}: {delivery}"
            );
            assert!(
                delivery["duration_ms"].as_u64().is_some_and(|took| took < 2_000),
                "{delivery}"
            );
        }
    }
    assert_eq!(trap.connections(), 0, "nobody follows");
    world.any_order(&other.seller).await;
    healthy.has(7).await;
}
