//! Deadlines, and limits of concurrent attempts.

use std::{num::NonZeroUsize, sync::Arc, time::Duration};

use testkit::{HttpServer, read_request};
use tokio::io::AsyncWriteExt as _;
use tokio::select;
use tokio::sync::Notify;
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::{Instant, sleep, timeout};
use uuid::Uuid;
use webhooks::{AttemptFailure, Attempted, Outcome, Sent, WebhookSender as _};

use super::support::{
    OK, SHORT, answering, delivers, failed, message, outcome, receive_and_send, send, sender, sender_with,
    stalling_after,
};

/// Keeps the paused clock where it is while bytes are on their way: it waits for blocking tasks.
fn hold_clock() {
    spawn_blocking(|| std::thread::sleep(SHORT));
}

#[tokio::test(start_paused = true)]
async fn the_deadline_is_ten_seconds_and_holds_while_the_rest_of_an_answer_is_awaited() {
    let silent = stalling_after(*b"").await;
    let late = HttpServer::start_raw(|mut stream| async move {
        read_request(&mut stream, &mut Vec::new()).await;
        sleep(Duration::from_millis(9_500)).await;
        let head = b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n";
        hold_clock();
        let _ = stream.write_all(head).await;
        std::future::pending::<()>().await;
    })
    .await;
    for (receiver, outcome, answered_after) in [
        (silent, failed(AttemptFailure::TimedOut), 10_000),
        (late, Outcome::Answered(200), 9_500),
    ] {
        hold_clock();
        let begin = Instant::now();
        let attempted = send(&sender(), &receiver.url()).await;
        assert_eq!(attempted.outcome, outcome);
        for (took, expected) in [(attempted.duration, answered_after), (begin.elapsed(), 10_000)] {
            assert!((expected..expected + 10).contains(&took.as_millis()), "{took:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_attempt_over_the_limit_is_postponed_at_once_and_the_next_has_its_whole_time() {
    let receiver = stalling_after(*b"").await;
    let sender = sender_with(|settings| settings.attempts_per_host = NonZeroUsize::MIN);
    let silent = message(&receiver.url());
    hold_clock();
    let begin = Instant::now();
    let (first, second) = tokio::join!(sender.send(&silent), async {
        let second = sender.send(&silent).await;
        (second, begin.elapsed())
    });
    assert_eq!(second, (Sent::Postponed, Duration::ZERO));
    assert!(
        matches!(first, Sent::Attempted(Attempted { outcome, .. }) if outcome == failed(AttemptFailure::TimedOut))
    );
    assert_eq!(receiver.connections(), 1, "nothing was begun for the second");
    hold_clock();
    let third = send(&sender, &receiver.url()).await;
    assert_eq!(third.outcome, failed(AttemptFailure::TimedOut));
    assert!(third.duration >= Duration::from_secs(10), "{third:?}");
}

#[tokio::test]
async fn an_application_is_served_while_others_receivers_at_its_host_are_silent() {
    let silent = stalling_after(*b"").await;
    let healthy = answering(OK).await;
    let sender = Arc::new(sender());
    let mut others = JoinSet::new();
    for n in 0..400 {
        let (sender, mut message) = (Arc::clone(&sender), message(&silent.url()));
        message.application = Uuid::from_u128(10 + n / 100).into();
        others.spawn(async move { sender.send(&message).await });
    }
    for _ in 0..400 - 256 {
        assert_eq!(others.join_next().await.unwrap().unwrap(), Sent::Postponed);
    }
    delivers(&sender, &healthy.url(), 1).await;
    assert!(others.try_join_next().is_none(), "the host was full all the time");
}

#[tokio::test]
async fn a_cancelled_attempt_closes_its_connection() {
    let reached = Arc::new(Notify::new());
    let reaching = Arc::clone(&reached);
    let receiver = HttpServer::start_raw(move |mut stream| {
        let reaching = Arc::clone(&reaching);
        async move {
            for is_request in [true, false] {
                assert_eq!(receive_and_send(&mut stream, b"").await, is_request);
                reaching.notify_one();
            }
        }
    })
    .await;
    let (sender, url) = (sender(), receiver.url());
    select! {
        outcome = outcome(&sender, &url) => panic!("{outcome:?}"),
        () = reached.notified() => {}
    }
    let closed = timeout(Duration::from_mins(1), reached.notified());
    closed.await.unwrap();
}
