//! Reuse of connections.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use testkit::HttpServer;
use tokio::sync::Notify;
use tokio::time::{advance, sleep};
use webhooks::{AttemptFailure, Outcome};

use super::support::{OK, answering, delivers, failed, outcome, receive_and_send, sender, sender_with};
use crate::read_limit::{MAX_BODY, MAX_FRAMES, MAX_HEAD_SIZE};

#[tokio::test]
async fn connections_are_reused_unless_the_answer_prevents_it() {
    // After a body of up to 16 KiB, whatever the head's length.
    let body = |length: usize| {
        let field = "x".repeat(MAX_HEAD_SIZE / 2);
        format!(
            "1 200 OK\r\nx: {field}\r\ncontent-length: {length}\r\n\r\n{}",
            "x".repeat(length)
        )
    };
    let chunks = |number: u32| {
        let chunks = "1\r\nx\r\n".repeat(usize::try_from(number).unwrap());
        format!("1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n{chunks}0\r\n\r\n")
    };
    for (answer, connections) in [
        ("1 200 OK\r\ncontent-length: 2\r\n\r\nok", 1),
        (&chunks(MAX_FRAMES - 1), 1),
        (&chunks(MAX_FRAMES + 1), 3),
        ("1 204 No Content\r\n\r\n", 1),
        ("1 500 x\r\ncontent-length: 0\r\n\r\n", 1),
        (&body(MAX_BODY), 1),
        (&body(MAX_BODY + 1), 3),
        ("1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n", 3),
        ("0 200 OK\r\ncontent-length: 0\r\n\r\n", 3),
        ("1 200 OK\r\ncontent-length: 0\r\n\r\nsurplus", 3),
    ] {
        let receiver = answering(format!("HTTP/1.{answer}").into_bytes()).await;
        let sender = sender();
        for _ in 0..3 {
            let outcome = outcome(&sender, &receiver.url()).await;
            assert!(matches!(outcome, Outcome::Answered(_)), "{answer}: {outcome:?}");
        }
        assert_eq!(receiver.connections(), connections, "{answer}");
    }
}

#[tokio::test]
async fn a_reused_connection_that_closes_at_once_is_replaced_unless_an_answer_has_begun() {
    for (then, second, expected) in [
        (b"".as_slice(), Outcome::Answered(200), (2, 3)),
        (b"HTTP/1.1 2", failed(AttemptFailure::Closed), (1, 2)),
    ] {
        let requests = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&requests);
        let receiver = HttpServer::start_raw(move |mut stream| {
            let counted = Arc::clone(&counted);
            async move {
                for answer in [OK, then] {
                    let is_received = receive_and_send(&mut stream, answer).await;
                    counted.fetch_add(usize::from(is_received), SeqCst);
                }
            }
        })
        .await;
        let sender = sender();
        delivers(&sender, &receiver.url(), 1).await;
        assert_eq!(outcome(&sender, &receiver.url()).await, second);
        assert_eq!((receiver.connections(), requests.load(SeqCst)), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn a_reused_connection_that_closes_after_a_while_is_a_failure() {
    let receiver = HttpServer::start_raw(|mut stream| async move {
        receive_and_send(&mut stream, OK).await;
        receive_and_send(&mut stream, b"").await;
        sleep(Duration::from_secs(2)).await;
    })
    .await;
    let sender = sender();
    delivers(&sender, &receiver.url(), 1).await;
    assert_eq!(
        outcome(&sender, &receiver.url()).await,
        failed(AttemptFailure::Closed)
    );
    assert_eq!(
        receiver.connections(),
        1,
        "the receiver has got the request: it is not sent again"
    );
}

#[tokio::test]
async fn a_connection_that_was_closed_meanwhile_is_not_used() {
    let signals = Arc::new([Notify::new(), Notify::new()]);
    let shared = Arc::clone(&signals);
    let receiver = HttpServer::start_raw(move |mut stream| {
        let shared = Arc::clone(&shared);
        async move {
            let [close, closed] = &*shared;
            receive_and_send(&mut stream, OK).await;
            close.notified().await;
            drop(stream);
            closed.notify_one();
        }
    })
    .await;
    let sender = sender();
    delivers(&sender, &receiver.url(), 1).await;
    signals[0].notify_one();
    signals[1].notified().await;
    delivers(&sender, &receiver.url(), 1).await;
    assert_eq!(receiver.connections(), 2);
}

#[tokio::test(start_paused = true)]
async fn idle_connections_are_dropped_when_they_expire_or_close() {
    let lasting = answering(OK).await;
    let sender = sender();
    delivers(&sender, &lasting.url(), 1).await;
    advance(Duration::from_secs(50)).await;
    delivers(&sender, &lasting.url(), 1).await;
    assert_eq!((lasting.connections(), sender.pool().len()), (1, 1));
    sleep(Duration::from_secs(20)).await;
    assert_eq!(sender.pool().len(), 0);
    let closing = HttpServer::start_raw(|mut stream| async move {
        receive_and_send(&mut stream, OK).await;
        sleep(Duration::from_secs(2)).await;
    })
    .await;
    delivers(&sender, &closing.url(), 1).await;
    assert_eq!(sender.pool().len(), 1);
    sleep(Duration::from_secs(6)).await;
    assert_eq!(sender.pool().len(), 0);
    delivers(&sender, &lasting.url(), 1).await;
    assert_eq!((lasting.connections(), sender.pool().len()), (2, 1));
}

#[tokio::test]
async fn idle_connections_are_bounded() {
    let [one, other] = [answering(OK).await, answering(OK).await];
    let sender = sender_with(|settings| settings.max_idle_connections = 1);
    for receiver in [&one, &other, &other, &one] {
        delivers(&sender, &receiver.url(), 1).await;
        assert_eq!(sender.pool().len(), 1);
    }
    assert_eq!((one.connections(), other.connections()), (2, 1));
}
