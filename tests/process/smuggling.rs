//! Requests that two readers could read differently, on every listener: one request is answered once or its connection ends,
//! and nothing of a body is ever carried out.

use std::time::Duration;

use blackbox::{World, request};
use testkit::TestWorker;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

use crate::PROGRAM;

/// A listener, a path that it answers with 200, and the headers that this needs.
struct Listener {
    name: &'static str,
    base: String,
    path: &'static str,
    headers: String,
}

/// What a connection said before it ended, or before nothing more came.
#[derive(Debug)]
struct Said {
    statuses: Vec<u16>,
    ended: bool,
    text: String,
}

/// What lies where a body is; it has a path that nobody else asks for.
const INNER: &str = "GET /smuggled HTTP/1.1\r\nhost: inner\r\n\r\n";

struct Listeners {
    world: World,
    /// Ends with the value.
    _worker: TestWorker,
    all: Vec<Listener>,
}

async fn listeners() -> Listeners {
    let world = World::with(PROGRAM, |options| {
        options
            .set("SELLER_API__SERVER__BODY_TIMEOUT", "700ms")
            .set("SELLER_API__SERVER__HEADER_TIMEOUT", "2s")
            .set("SELLER_API__SERVER__KEEP_ALIVE", "1s")
            .set("SELLER_API__RATE_LIMIT__DEFAULT", 1_000_000)
    })
    .await;
    let (_, token) = world.reader().await;
    let (worker, probes) = TestWorker::listening(&world.options, &world.database).await;
    let bearer = |token: &str| format!("user-agent: Tests/1.0\r\nauthorization: Bearer {token}\r\n");
    let all = vec![
        Listener {
            name: "api",
            base: world.server.base_url.clone(),
            path: "/v1/me",
            headers: bearer(&token),
        },
        Listener {
            name: "back office",
            base: world.server.backoffice_url.clone(),
            path: "/healthz",
            headers: bearer(&world.server.operator_token),
        },
        Listener {
            name: "probes",
            base: probes,
            path: "/healthz",
            headers: String::new(),
        },
    ];
    Listeners {
        world,
        _worker: worker,
        all,
    }
}

impl Listener {
    /// `{path}` and `{headers}` filled in.
    fn fill(&self, template: &str) -> String {
        template
            .replace("{path}", self.path)
            .replace("{headers}", &self.headers)
    }

    /// Sends bytes on a connection of their own and reads all that comes of it.
    async fn hears(&self, bytes: &[u8]) -> Said {
        let address = self.base.strip_prefix("http://").unwrap();
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(bytes).await.unwrap();
        let (mut heard, mut ended) = (Vec::new(), false);
        let mut piece = vec![0; 64 * 1024];
        // An answer that may be waiting for the rest of a body comes after the body's time; idle connections end later.
        while !ended {
            match timeout(Duration::from_secs(10), stream.read(&mut piece)).await {
                Ok(Ok(0) | Err(_)) => ended = true,
                Ok(Ok(read)) => heard.extend_from_slice(&piece[..read]),
                Err(_) => break,
            }
        }
        let text = String::from_utf8_lossy(&heard).into_owned();
        let statuses = text.match_indices("HTTP/1.").map(|(at, _)| {
            let status = text.get(at + 9..at + 12).unwrap_or_default();
            status.parse().unwrap_or_default()
        });
        Said {
            statuses: statuses.filter(|status| *status != 100).collect(),
            ended,
            text,
        }
    }
}

impl Listeners {
    /// Has each listener hear each of these, and complains of what does not hold.
    async fn hold(&self, cases: &[(&str, String)], holds: impl Fn(&Said) -> bool) {
        let mut faults = Vec::new();
        for listener in &self.all {
            let asked = cases.iter().map(|(what, template)| async move {
                let bytes = listener.fill(template);
                (*what, listener.hears(bytes.as_bytes()).await)
            });
            let heard = all_of(asked.collect()).await;
            for (what, said) in heard {
                if !(said.ended && holds(&said)) {
                    faults.push(format!("{}, {what}: {said:?}", listener.name));
                }
            }
        }
        assert!(faults.is_empty(), "{faults:#?}");
    }

