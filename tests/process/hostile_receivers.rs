//! Receivers that mean harm, through the whole product: it lives, it stays small, and others hear of what happens.

use std::time::{Duration, Instant};

use blackbox::{EVENTS, Receiver, World, eventually, local_receivers, resident_kib};
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    time::sleep,
};

use crate::PROGRAM;

/// What a hostile receiver does once it has heard something.
#[derive(Debug, Clone, Copy)]
enum Harm {
    EndlessBody,
    EndlessHead,
    DrippingHead,
    HundredMegabytes,
    EndlessInterim,
    NoHttp,
    Reset,
    SlowTls,
    /// To another port of this machine.
    Redirect(u16),
}

/// With the status that is noted of them, where there is one.
const HARMS: [(Harm, Option<u16>); 8] = [
    (Harm::EndlessBody, Some(200)),
    (Harm::EndlessHead, None),
    (Harm::DrippingHead, None),
    (Harm::HundredMegabytes, Some(200)),
    (Harm::EndlessInterim, None),
    (Harm::NoHttp, None),
    (Harm::Reset, None),
    (Harm::SlowTls, None),
];

impl Harm {
    /// Starts one that does so to whoever comes, and returns its address.
    async fn waits(self) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(self.is_done(stream));
            }
        });
        let scheme = if matches!(self, Self::SlowTls) {
            "https"
        } else {
            "http"
        };
        format!("{scheme}://{address}/")
    }

    /// Ends when the other side has had enough.
    async fn is_done(self, mut stream: TcpStream) {
        let mut request = [0; 4096];
        if stream.read(&mut request).await.is_err() {
            return;
        }
        let megabyte = vec![b'x'; 1 << 20];
        match self {
            Self::EndlessBody => pour(stream, b"HTTP/1.1 200 OK\r\n\r\n", &megabyte, usize::MAX).await,
            Self::HundredMegabytes => {
                let head = b"HTTP/1.1 200 OK\r\ncontent-length: 104857600\r\n\r\n";
                pour(stream, head, &megabyte, 100).await;
            }
            Self::EndlessHead => {
                let lines = b"x-more: and more of it\r\n".repeat(1000);
                pour(stream, b"HTTP/1.1 200 OK\r\n", &lines, usize::MAX).await;
            }
            Self::EndlessInterim => pour(stream, b"", b"HTTP/1.1 102 Processing\r\n\r\n", usize::MAX).await,
            Self::NoHttp => pour(stream, b"220 smtp.example ESMTP\r\n", b"250 OK\r\n", usize::MAX).await,
            Self::DrippingHead => {
                for byte in b"HTTP/1.1 200 OK\r\nx-patience: "
                    .iter()
                    .chain([b'a'; 10_000].iter())
                {
                    if stream.write_all(&[*byte]).await.is_err() {
                        return;
                    }
                    sleep(Duration::from_millis(20)).await;
                }
            }
            Self::Reset => {
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-le").await;
                let _ = stream.set_zero_linger();
            }
            Self::Redirect(port) => {
                let answer = format!(
                    "HTTP/1.1 307 There\r\nlocation: http://127.0.0.1:{port}/\r\ncontent-length: 0\r\n\r\n"
                );
                let _ = stream.write_all(answer.as_bytes()).await;
            }
            Self::SlowTls => while stream.read(&mut request).await.is_ok_and(|read| read > 0) {},
        }
    }
}

async fn pour(mut stream: TcpStream, first: &[u8], again: &[u8], times: usize) {
    let mut written = stream.write_all(first).await;
    for _ in 0..times {
        if written.is_err() {
            return;
        }
        written = stream.write_all(again).await;
    }
}

#[tokio::test]
async fn hostile_receivers_harm_nobody() {
    let world = World::with(PROGRAM, |options| {
        local_receivers(options)
            .set("SELLER_API__WEBHOOKS__ATTEMPT_TIMEOUT", "500ms")
            .set("SELLER_API__WEBHOOKS__RETRY_DELAYS", "50ms,50ms,50ms,50ms,50ms")
    })
    .await;
    let (victim, other) = (world.integration().await, world.integration().await);
    let healthy = Receiver::start().await;
    world.hook(&other.token, &healthy).await;
    let mut hooks = Vec::new();
    let trap = Receiver::start().await;
    let (_, port) = trap.url.trim_end_matches("/hooks").rsplit_once(':').unwrap();
    let redirect = (Harm::Redirect(port.parse().unwrap()), Some(307));
    for (harm, status) in HARMS.into_iter().chain([redirect]) {
        let url = harm.waits().await;
        let made = world
            .subscribe_to(&victim.token, &url, &EVENTS)
            .await
            .expect(201)
            .json();
        hooks.push((harm, made["id"].as_str().unwrap().to_owned(), status));
    }

    // What a first round takes for good is not counted.
    world.any_order(&victim.seller).await;
    world.any_order(&other.seller).await;
    healthy.has(1).await;
    let before = resident_kib(world.server.id(), "VmRSS");
    for n in 2..=6 {
        world.any_order(&victim.seller).await;
        let begun = Instant::now();
        world.any_order(&other.seller).await;
        healthy.has(n).await;
        assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
    }
    eventually("the end of all attempts", async || {
        let open = "select count(*) from deliveries where due_at is not null and $1 = ''";
        (world.count(open, "").await == 0).then_some(())
    })
    .await;
    let grown = resident_kib(world.server.id(), "VmHWM").saturating_sub(before);
    assert!(grown < 64 * 1024, "{grown} KiB more than before");
    for (harm, hook, status) in hooks {
        for delivery in world.history(&victim.token, &hook).await {
            assert_eq!(
                delivery["response_status"].as_u64(),
                status.map(u64::from),
                "{harm:?}: {delivery}"
            );
            let taken = status == Some(200);
            assert_eq!(
                delivery["delivered_at"].is_string(),
                taken,
                "{harm:?}: {delivery}"
            );
            let attempts = if taken { 1 } else { 6 };
            assert_eq!(delivery["attempt"], attempts, "{harm:?}: {delivery}");
            assert!(
                delivery["duration_ms"].as_u64().is_some_and(|took| took < 2_000),
                "{harm:?}: {delivery}"
            );
            assert_eq!(delivery["next_retry_at"], Value::Null);
        }
    }
    assert_eq!(trap.connections(), 0, "nobody follows");
    world.any_order(&other.seller).await;
    healthy.has(7).await;
}
