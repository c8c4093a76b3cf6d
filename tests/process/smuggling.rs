//! Requests that two readers could read differently, on every listener: one request is answered once or its connection ends,
//! and nothing of a body is ever carried out.

mod bodies;
mod listeners;

use self::listeners::{INNER, listeners, post, refused};

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
async fn a_host_that_is_none_is_refused_and_the_connection_closed() {
    let listeners = listeners().await;
    let hosts = [
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
    ];
    let cases = hosts.map(|host| (host, format!("GET {{path}} HTTP/1.1\r\n{host}{{headers}}\r\n")));
    listeners
        .hold(&cases, |said| said.statuses == [400] && said.closes())
        .await;
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
async fn requests_that_come_together_are_answered_one_by_one() {
    let listeners = listeners().await;
    let ask = |method: &str| format!("{method} {{path}} HTTP/1.1\r\nhost: tests.example\r\n{{headers}}\r\n");
    let three = ask("GET").repeat(3);
    listeners
        .hold(&[("three", three)], |said| said.statuses == [200, 200, 200])
        .await;
}

#[tokio::test]
async fn the_last_answer_of_a_connection_says_so_and_ends_it() {
    let listeners = listeners().await;
    let usual = "host: tests.example\r\n{headers}";
    let upgrade = "connection: upgrade, http2-settings\r\nupgrade: h2c\r\nhttp2-settings: AAMAAABkAAQAAP__";
    let cases: Vec<_> = [
        ("close", "connection: close"),
        ("close among others", "connection: keep-alive, close"),
        ("h2c", upgrade),
        ("a websocket", "connection: upgrade\r\nupgrade: websocket"),
    ]
    .map(|(what, lines)| (what, format!("GET {{path}} HTTP/1.1\r\n{usual}{lines}\r\n\r\n")))
    .into();
    listeners
        .hold(&cases, |said| said.statuses == [200] && said.closes())
        .await;
    let long = format!(
        "GET /{} HTTP/1.1\r\nhost: tests.example\r\n\r\n",
        "a".repeat(9_000)
    );
    let wide = format!(
        "GET {{path}} HTTP/1.1\r\n{usual}x: {}\r\n\r\n",
        "a".repeat(20_000)
    );
    listeners
        .hold(&[("a long URL", long), ("large headers", wide)], |said| {
            said.statuses.len() == 1
        })
        .await;
}

#[tokio::test]
async fn http_1_0_is_kept_alive_where_it_asks_to_be() {
    let listeners = listeners().await;
    let kept = "GET {path} HTTP/1.0\r\n{headers}connection: keep-alive\r\n\r\n";
    let last = "GET {path} HTTP/1.0\r\n{headers}\r\n";
    listeners
        .hold(&[("two", format!("{kept}{last}"))], |said| {
            said.statuses == [200, 200]
        })
        .await;
}