    /// No request was carried out that lay in a body: none was logged.
    fn nothing_was_smuggled(&self) {
        let log = self.world.server.log();
        assert!(!log.contains("smuggled"), "{log}");
    }
}

/// All of them at once.
async fn all_of<F: Future>(futures: Vec<F>) -> Vec<F::Output> {
    let mut pending: Vec<_> = futures.into_iter().map(Box::pin).map(Some).collect();
    let mut done: Vec<Option<F::Output>> = pending.iter().map(|_| None).collect();
    std::future::poll_fn(|cx| {
        for (place, future) in pending.iter_mut().enumerate() {
            let Some(running) = future else { continue };
            if let std::task::Poll::Ready(output) = running.as_mut().poll(cx) {
                done[place] = Some(output);
                *future = None;
            }
        }
        if pending.iter().all(Option::is_none) {
            std::task::Poll::Ready(())
        } else {
            std::task::Poll::Pending
        }
    })
    .await;
    done.into_iter().flatten().collect()
}

/// One answer of 400, without more, or the connection's end without one.
fn refused(said: &Said) -> bool {
    matches!(said.statuses[..], [] | [400])
}

/// A POST with these lines of a head behind the usual ones, and this body.
fn post(lines: &str, body: &str) -> String {
    format!("POST {{path}} HTTP/1.1\r\nhost: tests.example\r\n{{headers}}{lines}\r\n{body}")
}

#[tokio::test]
async fn a_length_beside_chunks_or_chunks_in_disguise_are_refused() {
    let listeners = listeners().await;
    let (end, length) = ("0\r\n\r\n", INNER.len() + 5);
    let mut cases = vec![
        (
            "CL.TE",
            post(
                "content-length: 6\r\ntransfer-encoding: chunked\r\n",
                &format!("{end}{INNER}"),
            ),
        ),
        (
            "TE.CL",
            post(
                "transfer-encoding: chunked\r\ncontent-length: 4\r\n",
                &format!("{:x}\r\n{INNER}\r\n{end}", INNER.len()),
            ),
        ),
        (
            "CL.0",
            post(
                "content-length: 0\r\ntransfer-encoding: chunked\r\n",
                &format!("{end}{INNER}"),
            ),
        ),
    ];
    for disguise in [
        "transfer-encoding: xchunked",
        "transfer-encoding: identity",
        "transfer-encoding: chunked, identity",
        "transfer-encoding: identity, chunked",
        "transfer-encoding: gzip, chunked",
        "transfer-encoding: chunked, chunked",
        "transfer-encoding: \"chunked\"",
        "transfer-encoding: chunked;q=1",
        "transfer-encoding: \u{b}chunked",
        "transfer-encoding:",
        "transfer-encoding: chunked\0",
        "transfer-encoding : chunked",
        "transfer-encoding\t: chunked",
        "transfer-encoding\0: chunked",
        " transfer-encoding: chunked",
        "transfer-encoding:\r\n chunked",
        "x-folded: a\r\n transfer-encoding: chunked",
        "x-folded: a\r\n\ttransfer-encoding: chunked",
        "x: y\rtransfer-encoding: chunked",
        "x: y\0transfer-encoding: chunked",
        "transfer-encoding: chunked\r\ntransfer-encoding: chunked",
        "transfer-encoding: chunked\r\ntransfer-encoding: identity",
        "transfer-encoding: identity\r\ntransfer-encoding: chunked",
        ": chunked",
        "transfer\u{2010}encoding: chunked",
    ] {
        cases.push((
            disguise,
            post(&format!("{disguise}\r\n"), &format!("{end}{INNER}")),
        ));
        let both = format!("{disguise}\r\ncontent-length: {length}\r\n");
        cases.push((disguise, post(&both, &format!("{end}{INNER}"))));
    }
    listeners.hold(&cases, refused).await;
    listeners.nothing_was_smuggled();
}

