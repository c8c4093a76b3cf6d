//! Reuse of connections.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

use tokio::{
    io::AsyncWriteExt as _,
    sync::Notify,
    time::{advance, sleep},
};
use webhooks::{Failure, Outcome};

use super::{
    receiver::{OK, Receiver, read_request, serve},
    support::{delivers, failed, outcome, sender, sender_with},
};
use crate::read_limit::{BODY_MAX, HEAD_MAX};

/// Answers the first request of each connection 200 and sends `then` for the second. Counts requests.
async fn twofold(then: &'static [u8]) -> (Receiver, Arc<AtomicUsize>) {
    let requests = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&requests);
    let receiver = Receiver::start(move |mut stream, _| {
        let counted = Arc::clone(&counted);
        async move {
            for answer in [OK, then] {
                if read_request(&mut stream).await.is_some() {
                    counted.fetch_add(1, SeqCst);
                }
                let _ = stream.write_all(answer).await;
            }
        }
    })
    .await;
    (receiver, requests)
}

#[tokio::test]
async fn deliveries_to_one_receiver_share_a_connection() {
    let chunked = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n";
    for answer in [
        OK,
        chunked,
        b"HTTP/1.1 204 No Content\r\n\r\n",
        b"HTTP/1.1 500 x\r\ncontent-length: 0\r\n\r\n",
    ] {
        let receiver = Receiver::answering(answer).await;
        let sender = sender();
        for _ in 0..5 {
            outcome(&sender, &receiver.url()).await;
        }
        assert_eq!(receiver.taken(), 1);
    }
}

#[tokio::test]
async fn a_connection_that_cannot_go_on_is_not_reused() {
    for answer in [
        b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n".as_slice(),
        b"HTTP/1.0 200 OK\r\ncontent-length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\nsurplus",
    ] {
        let receiver = Receiver::answering(answer).await;
        let sender = sender();
        delivers(&sender, &receiver.url(), 3).await;
        assert_eq!(receiver.taken(), 3, "{}", answer.escape_ascii());
    }
}

#[tokio::test]
async fn a_reused_connection_that_closes_at_once_is_replaced_unless_an_answer_has_begun() {
    for (then, second, connections) in [
        (b"".as_slice(), Outcome::Answered(200), (2, 3)),
        (b"HTTP/1.1 2", failed(Failure::Closed), (1, 2)),
    ] {
        let (receiver, requests) = twofold(then).await;
        let sender = sender();
        delivers(&sender, &receiver.url(), 1).await;
        assert_eq!(outcome(&sender, &receiver.url()).await, second);
        assert_eq!((receiver.taken(), requests.load(SeqCst)), connections);
    }
}

#[tokio::test(start_paused = true)]
async fn a_reused_connection_that_closes_after_a_while_is_a_failure() {
    let receiver = Receiver::start(|mut stream, _| async move {
        read_request(&mut stream).await;
        stream.write_all(OK).await.unwrap();
        read_request(&mut stream).await;
        tokio::time::sleep(Duration::from_secs(2)).await;
    })
    .await;
    let sender = sender();
    delivers(&sender, &receiver.url(), 1).await;
    assert_eq!(outcome(&sender, &receiver.url()).await, failed(Failure::Closed));
    assert_eq!(receiver.taken(), 1, "the request was seen, and is not sent again");
}

#[tokio::test]
async fn a_connection_that_was_closed_meanwhile_is_not_used() {
    let (close, closed) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (heard, told) = (Arc::clone(&close), Arc::clone(&closed));
    let receiver = Receiver::start(move |mut stream, _| {
        let (close, closed) = (Arc::clone(&heard), Arc::clone(&told));
        async move {
            read_request(&mut stream).await;
            stream.write_all(OK).await.unwrap();
            close.notified().await;
            drop(stream);
            closed.notify_one();
        }
    })
    .await;
    let sender = sender();
    delivers(&sender, &receiver.url(), 1).await;
    close.notify_one();
    closed.notified().await;
    delivers(&sender, &receiver.url(), 1).await;
    assert_eq!(receiver.taken(), 2);
}

#[tokio::test(start_paused = true)]
async fn connections_expire() {
    let receiver = Receiver::answering(OK).await;
    let sender = sender();
    delivers(&sender, &receiver.url(), 1).await;
    advance(Duration::from_secs(50)).await;
    delivers(&sender, &receiver.url(), 1).await;
    assert_eq!((receiver.taken(), sender.pool().len()), (1, 1));
    sleep(Duration::from_secs(20)).await;
    assert_eq!(sender.pool().len(), 0);
    delivers(&sender, &receiver.url(), 1).await;
    assert_eq!((receiver.taken(), sender.pool().len()), (2, 1));
}

#[tokio::test]
async fn idle_connections_are_bounded() {
    let [one, other] = [Receiver::answering(OK).await, Receiver::answering(OK).await];
    let sender = sender_with(|settings| settings.kept_connections = 1);
    for receiver in [&one, &other, &other, &one] {
        delivers(&sender, &receiver.url(), 1).await;
        assert_eq!(sender.pool().len(), 1);
    }
    assert_eq!((one.taken(), other.taken()), (2, 1));
}

#[tokio::test(start_paused = true)]
async fn a_closed_idle_connection_is_dropped() {
    let receiver = Receiver::start(|mut stream, _| async move {
        read_request(&mut stream).await;
        stream.write_all(OK).await.unwrap();
        sleep(Duration::from_secs(2)).await;
    })
    .await;
    let sender = sender();
    delivers(&sender, &receiver.url(), 1).await;
    assert_eq!(sender.pool().len(), 1);
    sleep(Duration::from_secs(6)).await;
    assert_eq!(sender.pool().len(), 0);
}

#[tokio::test]
async fn a_body_of_16_kib_is_read_to_reuse_the_connection_and_a_longer_one_is_not() {
    for (body, connections) in [(BODY_MAX, 1), (4 * BODY_MAX, 2)] {
        let fields = "x".repeat(HEAD_MAX / 2);
        let answer = format!(
            "HTTP/1.1 200 OK\r\nx: {fields}\r\ncontent-length: {body}\r\n\r\n{}",
            "x".repeat(body)
        );
        let receiver = Receiver::start(move |stream, _| {
            let answer = answer.clone();
            async move { serve(stream, answer.as_bytes()).await }
        })
        .await;
        let sender = sender();
        delivers(&sender, &receiver.url(), 2).await;
        assert_eq!(receiver.taken(), connections);
    }
}
