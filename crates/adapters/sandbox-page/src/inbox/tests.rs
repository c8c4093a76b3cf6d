//! Verification step by step, and answers over real connections.

use std::num::NonZeroU32;
use std::pin::pin;
use std::time::Instant;

use actix_web::http::header::{HeaderName, HeaderValue};
use actix_web::{App, HttpServer};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use web::front::Front;
use web::{ServiceSettings, TrustedProxies};

use tokio::runtime::Handle;

use super::*;

const BODY: &[u8] = br#"{"id":"x","event":"order.paid"}"#;
const ID: &str = "0197a5d2-77aa-7c10-9d2e-3f4a5b6c7d8e";
const SLOW: Duration = Duration::from_secs(3);
const SENT_AT: i64 = 1_795_183_500;

fn secret(n: u8) -> WebhookSecret {
    WebhookSecret::from_random(&[n; 32])
}

/// The headers of a delivery that these secrets sign, the first one for `X-Signature`.
fn headers(secrets: &[WebhookSecret]) -> HeaderMap {
    let standard = |secret| standard_signature(secret, ID.parse().unwrap(), SENT_AT, BODY);
    let signatures: Vec<_> = secrets.iter().map(standard).collect();
    let mut headers = HeaderMap::new();
    for (name, value) in [
        ("x-event", "order.paid".to_owned()),
        ("x-signature", signature(&secrets[0], BODY)),
        ("webhook-id", ID.to_owned()),
        ("webhook-timestamp", SENT_AT.to_string()),
        ("webhook-signature", signatures.join(" ")),
    ] {
        headers.insert(
            HeaderName::from_static(name),
            HeaderValue::from_str(&value).unwrap(),
        );
    }
    headers
}

/// The steps that fail, some seconds after the delivery was sent.
fn failing(secret: &WebhookSecret, headers: &HeaderMap, body: &[u8], later: i64) -> Vec<usize> {
    let now = DateTime::from_timestamp(SENT_AT + later, 0).unwrap();
    let checks = verify(secret, headers, body, now).into_iter().enumerate();
    checks.filter(|(_, (holds, _))| !holds).map(|(n, _)| n).collect()
}

#[test]
fn each_step_of_a_verification_finds_its_fault() {
    let (ours, other) = (secret(1), secret(2));
    let good = headers(std::slice::from_ref(&ours));
    assert!(failing(&ours, &good, BODY, 300).is_empty());
    assert_eq!(failing(&ours, &good, b"{}", 0), [2, 5]);
    assert_eq!(failing(&ours, &good, BODY, 301), [4]);
    assert_eq!(failing(&ours, &good, BODY, -301), [4]);
    assert_eq!(failing(&other, &good, BODY, 0), [2, 5]);
    assert_eq!(failing(&ours, &HeaderMap::new(), BODY, 0), [0, 1, 2, 3, 4, 5]);
    // In a rotation the old secret makes `X-Signature`, and either makes a signature of its own.
    let rotated = headers(&[ours.clone(), other.clone()]);
    assert!(failing(&ours, &rotated, BODY, 0).is_empty());
    assert_eq!(failing(&other, &rotated, BODY, 0), [2]);
    let now = DateTime::from_timestamp(SENT_AT, 0).unwrap();
    let second = &verify(&other, &rotated, BODY, now)[5].1;
    assert!(second.contains(" number 2 of 2: "), "{second}");
}

#[test]
fn an_inbox_keeps_the_latest_and_the_beginning_of_a_body() {
    let (inbox, body) = (Inbox::default(), vec![b'a'; 4 * 1024 + 1]);
    let headers = headers(&[secret(1)]);
    for _ in 0..=KEPT {
        let received = inbox.add(0, &headers, &body, DateTime::UNIX_EPOCH);
        assert!(received.behaviour == Behaviour::Accept && !received.is_verified);
    }
    inbox.with(0, |receiver| {
        assert_eq!(receiver.received.len(), KEPT);
        let latest = &receiver.received[0];
        assert_eq!(latest.event, "order.paid");
        assert!(latest.content.contains("webhook-timestamp: 1795183500\n"));
        assert!(
            latest
                .content
                .ends_with(&format!("\n\n{}…", "a".repeat(4 * 1024)))
        );
        assert_eq!(latest.checks.len(), 1, "no secret is known");
    });
}

fn verified(behaviour: Behaviour) -> Received {
    Received {
        behaviour,
        is_verified: true,
        ..Received::default()
    }
}

/// What a sender gets of a receiver within 5 s, through the front that all requests pass.
async fn over_a_socket(behaviour: Behaviour) -> Option<String> {
    let server = HttpServer::new(move || {
        let service = ServiceSettings {
            public_url: String::new(),
            name: String::new(),
            realm: String::new(),
            docs_url: String::new(),
            default_rate_limit: NonZeroU32::MIN,
            trusted_proxies: TrustedProxies::default(),
            body_timeout: SLOW,
            idempotency_lease: SLOW,
            observer: None,
        };
        let front = Front::public("test", &service);
        App::new().default_service(front.route(move |mut request: Request| async move {
            request.body(BODY_LIMITS).await.unwrap();
            let response = verified(behaviour).answer(&Tasks::new(Handle::current())).await;
            request.end(response, "-", false)
        }))
    });
    let server = server.workers(1).disable_signals().bind("127.0.0.1:0").unwrap();
    let address = server.addrs()[0];
    actix_web::rt::spawn(server.run());
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = "POST / HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{}";
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut response = String::new();
    let patience = if behaviour == Behaviour::Silent { 5 } else { 60 };
    let read = timeout(
        Duration::from_secs(patience),
        stream.read_to_string(&mut response),
    )
    .await;
    read.ok().map(|read| {
        read.unwrap();
        response.lines().next().unwrap_or_default().to_owned()
    })
}

#[tokio::test(start_paused = true)]
async fn a_silent_receiver_delays_no_stop() {
    let (tasks, began) = (Tasks::new(Handle::current()), tokio::time::Instant::now());
    tasks.stop();
    verified(Behaviour::Silent).answer(&tasks).await;
    assert_eq!(began.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn an_answer_is_shown_once_it_was_given() {
    let (received, tasks) = (verified(Behaviour::Slow), Tasks::new(Handle::current()));
    let mut answer = pin!(received.answer(&tasks));
    assert!(timeout(SLOW / 2, &mut answer).await.is_err());
    assert_eq!(received.status.get(), None);
    answer.await;
    assert_eq!(received.status.get(), Some(&StatusCode::NO_CONTENT));
}

#[actix_web::test]
async fn a_receiver_answers_as_it_is_told() {
    for (behaviour, expected) in [
        (Behaviour::Accept, Some("HTTP/1.1 204 No Content")),
        (Behaviour::Fail, Some("HTTP/1.1 500 Internal Server Error")),
        (Behaviour::Slow, Some("HTTP/1.1 204 No Content")),
        (Behaviour::Silent, None),
        (Behaviour::Close, Some("")),
    ] {
        let began = Instant::now();
        assert_eq!(
            over_a_socket(behaviour).await.as_deref(),
            expected,
            "{behaviour:?}"
        );
        assert_eq!(
            began.elapsed() >= SLOW,
            matches!(behaviour, Behaviour::Slow | Behaviour::Silent)
        );
    }
}