#[tokio::test]
async fn a_length_that_is_no_number_or_said_twice_is_refused() {
    let listeners = listeners().await;
    let n = INNER.len();
    let lengths = [
        format!("+{n}"),
        format!("-{n}"),
        "-0".to_owned(),
        format!("{n},{n}"),
        format!("{n}, {n}"),
        format!("0, {n}"),
        format!("{n} 0"),
        format!("\"{n}\""),
        format!("0x{n:x}"),
        format!("{n}.0"),
        "1e1".to_owned(),
        String::new(),
        "18446744073709551616".to_owned(),
        "9".repeat(40),
        format!("\u{b}{n}"),
        format!("{n}\0"),
        format!("{n}\u{a0}"),
        format!("{n}\r\ncontent-length: {n}"),
        format!("0\r\ncontent-length: {n}"),
        format!("{n}\r\nContent-Length: 0"),
        format!("\r\n {n}"),
        format!("{n};a"),
        format!("{n}_0"),
        format!("٣{n}"),
    ];
    let cases: Vec<_> = lengths
        .iter()
        .map(|length| {
            (
                length.as_str(),
                post(&format!("content-length: {length}\r\n"), INNER),
            )
        })
        .collect();
    listeners.hold(&cases, refused).await;
    listeners.nothing_was_smuggled();
}

#[tokio::test]
async fn a_body_is_as_long_as_it_says_and_never_a_request() {
    let listeners = listeners().await;
    let n = INNER.len();
    let chunk = format!("{n:x}\r\n{INNER}\r\n0\r\n\r\n");
    let mut cases = vec![
        ("a length", post(&format!("content-length: {n}\r\n"), INNER)),
        (
            "zeros before it",
            post(&format!("content-length: 000{n}\r\n"), INNER),
        ),
        (
            "spaces around it",
            post(&format!("content-length: \t {n} \r\n"), INNER),
        ),
        (
            "a length that names itself to be dropped",
            post(
                &format!("connection: content-length\r\ncontent-length: {n}\r\n"),
                INNER,
            ),
        ),
        ("chunks", post("transfer-encoding: chunked\r\n", &chunk)),
        (
            "chunks in capitals",
            post("Transfer-Encoding: CHUNKED\r\n", &chunk),
        ),
        (
            "a chunk's extension",
            post(
                "transfer-encoding: chunked\r\n",
                &chunk.replacen("\r\n", ";a=\"b\"\r\n", 1),
            ),
        ),
        (
            "a trailer",
            post(
                "transfer-encoding: chunked\r\n",
                &chunk.replace("0\r\n\r\n", "0\r\ncontent-length: 9\r\nx: GET / HTTP/1.1\r\n\r\n"),
            ),
        ),
        (
            "expecting leave",
            post(&format!("expect: 100-continue\r\ncontent-length: {n}\r\n"), INNER),
        ),
        (
            "expecting something else",
            post(&format!("expect: 200-ok\r\ncontent-length: {n}\r\n"), INNER),
        ),
    ];
    for method in ["GET", "HEAD", "DELETE", "OPTIONS", "TRACE", "PATCH"] {
        let length = post(&format!("content-length: {n}\r\n"), INNER);
        cases.push((method, length.replacen("POST", method, 1)));
        let chunks = post("transfer-encoding: chunked\r\n", &chunk);
        cases.push((method, chunks.replacen("POST", method, 1)));
    }
    for (name, value) in [
        ("upgrade", "h2c"),
        ("upgrade", "websocket"),
        ("x-http-method-override", "GET"),
        ("te", "trailers"),
    ] {
        cases.push((
            value,
            post(
                &format!("connection: upgrade\r\n{name}: {value}\r\ncontent-length: {n}\r\n"),
                INNER,
            ),
        ));
    }
    listeners.hold(&cases, |said| said.statuses.len() == 1).await;
    listeners.nothing_was_smuggled();
}

