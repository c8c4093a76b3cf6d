//! Connections: reused, shared, replaced, never out of step.

use std::{
    num::NonZeroU16,
    sync::Arc,
    time::{Duration, Instant},
};

use kernel::Mailer as _;
use tokio::task::JoinSet;

use crate::{
    stub::{Act, Script, Stub},
    support::{another, impatient, is_permanent, mail, mailer, read, send_at_once, settings},
};

/// The ids of the mails that have arrived.
fn arrived(stub: &Stub) -> Vec<u128> {
    let id = |content: &String| {
        let line = content
            .lines()
            .find(|line| line.starts_with("Message-ID: <"))
            .unwrap();
        let id = line
            .trim_start_matches("Message-ID: <")
            .split('@')
            .next()
            .unwrap();
        id.parse::<uuid::Uuid>().unwrap().as_u128()
    };
    stub.contents().iter().map(id).collect()
}

#[tokio::test]
async fn there_are_no_more_connections_than_configured() {
    let stub = Stub::start(Script::default()).await;
    let mut settings = settings(stub.port());
    settings.max_connections = NonZeroU16::MIN;
    let mailer = mailer(&settings);
    send_at_once(&mailer, [1, 2, 3, 4]).await;
    assert_eq!(arrived(&stub).len(), 4);
    assert_eq!(stub.connections(), 1);
}

#[tokio::test]
async fn waiting_for_a_connection_counts_as_time() {
    let stub = Stub::start(Script::default().at("CONTENT", Act::Hush)).await;
    let mut settings = impatient(stub.port());
    settings.max_connections = NonZeroU16::MIN;
    let mailer = Arc::new(mailer(&settings));
    let began = Instant::now();
    let mut sendings = JoinSet::new();
    for number in 1..=30 {
        let mailer = Arc::clone(&mailer);
        sendings.spawn(async move { mailer.send(&another(number)).await });
    }
    assert!(
        sendings
            .join_all()
            .await
            .iter()
            .all(|outcome| !is_permanent(outcome))
    );
    // If each mail had a separate timeout one after the other, this would take thirty times as long.
    assert!(began.elapsed() < settings.timeout * 15);
}

#[tokio::test]
async fn a_connection_that_the_server_closed_meanwhile_is_replaced() {
    let stub = Stub::start(Script::default().once("NOOP", Act::Close)).await;
    let mailer = mailer(&settings(stub.port()));
    mailer.send(&another(1)).await.unwrap();
    mailer.send(&another(2)).await.unwrap();
    assert_eq!(arrived(&stub), [1, 2]);
    assert_eq!(stub.connections(), 2);
}

#[tokio::test]
async fn a_connection_that_idled_for_long_is_replaced() {
    let stub = Stub::start(Script::default()).await;
    let mut settings = settings(stub.port());
    settings.idle_timeout = Duration::ZERO;
    let mailer = mailer(&settings);
    mailer.send(&another(1)).await.unwrap();
    mailer.send(&another(2)).await.unwrap();
    assert_eq!(stub.connections(), 2);
    assert!(!stub.commands().contains(&"NOOP".to_owned()));
}

#[tokio::test]
async fn fifty_mails_share_a_connection_and_the_next_has_another() {
    let stub = Stub::start(Script::default()).await;
    let mailer = mailer(&settings(stub.port()));
    for number in 1..=51 {
        mailer.send(&another(number)).await.unwrap();
    }
    assert_eq!(arrived(&stub).len(), 51);
    assert_eq!(stub.connections(), 2);
}

#[tokio::test]
async fn an_answer_that_came_too_late_is_not_taken_for_the_next_mails() {
    let stub = Stub::start(Script::default().once("CONTENT", Act::Hush)).await;
    let mut settings = impatient(stub.port());
    // Long enough for the second mail, even on a busy machine.
    settings.timeout = Duration::from_secs(1);
    let mailer = mailer(&settings);
    assert!(!is_permanent(&mailer.send(&another(1)).await));
    mailer.send(&another(2)).await.unwrap();
    assert_eq!(arrived(&stub), [1, 2]);
    assert_eq!(stub.connections(), 2);
}

#[tokio::test]
async fn an_abandoned_sending_leaves_no_connection_behind() {
    let mut stub = Stub::start(Script::default().once("DATA", Act::Hush)).await;
    let mailer = mailer(&settings(stub.port()));
    let abandoned = another(1);
    tokio::select! {
        outcome = mailer.send(&abandoned) => panic!("{outcome:?}"),
        () = stub.reaches("DATA") => {}
    }
    mailer.send(&mail()).await.unwrap();
    assert_eq!(arrived(&stub), [mail().id.uuid().as_u128()]);
    assert_eq!(stub.connections(), 2);
    assert_eq!(read(stub.contents()[0].as_bytes()).to.1, "zaneta@example.com");
}
