//! Requests that two readers could read differently, on every listener: one request is answered once or its connection ends,
//! and nothing of a body is ever carried out.

mod bodies;
mod listeners;

use self::listeners::{INNER, Said, listeners, post, refused};

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
