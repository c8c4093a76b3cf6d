//! A client that takes what it can takes little from others.

use std::time::{Duration, Instant};

use blackbox::{Wire, World, offer_line, request, resident_kib};
use serde_json::json;
use testkit::ServerOptions;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::{PROGRAM, me, metrics::value_at, world, world_with};

/// How a client asks as much as it can.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asks {
    /// For what needs no wait, each time after the answer.
    Singly,
    /// For the same, without reading between.
    Pipelined,
    /// For searches in the documentation.
    Searches,
    /// With a body that is refused and does not end.
    Bodies,
}

impl Asks {
    async fn endlessly(self, base: String) {
        let address = base.strip_prefix("http://").unwrap();
        if self == Self::Bodies {
            let head = request("POST", "/v1/offers/batch", &[("transfer-encoding", "chunked")]);
            let chunk = format!("10000\r\n{}\r\n", "x".repeat(1 << 16));
            loop {
                let mut refused = TcpStream::connect(address).await.unwrap();
                refused.write_all(head.as_bytes()).await.unwrap();
                while refused.write_all(chunk.as_bytes()).await.is_ok() {}
            }
        }
        let (mut answers, mut requests) = TcpStream::connect(address).await.unwrap().into_split();
        let words = "order+offer+page+key+token+stock+event+price+".repeat(4);
        let asked = match self {
            // Refused for its missing `User-Agent`.
            Self::Singly | Self::Pipelined => request("GET", "/v1/me", &[]),
            Self::Searches | Self::Bodies => request("GET", &format!("/docs/search?q={words}"), &[]),
        };
        let mut read = vec![0; 1 << 16];
        if self == Self::Singly {
            loop {
                requests.write_all(asked.as_bytes()).await.unwrap();
                // The answer is one segment.
                assert!(answers.read(&mut read).await.unwrap() > 0);
            }
        }
        let many = asked.repeat(100);
        let asking = async { while requests.write_all(many.as_bytes()).await.is_ok() {} };
        let reading = async { while answers.read(&mut read).await.is_ok_and(|length| length > 0) {} };
        tokio::join!(asking, reading);
    }

