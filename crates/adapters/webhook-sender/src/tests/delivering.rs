//! The bytes of requests, the outcome of each answer, and the metrics.

use std::sync::{Arc, Mutex};

use metrics_exporter_prometheus::PrometheusBuilder;
use testkit::HttpServer;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use webhooks::{AddressPolicy, Outcome};

use super::support::{BODY, OK, answering, clock, delivers, outcome, sender, settings, stalling_after};
use crate::{HttpSender, SenderSettings, SettingsError};

#[tokio::test]
async fn a_request_is_exactly_that_of_the_contract() {
    let requests = Arc::new(Mutex::new(None));
    let recorded = Arc::clone(&requests);
    let receiver = HttpServer::start(move |request| {
        *recorded.lock().unwrap() = Some(request);
        async { Some(OK.to_vec()) }
    })
    .await;
    let target = "/a%2Fb/~c;d?x=1&y=%00";
    delivers(&sender(), &format!("{}{target}", receiver.url()), 1).await;
    let mut request = requests.lock().unwrap().take().unwrap();
    assert_eq!(request.request_line, format!("POST {target} HTTP/1.1"));
    request.headers.sort();
    // printf %s "$body" | openssl dgst -sha256 -hmac ps_wh_BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc, and
    // printf %s "$id.$timestamp.$body" | … -binary | base64
    let signature = "sha256=e11de9749e05f61e5b875aa658b72a010e89e6f4965c4e3717c41c0a65494fe8";
    let standard = "v1,Zo5zoIhl8OZiWfYT1X+ZHVo7mlUVvVJwzXjlymnRWWc=";
    let (length, host) = (BODY.len().to_string(), receiver.address.to_string());
    let expected = [
        ("content-length", length.as_str()),
        ("content-type", "application/json"),
        ("host", &host),
        (
            "user-agent",
            "shop-webhooks/1.0 (+https://docs.example.com/webhooks)",
        ),
        ("webhook-id", "00000000-0000-0000-0000-000000000007"),
        ("webhook-signature", standard),
        ("webhook-timestamp", "1790000000"),
        ("x-delivery-id", "00000000-0000-0000-0000-000000000007"),
        ("x-event", "order.paid"),
        ("x-signature", signature),
        ("x-webhook-id", "00000000-0000-0000-0000-000000000003"),
    ];
    let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(request.headers, expected);
    assert_eq!(request.body, BODY);
}

#[tokio::test]
async fn header_names_are_spelled_as_documented() {
    let head = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&head);
    let receiver = HttpServer::start_raw(move |mut stream| {
        let seen = Arc::clone(&seen);
        async move {
            let mut bytes = Vec::new();
            while !bytes.ends_with(BODY) {
                stream.read_buf(&mut bytes).await.unwrap();
            }
            *seen.lock().unwrap() = bytes;
            stream.write_all(OK).await.unwrap();
        }
    })
    .await;
    delivers(&sender(), &receiver.url(), 1).await;
    let head = String::from_utf8(head.lock().unwrap().clone()).unwrap();
    for name in [
        "Content-Type",
        "User-Agent",
        "X-Delivery-Id",
        "X-Event",
        "X-Signature",
        "X-Webhook-Id",
    ] {
        assert!(head.contains(&format!("\r\n{name}: ")), "{head}");
    }
}

#[tokio::test]
async fn the_status_is_reported_unchanged_and_redirects_are_not_followed() {
    let elsewhere = answering(OK).await;
    let redirect = |status| {
        let location = elsewhere.url();
        format!("HTTP/1.1 {status} x\r\nlocation: {location}\r\ncontent-length: 0\r\n\r\n")
    };
    for (answer, status) in [
        ("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", 200),
        ("HTTP/1.1 204 \r\n\r\n", 204),
        ("HTTP/1.0 202 Fine\r\n\r\nanything", 202),
        ("HTTP/1.1 299 x\r\ncontent-length: 0\r\n\r\n", 299),
        (
            "HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n",
            101,
        ),
        (&redirect(301), 301),
        (&redirect(302), 302),
        (&redirect(303), 303),
        (&redirect(307), 307),
        (&redirect(308), 308),
        ("HTTP/1.1 304 Not Modified\r\n\r\n", 304),
        ("HTTP/1.1 410 Gone\r\ncontent-length: 0\r\n\r\n", 410),
        ("HTTP/1.1 503 Later\r\ncontent-length: 0\r\n\r\n", 503),
        ("HTTP/1.1 999 ?\r\ncontent-length: 0\r\n\r\n", 999),
        // Nothing is decompressed, so an invalid encoding does not matter.
        (
            "HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 3\r\n\r\nzip",
            200,
        ),
    ] {
        let receiver = stalling_after(answer.as_bytes()).await;
        let outcome = outcome(&sender(), &receiver.url()).await;
        assert_eq!(outcome, Outcome::Answered(status), "{answer}");
    }
    assert_eq!(elsewhere.connections(), 0);
}

#[test]
fn settings_that_cannot_work_are_refused() {
    let refused = |change: fn(&mut SenderSettings)| {
        let mut settings = settings(AddressPolicy::Public);
        change(&mut settings);
        HttpSender::new(&settings, clock()).err()
    };
    let name = refused(|settings| settings.service_name = "a\r\nb".to_owned());
    let roots = refused(|settings| settings.extra_roots = Some("no certificate".to_owned()));
    assert!(matches!(name, Some(SettingsError::UserAgent)));
    assert!(matches!(roots, Some(SettingsError::Tls(_))));
}

#[tokio::test]
async fn attempts_are_counted_by_outcome_and_idle_connections_reported() {
    let recorder = PrometheusBuilder::new().build_recorder();
    let _recording = metrics::set_default_local_recorder(&recorder);
    let sender = sender();
    let fine = answering(OK).await.url();
    let busy = answering(*b"HTTP/1.1 503 x\r\nconnection: close\r\n\r\n")
        .await
        .url();
    for url in [&fine, &fine, &busy, "http://[::ffff:0:0]:1/"] {
        outcome(&sender, url).await;
    }
    let report = recorder.handle().render();
    for line in [
        "webhook_attempt_duration_seconds_count 4",
        "webhook_attempts_total{outcome=\"2xx\"} 2",
        "webhook_attempts_total{outcome=\"5xx\"} 1",
        "webhook_attempts_total{outcome=\"refused\"} 1",
        "webhook_idle_connections 1",
    ] {
        assert!(
            report.lines().any(|reported| reported == line),
            "{line}\n{report}"
        );
    }
}