#[tokio::test]
async fn a_broken_chunk_ends_its_connection() {
    let listeners = listeners().await;
    let bodies = [
        " 1\r\na\r\n0\r\n\r\n",
        "+1\r\na\r\n0\r\n\r\n",
        "-1\r\na\r\n0\r\n\r\n",
        "0x1\r\na\r\n0\r\n\r\n",
        "1\na\r\n0\r\n\r\n",
        "1\r\r\na\r\n0\r\n\r\n",
        "1;a\n\r\na\r\n0\r\n\r\n",
        "1;a\0\r\na\r\n0\r\n\r\n",
        "1\r\nab\r\n0\r\n\r\n",
        "1\r\na\n0\r\n\r\n",
        "10000000000000001\r\na\r\n0\r\n\r\n",
        "1\r\na\r\n0\n\n",
        "1\r\na\r\n0\r\n\n",
        "0\r\nx: 1\n\n",
        "0\r\nx: 1\n\r\n",
        "0\r\nx: \0\r\n\r\n",
        "\r\n0\r\n\r\n",
        "1\r\na0\r\n\r\n",
    ];
    let cases: Vec<_> = bodies
        .iter()
        .map(|body| {
            (
                *body,
                post("transfer-encoding: chunked\r\n", &format!("{body}{INNER}")),
            )
        })
        .collect();
    // Who refuses the request without its body may have said so before the chunk was read.
    listeners.hold(&cases, |said| said.statuses.len() <= 1).await;
    listeners.nothing_was_smuggled();
}

#[tokio::test]
async fn a_head_that_is_none_is_refused_with_all_behind_it() {
    let listeners = listeners().await;
    let usual = "host: tests.example\r\n{headers}\r\n";
    let mut cases: Vec<(&str, String)> = Vec::new();
    for line in [
        "GET {path}",
        "GET  {path} HTTP/1.1",
        "GET\t{path} HTTP/1.1",
        "GET {path} HTTP/1.1 ",
        "GET {path} x HTTP/1.1",
        "GET {path} HTTP/0.9",
        "GET {path} HTTP/1.2",
        "GET {path} HTTP/1.10",
        "GET {path} HTTP/2.0",
        "GET {path} HTTP/2",
        "GET {path} http/1.1",
        "GET {path} HTTP/01.1",
        "G(T {path} HTTP/1.1",
        " GET {path} HTTP/1.1",
        "GET {path}\0 HTTP/1.1",
        "GET {path}\rx HTTP/1.1",
        "GET {path} HTTP/1.1\r",
        "\0GET {path} HTTP/1.1",
        "PRI * HTTP/2.0",
    ] {
        cases.push((line, format!("{line}\r\n{usual}{INNER}")));
    }
    for hosts in [
        "",
        "host: a\r\nhost: b\r\n",
        "host: a\r\nhost: a\r\n",
        "host : a\r\n",
        "host: a b\r\n",
        "host: a/b\r\n",
        "host: u@a\r\n",
        "host: a, b\r\n",
        "host: a:b\r\n",
        "host: a:80:80\r\n",
        "host: [::1\r\n",
        "host: a?b\r\n",
        "host: a#b\r\n",
        "host: a\\b\r\n",
        "host: <a>\r\n",
    ] {
        cases.push((
            hosts,
            format!("GET {{path}} HTTP/1.1\r\n{hosts}{{headers}}\r\n{INNER}"),
        ));
    }
    for header in [
        "x y: 1",
        "x\0: 1",
        "x: \0",
        "x: a\rb",
        "(x): 1",
        "no colon",
        "x\t: 1",
        "x: 1\r\n y",
    ] {
        cases.push((
            header,
            format!("GET {{path}} HTTP/1.1\r\n{header}\r\n{usual}{INNER}"),
        ));
    }
    cases.push((
        "chunks in HTTP/1.0",
        post("transfer-encoding: chunked\r\n", &format!("0\r\n\r\n{INNER}"))
            .replacen("HTTP/1.1", "HTTP/1.0", 1),
    ));
    cases.push((
        "a POST in HTTP/1.0 without a length",
        post("", INNER).replacen("HTTP/1.1", "HTTP/1.0", 1),
    ));
    listeners.hold(&cases, refused).await;
    listeners.nothing_was_smuggled();
}