    /// The time within which another client gets 99 of 100 answers, beside four such connections.
    async fn beside(self, world: &World, token: &str, time: Duration) -> Duration {
        let mut greedy = JoinSet::new();
        for _ in 0..4 {
            greedy.spawn(self.endlessly(world.server.base_url.clone()));
        }
        let mut wire = Wire::connect(&world.server.base_url).await;
        let (began, mut took) = (Instant::now(), Vec::new());
        while began.elapsed() < time {
            let sent = Instant::now();
            wire.send(me(token)).await;
            wire.answer().await.expect("an answer").expect(200);
            took.push(sent.elapsed());
        }
        greedy.shutdown().await;
        took.sort();
        took[took.len() * 99 / 100]
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pipelined_requests_and_searches_take_no_more_from_others_than_single_requests() {
    let world = world_with(&[("SERVER__THREADS", "1")]).await;
    let (_, token) = world.reader().await;
    world.set_limit(&token, 100_000).await;
    world.visit("/docs/search?q=order").await.expect(200);
    let kinds = [Asks::Singly, Asks::Pipelined, Asks::Searches, Asks::Bodies];
    let mut rounds = [const { Vec::new() }; 4];
    // What else the machine does adds to some rounds, and in turn to all kinds alike. Without turns each round takes a thousand times as
    // long.
    for round in 1..=24 {
        for (kind, rounds) in kinds.iter().zip(&mut rounds) {
            let took = kind.beside(&world, &token, Duration::from_millis(400)).await;
            rounds.push(took);
            rounds.sort_unstable();
        }
        let medians = rounds.each_ref().map(|rounds| rounds[round / 2]);
        if round >= 5 && medians.iter().all(|took| *took <= 2 * medians[0]) {
            return;
        }
    }
    panic!("beside {kinds:?}: {rounds:?}");
}

/// Connects with a small receive buffer, and asks.
async fn asking(base: &str, bytes: &str) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    let address = base.strip_prefix("http://").unwrap().parse().unwrap();
    let mut stream = socket.connect(address).await.unwrap();
    // The server does not take all of it.
    drop(timeout(Duration::from_millis(100), stream.write_all(bytes.as_bytes())).await);
    stream
}

#[tokio::test]
async fn clients_that_do_not_read_large_answers_take_little_memory() {
    let world = world().await;
    let page = world.visit("/docs/reference").await.expect(200);
    let page = String::from_utf8(page.bytes).unwrap();
    let (_, script) = page.split_once("/docs/assets/scalar").unwrap();
    let script = format!("/docs/assets/scalar{}", script.split('"').next().unwrap());
    assert!(world.visit(&script).await.expect(200).bytes.len() > 3_000_000);
    let ask = |path: &str, headers: &[(&str, &str)]| request("GET", path, headers);
    let requests = [
        ask(&script, &[]),
        // Its body is never sent.
        ask(&script, &[("content-length", "1")]),
        ask(&script, &[]).repeat(3),
        ask("/openapi.json", &[]).repeat(10),
        // Each of 128 KiB would take 20 MB at once.
        ask(&script, &[]).repeat(2_000),
    ];
    let before = resident_kib(world.server.id(), "VmRSS");
    let mut streams = Vec::new();
    for request in requests.iter().cycle().take(400) {
        let mut stream = asking(&world.server.base_url, request).await;
        // The beginning of the answer shows that the server has buffered what it does before the client
        // reads.
        let read = if streams.len() % 2 == 0 { 1 } else { 20 };
        for _ in 0..read {
            assert!(stream.read(&mut [0; 1024]).await.unwrap() > 0);
        }
        streams.push(stream);
    }
    let grown = resident_kib(world.server.id(), "VmRSS").saturating_sub(before);
    assert!(grown < 50_000, "{} connections took {grown} KiB", streams.len());
}

/// 190 MB of lists are asked for, and read slowly or not at all. A client that reads gets its own meanwhile,
/// another seller's also if it pauses.
#[tokio::test]
async fn clients_that_do_not_read_their_lists_take_little_memory() {
    let world = world_with(&[("RATE_LIMIT__DEFAULT", "100000")]).await;
    let ((seller, token), (other, others)) = (world.reader().await, world.reader().await);
    let url = format!("https://shop.example/{}", "a".repeat(2_000));
    let lines = (1..=200).map(|n| offer_line(n, json!({"url": url})));
    let lines = lines.collect::<Vec<_>>().join("\n");
    for seller in [&seller, &other] {
        world.import(seller, lines.clone()).await.expect(200);
    }
    let list = |token: &str, body: &str| {
        let (bearer, length) = (format!("Bearer {token}"), body.len().to_string());
        let headers = [
            ("user-agent", "App/1.0"),
            ("authorization", bearer.as_str()),
            ("connection", "close"),
            ("content-length", length.as_str()),
        ];
        request("GET", "/v1/offers?limit=200", &headers) + body
    };
    let mut pausing = asking(&world.server.base_url, &list(&others, "")).await;
    let read = pausing.read(&mut [0; 1024]).await.unwrap();
    let before = resident_kib(world.server.id(), "VmRSS");
    let (mut streams, mut begun) = (Vec::<TcpStream>::new(), 0_u32);
    for n in 0..400 {
        // The answer to a request with a body keeps that body.
        let body = if n % 2 == 0 { "" } else { "x" };
        let mut stream = asking(&world.server.base_url, &list(&token, body)).await;
        // While all others are being read, it is the one that is given up.
        begun += u32::from(stream.read(&mut [0; 1024]).await.unwrap() > 0);
        streams.push(stream);
        // Meanwhile the other one pauses for more than a second.
        let rounds = if n == 100 { 30 } else { usize::from(n % 10 == 0) };
        for _ in 0..rounds {
            for slow in &streams {
                // One that was given up has ended.
                drop(slow.try_read(&mut [0; 16_384]));
            }
            sleep(Duration::from_millis(50)).await;
        }
    }
    let grown = resident_kib(world.server.id(), "VmRSS").saturating_sub(before);
    assert!(grown < 160_000, "{begun} answers took {grown} KiB");
    let given_up = value_at(&world.server.backoffice_url, "answers_given_up_total").await;
    assert!(
        begun > 100 && f64::from(400 - begun) <= given_up,
        "{begun}, {given_up}"
    );
    let mut rest = Vec::new();
    pausing.read_to_end(&mut rest).await.unwrap();
    assert!(read + rest.len() > 200 * url.len(), "{}", rest.len());
    let all = world.get(&token, "/v1/offers?limit=200").await.expect(200);
    assert_eq!(all.json()["items"].as_array().unwrap().len(), 200);
}

#[tokio::test]
async fn pipelined_answers_without_bodies_that_are_not_read_take_little_memory() {
    let world = world().await;
    world.visit("/docs").await.expect(200);
    let before = resident_kib(world.server.id(), "VmRSS");
    // Redirects, and pages that the client has.
    for (path, headers) in [("/", &[][..]), ("/docs", &[("if-none-match", "*")])] {
        let many = request("GET", path, headers).repeat(10_000);
        let mut stream = asking(&world.server.base_url, "").await;
        for _ in 0..20 {
            if timeout(Duration::from_secs(1), stream.write_all(many.as_bytes()))
                .await
                .is_err()
            {
                // The server takes no more.
                break;
            }
        }
        let grown = resident_kib(world.server.id(), "VmRSS").saturating_sub(before);
        assert!(grown < 5_000, "{path}: {grown} KiB");
    }
}

/// Anybody may present them, as the client of an application that keeps no secret.
#[tokio::test]
async fn unknown_codes_and_tokens_begin_no_transaction() {
    let alone = |options: ServerOptions| options.set("SELLER_API__SERVER__WORKERS", "none");
    let (world, link) = World::over_a_link(PROGRAM, alone).await;
    let mut member = world.member().await;
    let app = world
        .public_partner(&world.seller().await, &["offers:read"])
        .await;
    let asking = world.asking(&app, "offers:read");
    let code = world.code(&mut member.browser, &asking).await;
    let pair = world.pair(&mut member.browser, &app, "offers:read").await;
    let other = |text: &str| {
        let last = if text.ends_with('A') { "B" } else { "A" };
        format!("{}{last}", &text[..text.len() - 1])
    };
    link.record();
    world
        .no_refresh(&app, &other(&pair.refresh), "invalid_grant")
        .await;
    world
        .no_exchange(&app, &asking, &other(&code), "invalid_grant")
        .await;
    for token in [&pair.refresh, &pair.access] {
        world.revoke(&app, &other(token)).await.expect(200);
    }
    let statements = link.recorded();
    assert!(statements.len() > 8, "{statements:?}");
    assert!(
        !statements.iter().any(|statement| statement.in_transaction),
        "{statements:?}"
    );
    world.revoke(&app, &pair.refresh).await.expect(200);
    assert!(link.recorded().iter().any(|statement| statement.in_transaction));
}
