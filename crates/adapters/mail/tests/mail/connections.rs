//! Connections: reused, shared, replaced, never out of step.

use std::{num::NonZeroU16, time::Duration};

use adapter_mail::SmtpSettings;
use futures_util::future::join_all;
use kernel::Mailer as _;
use testkit::{SmtpAction, SmtpScript, SmtpServer};

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

/// A relay that takes longer for all of them than a mail's time, and for one than an answer's.
#[tokio::test]
async fn neither_the_wait_for_a_connection_nor_a_slow_acceptance_ends_a_mail() {
    let slow = SmtpAction::After(Duration::from_millis(300));
    let script = SmtpScript::default().at("RCPT", slow).at("CONTENT", slow);
    let stub = SmtpServer::start(script).await;
    let mailer = mailer(&SmtpSettings {
        max_connections: NonZeroU16::MIN,
        timeout: Duration::from_secs(5),
        acceptance_timeout: Duration::from_secs(25),
        ..settings(stub.port())
    });
    let mails: Vec<_> = (1..=12).map(another).collect();
    for outcome in join_all(mails.iter().map(|mail| mailer.send(mail))).await {
        outcome.unwrap();
    }
    let mut ids = arrived(&stub);
    ids.sort_unstable();
    assert_eq!(ids, (1..=12).collect::<Vec<_>>());
    // The relay takes longer than a mail's time to accept this one.
    stub.script().clear();
    let late = SmtpAction::After(Duration::from_millis(5_500));
    stub.script().add("CONTENT", "", late);
    mailer.send(&another(13)).await.unwrap();
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
    settings.timeout = Duration::from_secs(4);
    settings.acceptance_timeout = settings.timeout;
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