#[tokio::test]
async fn whatever_the_target_is_the_host_chooses_nothing() {
    let listeners = listeners().await;
    let usual = "host: tests.example\r\n{headers}\r\n";
    let cases: Vec<_> = [
        ("absolute", "GET http://tests.example{path} HTTP/1.1"),
        (
            "absolute, another host",
            "GET http://other.example{path} HTTP/1.1",
        ),
        ("an empty line before it", "\r\n\r\nGET {path} HTTP/1.1"),
    ]
    .map(|(what, line)| (what, format!("{line}\r\n{usual}")))
    .into();
    listeners.hold(&cases, |said| said.statuses == [200]).await;
    let cases: Vec<_> = [
        ("authority", "GET tests.example:80 HTTP/1.1"),
        ("asterisk", "OPTIONS * HTTP/1.1"),
        ("no slash", "GET healthz HTTP/1.1"),
        ("two slashes", "GET /{path} HTTP/1.1"),
        ("dots", "GET /x/..{path} HTTP/1.1"),
        ("encoded", "GET %2Fhealthz HTTP/1.1"),
        ("TRACE", "TRACE {path} HTTP/1.1"),
        ("a tunnel", "CONNECT tests.example:443 HTTP/1.1"),
    ]
    .map(|(what, line)| (what, format!("{line}\r\n{usual}")))
    .into();
    listeners
        .hold(&cases, |said| {
            matches!(said.statuses[..], [400 | 401 | 404]) && !said.text.contains("Bearer ps_")
        })
        .await;
}

#[tokio::test]
async fn requests_that_come_together_are_answered_each_by_its_own_kind() {
    let listeners = listeners().await;
    let ask = |method: &str| format!("{method} {{path}} HTTP/1.1\r\nhost: tests.example\r\n{{headers}}\r\n");
    let three = ask("GET").repeat(3);
    listeners
        .hold(&[("three", three)], |said| said.statuses == [200, 200, 200])
        .await;
    // Each answer's own length tells where the next begins.
    let bodies = |said: &Said| {
        let mut rest = said.text.as_str();
        let mut bodies = Vec::new();
        while let Some((head, after)) = rest.split_once("\r\n\r\n") {
            let next = after.find("HTTP/1.1 ").unwrap_or(after.len());
            let announced = head
                .lines()
                .find_map(|line| line.strip_prefix("content-length: "));
            bodies.push((announced.map_or(0, |length| length.parse().unwrap()), next));
            rest = &after[next..];
        }
        bodies
    };
    let whole = |(announced, sent): &(usize, usize)| announced == sent;
    let cases = [
        ("HEAD, then GET", ask("HEAD") + &ask("GET")),
        (
            "HEAD, then a body",
            ask("HEAD") + &post("content-length: 2\r\n", "{}"),
        ),
    ];
    listeners
        .hold(&cases, |said| {
            let bodies = bodies(said);
            bodies.len() == 2 && bodies[0].0 > 0 && bodies[0].1 == 0 && whole(&bodies[1])
        })
        .await;
    listeners
        .hold(&[("GET, then HEAD", ask("GET") + &ask("HEAD"))], |said| {
            let bodies = bodies(said);
            bodies.len() == 2 && whole(&bodies[0]) && bodies[1].0 > 0 && bodies[1].1 == 0
        })
        .await;
}

