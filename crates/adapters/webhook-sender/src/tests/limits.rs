//! Deadlines, and limits of concurrent attempts.

use std::{
    num::NonZeroUsize,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

use tokio::{
    io::AsyncWriteExt as _,
    sync::Notify,
    task::JoinSet,
    time::{Instant, timeout},
};
use uuid::Uuid;
use webhooks::{Attempted, Failure, Outcome, Sent, WebhookSender as _};

use super::{
    receiver::{OK, Receiver, read_request},
    support::{delivers, failed, message, outcome, send, sender, sender_with},
};

#[tokio::test(start_paused = true)]
async fn a_silent_receiver_times_out_after_ten_seconds() {
    let receiver = Receiver::stalling_after(*b"").await;
    let begin = Instant::now();
    let attempted = send(&sender(), &receiver.url()).await;
    assert_eq!(attempted.outcome, failed(Failure::TimedOut));
    let ten = Duration::from_secs(10);
    for took in [attempted.duration, begin.elapsed()] {
        assert!(took >= ten && took < ten + Duration::from_millis(5), "{took:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_deadline_holds_while_the_rest_of_an_answer_is_awaited() {
    let receiver = Receiver::start(|mut stream, _| async move {
        read_request(&mut stream).await;
        tokio::time::sleep(Duration::from_millis(9_500)).await;
        let _ = stream
            .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n")
            .await;
        std::future::pending::<()>().await;
    })
    .await;
    let begin = Instant::now();
    let attempted = send(&sender(), &receiver.url()).await;
    assert_eq!(attempted.outcome, Outcome::Answered(200));
    assert!(attempted.duration < Duration::from_millis(9_600), "{attempted:?}");
    assert!(begin.elapsed() < Duration::from_millis(10_010));
}

#[tokio::test]
async fn concurrent_attempts_to_one_host_are_limited() {
    let (here, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (counted, highest) = (Arc::clone(&here), Arc::clone(&most));
    let receiver = Receiver::start(move |mut stream, _| {
        let (here, most) = (Arc::clone(&counted), Arc::clone(&highest));
        async move {
            while read_request(&mut stream).await.is_some() {
                most.fetch_max(here.fetch_add(1, SeqCst) + 1, SeqCst);
                tokio::task::yield_now().await;
                here.fetch_sub(1, SeqCst);
                let _ = stream.write_all(OK).await;
            }
        }
    })
    .await;
    let sender = Arc::new(sender_with(|settings| {
        settings.connections_per_host = NonZeroUsize::new(2).unwrap();
        settings.connections_per_application = settings.connections_per_host;
    }));
    let attempts = (0..50).map(|_| {
        let (sender, message) = (Arc::clone(&sender), message(&receiver.url()));
        tokio::spawn(async move { sender.send(&message).await })
    });
    let mut arrived = 0;
    for attempt in attempts.collect::<Vec<_>>() {
        if let Sent::Attempted(attempted) = attempt.await.unwrap() {
            assert_eq!(attempted.outcome, Outcome::Answered(200));
            arrived += 1;
        }
    }
    assert!(arrived >= 2, "{arrived}");
    assert!(most.load(SeqCst) <= 2 && receiver.taken() <= arrived);
}

#[tokio::test(start_paused = true)]
async fn an_attempt_over_the_limit_is_postponed_at_once_and_the_next_has_its_whole_time() {
    let receiver = Receiver::stalling_after(*b"").await;
    let sender = sender_with(|settings| settings.connections_per_host = NonZeroUsize::MIN);
    let silent = message(&receiver.url());
    let begin = Instant::now();
    let (first, second) = tokio::join!(sender.send(&silent), async {
        let second = sender.send(&silent).await;
        (second, begin.elapsed())
    });
    assert_eq!(second, (Sent::Postponed, Duration::ZERO));
    assert!(
        matches!(first, Sent::Attempted(Attempted { outcome, .. }) if outcome == failed(Failure::TimedOut))
    );
    assert_eq!(receiver.taken(), 1, "nothing was begun for the second");
    let third = send(&sender, &receiver.url()).await;
    assert_eq!(third.outcome, failed(Failure::TimedOut));
    assert!(third.duration >= Duration::from_secs(10), "{third:?}");
}

#[tokio::test]
async fn an_application_is_served_while_others_receivers_at_its_host_are_silent() {
    let silent = Receiver::stalling_after(*b"").await;
    let sound = Receiver::answering(OK).await;
    let sender = Arc::new(sender());
    let mut crowd = JoinSet::new();
    for application in 10..14 {
        for _ in 0..100 {
            let (sender, mut message) = (Arc::clone(&sender), message(&silent.url()));
            message.application = Uuid::from_u128(application).into();
            crowd.spawn(async move { sender.send(&message).await });
        }
    }
    for _ in 0..400 - 256 {
        assert_eq!(crowd.join_next().await.unwrap().unwrap(), Sent::Postponed);
    }
    delivers(&sender, &sound.url(), 1).await;
    assert!(crowd.try_join_next().is_none(), "the host was full all the time");
}

#[tokio::test]
async fn a_cancelled_attempt_closes_its_connection() {
    let gone = Arc::new(Notify::new());
    let told = Arc::clone(&gone);
    let receiver = Receiver::start(move |mut stream, _| {
        let told = Arc::clone(&told);
        async move {
            read_request(&mut stream).await;
            assert!(read_request(&mut stream).await.is_none());
            told.notify_one();
        }
    })
    .await;
    let sender = sender();
    let url = receiver.url();
    let sending = outcome(&sender, &url);
    assert!(timeout(Duration::from_millis(50), sending).await.is_err());
    gone.notified().await;
}
