//! Connections: reused, shared, replaced, never out of step.

use std::{
    num::NonZeroU16,
    sync::Arc,
    time::{Duration, Instant},
};

use adapter_mail::SmtpSettings;
use kernel::Mailer as _;
use testkit::{SmtpAction, SmtpScript, SmtpServer};
use tokio::task::JoinSet;

use crate::support::{another, mail, mailer, send_at_once, settings, short_timeout, transient};

/// The ids of the mails that have arrived.
fn arrived(stub: &SmtpServer) -> Vec<u128> {
    let id = |content: &String| {
        let (_, id) = content.split_once("Message-ID: <").unwrap();
        let (id, _) = id.split_once('@').unwrap();
        id.parse::<uuid::Uuid>().unwrap().as_u128()
    };
    stub.contents().iter().map(id).collect()
}

#[tokio::test]
async fn there_are_no_more_connections_than_configured() {
    let stub = SmtpServer::start(SmtpScript::default()).await;
    let mut settings = settings(stub.port());
    settings.max_connections = NonZeroU16::MIN;
    let mailer = mailer(&settings);
    send_at_once(&mailer, [1, 2, 3, 4]).await;
    assert_eq!(arrived(&stub).len(), 4);
    assert_eq!(stub.connections(), 1);
}

#[tokio::test]
async fn waiting_for_a_connection_counts_as_time() {
    let stub = SmtpServer::start(SmtpScript::default().at("CONTENT", SmtpAction::Silence)).await;
    let mut settings = short_timeout(stub.port());
    settings.max_connections = NonZeroU16::MIN;
    let mailer = Arc::new(mailer(&settings));
    let began = Instant::now();
    let mut sendings = JoinSet::new();
    for number in 1..=30 {
        let mailer = Arc::clone(&mailer);
        sendings.spawn(async move { mailer.send(&another(number)).await });
    }
    sendings
        .join_all()
        .await
        .into_iter()
        .for_each(|outcome| drop(transient(outcome)));
    // If each mail had a separate timeout one after the other, this would take thirty times as long.
    assert!(began.elapsed() < settings.timeout * 15);
}

#[tokio::test]
async fn a_connection_that_was_closed_or_idle_for_long_is_replaced() {
    for (script, idle_timeout) in [
        (
            SmtpScript::default().once("NOOP", SmtpAction::Close),
            Duration::from_mins(1),
        ),
        (
            SmtpScript::default().at("NOOP", SmtpAction::Silence),
            Duration::ZERO,
        ),
    ] {
        let stub = SmtpServer::start(script).await;
        let mailer = mailer(&SmtpSettings {
            idle_timeout,
            ..settings(stub.port())
        });
        mailer.send(&another(1)).await.unwrap();
        mailer.send(&another(2)).await.unwrap();
        assert_eq!(arrived(&stub), [1, 2]);
        assert_eq!(stub.connections(), 2);
        let checks = stub
            .commands()
            .iter()
            .filter(|command| *command == "NOOP")
            .count();
        assert_eq!(checks, usize::from(!idle_timeout.is_zero()));
    }
}

#[tokio::test]
async fn fifty_mails_share_a_connection_and_the_next_has_another() {
    let stub = SmtpServer::start(SmtpScript::default()).await;
    let mailer = mailer(&settings(stub.port()));
    for number in 1..=51 {
        mailer.send(&another(number)).await.unwrap();
    }
    assert_eq!(arrived(&stub).len(), 51);
    assert_eq!(stub.connections(), 2);
}

#[tokio::test]
async fn a_late_answer_does_not_count_for_the_next_mail() {
    let stub = SmtpServer::start(SmtpScript::default().once("CONTENT", SmtpAction::Silence)).await;
    let mut settings = short_timeout(stub.port());
    // Long enough for the second mail, even on a busy machine.
    settings.timeout = Duration::from_secs(1);
    let mailer = mailer(&settings);
    transient(mailer.send(&another(1)).await);
    mailer.send(&another(2)).await.unwrap();
    assert_eq!(arrived(&stub), [1, 2]);
    assert_eq!(stub.connections(), 2);
}

#[tokio::test]
async fn the_connection_of_a_cancelled_sending_is_not_reused() {
    let mut stub = SmtpServer::start(SmtpScript::default().once("DATA", SmtpAction::Silence)).await;
    let mailer = mailer(&settings(stub.port()));
    let cancelled = another(1);
    tokio::select! {
        outcome = mailer.send(&cancelled) => panic!("{outcome:?}"),
        () = stub.reaches("DATA") => {}
    }
    mailer.send(&mail()).await.unwrap();
    assert_eq!(arrived(&stub), [mail().id.uuid().as_u128()]);
    assert_eq!(stub.connections(), 2);
}
