//! Senders, messages and receivers for tests.

use std::{sync::Arc, time::Duration};

use kernel::{Clock, MockClock};
use testkit::{HttpServer, answer_all, read_request};
use tokio::{io::AsyncWriteExt as _, net::TcpStream};
use uuid::Uuid;
use webhooks::{
    AddressPolicy, AddressRules, AttemptFailure, Attempted, Message, Outcome, Sent, WebhookEvent,
    WebhookSecret, WebhookSender as _, WebhookUrl,
};

use crate::{HttpSender, SenderSettings};

pub(super) const BODY: &[u8] = br#"{"id":"x","event":"order.paid"}"#;

pub(super) const OK: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

/// A timeout that a test waits for, and one that no test reaches.
pub(super) const SHORT: Duration = Duration::from_millis(300);
pub(super) const LONG: Duration = Duration::from_secs(8);

pub(super) fn settings(policy: AddressPolicy) -> SenderSettings {
    let deny = Vec::new();
    SenderSettings::new(
        "shop",
        "https://docs.example.com/webhooks",
        AddressRules { policy, deny },
    )
}

pub(super) fn sender() -> HttpSender {
    sender_with(|_| {})
}

pub(super) fn sender_with(change: impl FnOnce(&mut SenderSettings)) -> HttpSender {
    let mut settings = settings(AddressPolicy::Any);
    change(&mut settings);
    HttpSender::new(&settings, clock()).unwrap()
}

/// Stands still.
pub(super) fn clock() -> Arc<dyn Clock> {
    let mut clock = MockClock::new();
    clock
        .expect_now()
        .returning(|| "2026-09-21T14:13:20Z".parse().unwrap());
    Arc::new(clock)
}

pub(super) fn url(text: &str) -> WebhookUrl {
    WebhookUrl::parse(text, AddressPolicy::Any).unwrap()
}

pub(super) fn message(text: &str) -> Message {
    Message {
        application: Uuid::from_u128(1).into(),
        // The attempt is late: its timestamp is its own.
        due_at: "2026-09-21T13:13:20Z".parse().unwrap(),
        subscription: Uuid::from_u128(3).into(),
        delivery: Uuid::from_u128(7).into(),
        event: WebhookEvent::OrderPaid,
        url: url(text),
        body: Arc::from(BODY),
        secrets: Arc::new(WebhookSecret::from_random(&[7; 32]).into()),
    }
}

pub(super) async fn outcome(sender: &HttpSender, text: &str) -> Outcome {
    send(sender, text).await.outcome
}

pub(super) async fn send(sender: &HttpSender, text: &str) -> Attempted {
    let Sent::Attempted(attempted) = sender.send(&message(text)).await else {
        panic!("{text} is postponed");
    };
    attempted
}

/// Sends this number of messages and asserts that each gets 200.
pub(super) async fn delivers(sender: &HttpSender, text: &str, times: usize) {
    for _ in 0..times {
        assert_eq!(outcome(sender, text).await, Outcome::Answered(200), "{text}");
    }
}

/// Asserts that an attempt gets no answer within [`SHORT`], the sender's timeout.
pub(super) async fn times_out(sender: &HttpSender, text: &str) {
    let attempted = send(sender, text).await;
    assert_eq!(attempted.outcome, failed(AttemptFailure::TimedOut), "{text}");
    assert!(
        attempted.duration >= SHORT && attempted.duration < LONG,
        "{attempted:?}"
    );
}

pub(super) fn failed(failure: AttemptFailure) -> Outcome {
    Outcome::Failed(failure)
}

pub(super) fn is_protocol(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Failed(AttemptFailure::Protocol(_)))
}

/// Sends the same answer to every request of every connection.
pub(super) async fn answering(answer: impl Into<Arc<[u8]>>) -> HttpServer {
    let answer = answer.into();
    HttpServer::start_raw(move |stream| {
        let answer = Arc::clone(&answer);
        async move { answer_all(stream, &answer).await }
    })
    .await
}

/// Sends this answer, and then neither reads, writes nor closes.
pub(super) async fn stalling_after(answer: impl Into<Arc<[u8]>>) -> HttpServer {
    let answer = answer.into();
    HttpServer::start_raw(move |mut stream| {
        let answer = Arc::clone(&answer);
        async move {
            receive_and_send(&mut stream, &answer).await;
            std::future::pending::<()>().await;
        }
    })
    .await
}

/// Reads a request, if one comes, and writes an answer.
pub(super) async fn receive_and_send(stream: &mut TcpStream, answer: &[u8]) -> bool {
    let is_received = read_request(stream, &mut Vec::new()).await.is_some();
    // In some tests the sender closes the connection.
    let _ = stream.write_all(answer).await;
    is_received
}