#[tokio::test]
async fn nothing_behind_the_last_answer_of_a_connection_is_carried_out() {
    let listeners = listeners().await;
    let usual = "host: tests.example\r\n{headers}";
    let cases: Vec<_> = [
        ("close", format!("GET {{path}} HTTP/1.1\r\n{usual}connection: close\r\n\r\n{INNER}")),
        ("close among others", format!("GET {{path}} HTTP/1.1\r\n{usual}connection: keep-alive, close\r\n\r\n{INNER}")),
        ("h2c", format!("GET {{path}} HTTP/1.1\r\n{usual}connection: upgrade, http2-settings\r\nupgrade: h2c\r\nhttp2-settings: AAMAAABkAAQAAP__\r\n\r\n{INNER}")),
        ("a websocket", format!("GET {{path}} HTTP/1.1\r\n{usual}connection: upgrade\r\nupgrade: websocket\r\n\r\n{INNER}")),
    ]
    .into();
    listeners
        .hold(&cases, |said| {
            said.statuses == [200] && said.text.to_lowercase().contains("connection: close")
        })
        .await;
    // Its version says it.
    let old = format!("GET {{path}} HTTP/1.0\r\n{usual}\r\n{INNER}");
    listeners
        .hold(&[("HTTP/1.0", old)], |said| said.statuses == [200])
        .await;
    let long = format!(
        "GET /{} HTTP/1.1\r\nhost: tests.example\r\n\r\n{INNER}",
        "a".repeat(9_000)
    );
    let wide = format!(
        "GET {{path}} HTTP/1.1\r\n{usual}x: {}\r\n\r\n{INNER}",
        "a".repeat(20_000)
    );
    listeners
        .hold(&[("a long URL", long), ("large headers", wide)], |said| {
            said.statuses.len() == 1
        })
        .await;
    listeners.nothing_was_smuggled();
}

#[tokio::test]
async fn http_1_0_is_kept_alive_where_it_asks_to_be() {
    let listeners = listeners().await;
    let kept = "GET {path} HTTP/1.0\r\n{headers}connection: keep-alive\r\n\r\n";
    let last = "GET {path} HTTP/1.0\r\n{headers}\r\n";
    listeners
        .hold(&[("two", format!("{kept}{last}{last}"))], |said| {
            said.statuses == [200, 200]
        })
        .await;
}

#[tokio::test]
async fn a_head_and_its_body_may_come_in_any_pieces() {
    let listeners = listeners().await;
    let world = &listeners.world;
    let seller = world.seller().await;
    let application = world.application(&seller, &["offers:read"]).await;
    let form = format!(
        "grant_type=client_credentials&client_id={}&client_secret={}",
        application.client_id, application.client_secret
    );
    let length = form.len().to_string();
    let form_type = ("content-type", "application/x-www-form-urlencoded");
    let plain = request("POST", "/oauth/token", &[form_type, ("content-length", &length)]) + &form;
    let chunked = request(
        "POST",
        "/oauth/token",
        &[form_type, ("transfer-encoding", "chunked")],
    ) + &format!(
        "{:x};x\r\n{}\r\n{:x}\r\n{}\r\n0\r\nx: y\r\n\r\n",
        20,
        &form[..20],
        form.len() - 20,
        &form[20..]
    );
    for (whole, piece) in [
        (&plain, 1),
        (&plain, 7),
        (&plain, 4_000),
        (&chunked, 1),
        (&chunked, 11),
        (&chunked, 4_000),
    ] {
        let mut wire = blackbox::Wire::connect(&world.server.base_url).await;
        // Twice, so that the next request's beginning comes along with the end of the one before it.
        for piece in whole.repeat(2).as_bytes().chunks(piece) {
            assert!(wire.send(piece).await);
            if piece.len() < 4_000 {
                tokio::task::yield_now().await;
            }
        }
        for _ in 0..2 {
            let answer = wire.answer().await.expect("an answer").expect(200);
            assert!(answer.json()["access_token"].is_string());
        }
    }
}
