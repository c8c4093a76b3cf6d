//! Requests that two parsers could read differently, on every listener. Each gets one answer or its
//! connection ends, and no part of a body is executed as a request.

use std::time::Duration;

use blackbox::{Expect, Wire, World, request, request_with_body};
use testkit::TestWorker;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::PROGRAM;

/// A request inside a body, with an id that its answer and its line in the log would have.
const INNER: &str = "GET /smuggled HTTP/1.1\r\nhost: inner\r\nx-request-id: smuggled-request\r\n\r\n";

/// Requests and the expected result of each listener. The file explains its format at the top.
const CASES: &str = include_str!("smuggling.txt");

/// A listener, a path that it answers with 200, and the headers that the path needs.
struct Listener {
    base: String,
    path: &'static str,
    headers: String,
}

/// Everything that a connection sent before it ended.
#[derive(Debug)]
struct Said {
    statuses: Vec<u16>,
    ended: bool,
    text: String,
}

impl Said {
    fn closes(&self) -> bool {
        self.text.to_lowercase().contains("connection: close")
    }

    /// Whether a word of the table matches.
    fn is(&self, word: &str) -> bool {
        match word {
            "refused" => matches!(self.statuses[..], [] | [400]),
            "refused-last" => self.statuses == [400] && self.closes(),
            "once" => self.statuses.len() == 1,
            "once-or-never" => self.statuses.len() <= 1,
            "served" => self.statuses == [200],
            "served-last" => self.statuses == [200] && self.closes(),
            "served-twice" => self.statuses == [200; 2],
            "served-thrice" => self.statuses == [200; 3],
            "no-such-thing" => {
                matches!(self.statuses[..], [400 | 401 | 404]) && !self.text.contains("Bearer ps_")
            }
            _ => panic!("{word} says nothing"),
        }
    }
}

impl Listener {
    /// Sends bytes on a new connection and reads everything until it closes.
    async fn hears(&self, template: &str) -> Said {
        let bytes = template
            .replace("{path}", self.path)
            .replace("{headers}", &self.headers);
        let address = self.base.strip_prefix("http://").unwrap();
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(bytes.as_bytes()).await.unwrap();
        let mut heard = Vec::new();
        // If the server waits for the rest of a body, it answers after the body timeout. Idle connections end
        // later.
        let end = timeout(Duration::from_secs(10), stream.read_to_end(&mut heard)).await;
        let text = String::from_utf8_lossy(&heard).into_owned();
        let statuses = text.match_indices("HTTP/1.").map(|(at, _)| {
            let status = text.get(at + 9..at + 12).unwrap_or_default();
            status.parse().unwrap_or_default()
        });
        Said {
            statuses: statuses.filter(|status| *status != 100).collect(),
            ended: end.is_ok(),
            text,
        }
    }
}

/// The table's cases: the expected results and the request.
fn cases() -> impl Iterator<Item = (&'static str, String)> {
    let lines = CASES
        .lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty());
    lines.flat_map(|line| {
        let (word, rest) = line.split_once(' ').unwrap();
        let (shape, text) = rest.trim_start().split_once(' ').unwrap_or((rest.trim(), ""));
        let text = text
            .trim_start()
            .replace("{inner}", INNER)
            .replace("{n}", &INNER.len().to_string())
            .replace("{x}", &format!("{:x}", INNER.len()))
            .replace("{long}", &"a".repeat(20_000))
            .replace(
                "{post}",
                "POST {path} HTTP/1.1\r\nhost: tests.example\r\n{headers}",
            );
        let text = unescaped(&text);
        let post = |headers: &str, body: &str| {
            format!("POST {{path}} HTTP/1.1\r\nhost: tests.example\r\n{{headers}}{headers}\r\n{body}")
        };
        let chunked = "transfer-encoding: chunked\r\n";
        let usual = "host: tests.example\r\n{headers}";
        let requests = match shape {
            "raw" => vec![text],
            "line" => vec![format!("{text}\r\n{usual}\r\n{INNER}")],
            "target" => vec![format!("{text}\r\n{usual}\r\n")],
            "host" => vec![format!("GET {{path}} HTTP/1.1\r\n{text}{{headers}}\r\n")],
            "header" => vec![format!("GET {{path}} HTTP/1.1\r\n{text}\r\n{usual}\r\n{INNER}")],
            "last" => vec![format!("GET {{path}} HTTP/1.1\r\n{usual}{text}\r\n\r\n")],
            "disguise" => ["", &format!("content-length: {}\r\n", INNER.len() + 5)]
                .map(|length| post(&format!("{text}\r\n{length}"), &format!("0\r\n\r\n{INNER}")))
                .to_vec(),
            "length" => vec![post(&format!("content-length: {text}\r\n"), INNER)],
            "body" => vec![post(
                &format!("{text}\r\ncontent-length: {}\r\n", INNER.len()),
                INNER,
            )],
            "chunks" => vec![post(chunked, &format!("{text}{INNER}"))],
            "method" => {
                let whole = format!("{:x}\r\n{INNER}\r\n0\r\n\r\n", INNER.len());
                let length = format!("content-length: {}\r\n", INNER.len());
                [post(&length, INNER), post(chunked, &whole)]
                    .map(|request| request.replacen("POST", &text, 1))
                    .to_vec()
            }
            _ => panic!("{shape} is no shape"),
        };
        requests.into_iter().map(move |request| (word, request))
    })
}

/// Resolves the text's escapes, which are those of JSON.
fn unescaped(text: &str) -> String {
    let quoted = format!("\"{}\"", text.replace('"', "\\\"").replace("\r\n", "\\r\\n"));
    serde_json::from_str(&quoted).unwrap_or_else(|error| panic!("{text}: {error}"))
}

async fn world() -> World {
    World::with(PROGRAM, |options| {
        options
            .set("SELLER_API__SERVER__BODY_TIMEOUT", "700ms")
            .set("SELLER_API__SERVER__HEADER_TIMEOUT", "2s")
            .set("SELLER_API__SERVER__KEEP_ALIVE", "1s")
            .set("SELLER_API__RATE_LIMIT__DEFAULT", 1_000_000)
    })
    .await
}

#[tokio::test]
async fn a_request_is_answered_once_or_its_connection_ends_and_no_body_is_carried_out() {
    let world = world().await;
    let (_, token) = world.reader().await;
    let (worker, probes) = TestWorker::listening(&world.options, &world.database).await;
    let bearer = |token: &str| format!("user-agent: Tests/1.0\r\nauthorization: Bearer {token}\r\n");
    let listener = |base: &str, path, headers| Listener {
        base: base.to_owned(),
        path,
        headers,
    };
    let listeners = [
        listener(&world.server.base_url, "/v1/me", bearer(&token)),
        listener(
            &world.server.backoffice_url,
            "/healthz",
            bearer(&world.server.operator_token),
        ),
        listener(&probes, "/healthz", String::new()),
    ];
    let mut faults = Vec::new();
    for listener in listeners {
        let listener = std::sync::Arc::new(listener);
        let asked = cases().map(|(expected, request)| {
            let listener = listener.clone();
            tokio::spawn(async move { (expected, listener.hears(&request).await, request) })
        });
        for asked in asked.collect::<Vec<_>>() {
            let (expected, said, request) = asked.await.unwrap();
            let is_executed = said.text.contains("smuggled-request");
            if is_executed || !(said.ended && said.is(expected)) {
                faults.push(format!("{}, {expected}: {request:?}: {said:?}", listener.base));
            }
        }
    }
    assert!(faults.is_empty(), "{faults:#?}");
    // Outside of a body, such a request is answered and logged with its id.
    let control = INNER.replace("smuggled", "control");
    let answer = Wire::exchange(&world.server.base_url, control).await;
    assert_eq!(answer.must("x-trace-id"), "control-request");
    let log = world.server.log_with(|log| log.contains("control-request")).await;
    for log in [&log, &worker.log()] {
        assert!(!log.contains("smuggled-request"), "a body was executed: {log}");
    }
    assert!(!log.contains("\"ERROR\"") && !log.contains("actix_http"), "{log}");
}

/// A `POST` with a chunked body and this bearer token.
fn chunked(path: &str, token: &str) -> String {
    let bearer = format!("Bearer {token}");
    let headers = [
        ("user-agent", "App/1.0"),
        ("authorization", bearer.as_str()),
        ("content-type", "application/json"),
        ("transfer-encoding", "chunked"),
    ];
    request("POST", path, &headers)
}

#[tokio::test]
async fn a_chunk_that_breaks_while_the_body_is_awaited_is_answered() {
    let world = World::start(PROGRAM).await;
    let token = world
        .personal_token(&world.seller().await, &["settings:write"])
        .await
        .token;
    let looked_up = "select count(*) from (select from rate_windows limit 1) any_window";
    let mut wire = Wire::connect(&world.server.base_url).await;
    wire.send(chunked("/v1/webhooks", &token) + "1\r\na\r\n").await;
    // After the look-up of the token, the server waits for the body.
    world.until_count("the look-up", looked_up, &[], 1).await;
    wire.send("ZZ\r\n").await;
    let answer = wire.answer().await.expect("an answer");
    answer.refused(400, "validation_error");
    assert_eq!(answer.must("connection").to_lowercase(), "close");
    assert!(wire.is_closed().await);
}

#[tokio::test]
async fn a_head_and_its_body_may_come_in_any_pieces() {
    let world = world().await;
    let application = world.application(&world.seller().await, &["offers:read"]).await;
    let form = format!(
        "grant_type=client_credentials&client_id={}&client_secret={}",
        application.client_id, application.client_secret
    );
    let form_type = ("content-type", "application/x-www-form-urlencoded");
    let plain = request_with_body("POST", "/oauth/token", &[form_type], &form);
    let (first, rest) = form.split_at(20);
    let chunks = format!(
        "14;x\r\n{first}\r\n{:x}\r\n{rest}\r\n0\r\nx: y\r\n\r\n",
        rest.len()
    );
    let framing = ("transfer-encoding", "chunked");
    let chunked = request("POST", "/oauth/token", &[form_type, framing]) + &chunks;
    for (whole, piece) in [
        (&plain, 1),
        (&plain, 7),
        (&plain, 4_000),
        (&chunked, 1),
        (&chunked, 11),
        (&chunked, 4_000),
    ] {
        let mut wire = Wire::connect(&world.server.base_url).await;
        // Sent twice, so that the start of the second request arrives with the end of the first.
        for piece in whole.repeat(2).as_bytes().chunks(piece) {
            assert!(wire.send(piece).await);
        }
        for _ in 0..2 {
            let answer = wire.answer().await.expect("an answer").expect(200);
            assert!(answer.json()["access_token"].is_string());
        }
    }
}
