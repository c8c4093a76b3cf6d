//! Refusals, silence and broken connections: what is tried again, what is not, and what is told.

use std::time::{Duration, Instant};

use kernel::Mailer as _;
use tokio::{net::TcpListener, task::JoinSet};

use crate::{
    stub::{Act, Script, Stub},
    support::{error_text, impatient, is_permanent, mail, mailer, send_to, settings},
};

/// Refuses at `point`, and tells whether the mail is given up, and what a log would show.
async fn refused(point: &'static str, reply: &'static str) -> (bool, String) {
    let stub = Stub::start(Script::default().at(point, Act::Say(reply))).await;
    let outcome = send_to(&stub, &mail()).await;
    (is_permanent(&outcome), error_text(&outcome.unwrap_err()))
}

#[tokio::test]
async fn what_a_server_says_of_recipient_and_content_for_good_is_final() {
    for (point, reply) in [
        ("RCPT", "550 5.1.1 no such box"),
        ("RCPT", "553 no"),
        ("RCPT", "501 5.1.3 bad address"),
        ("DATA", "554 5.6.0 no"),
        ("CONTENT", "550 5.7.1 spam"),
        ("CONTENT", "552 5.3.4 too big"),
    ] {
        let (permanent, text) = refused(point, reply).await;
        assert!(permanent, "{point} {reply}");
        assert!(text.contains(&reply[..3]), "{text}");
    }
}

#[tokio::test]
async fn what_may_pass_or_speaks_of_the_settings_is_tried_again() {
    for (point, reply) in [
        ("CONNECT", "421 4.3.2 later"),
        ("CONNECT", "554 not you"),
        ("EHLO", "550 5.7.1 who are you"),
        ("MAIL", "451 4.3.0 later"),
        ("MAIL", "550 5.7.1 sender refused"),
        ("RCPT", "450 4.2.1 greylisted"),
        ("RCPT", "452 4.5.3 too many"),
        ("RCPT", "530 5.7.0 sign in first"),
        ("DATA", "451 4.3.0 later"),
        ("CONTENT", "421 4.3.2 going down"),
        ("CONTENT", "452 4.3.1 disk full"),
        // Answers that make no sense.
        ("RCPT", "what?"),
        ("DATA", "250 fine"),
        ("CONTENT", "354 go on"),
    ] {
        let (permanent, text) = refused(point, reply).await;
        assert!(!permanent, "{point} {reply}: {text}");
    }
}

#[tokio::test]
async fn a_log_tells_stage_and_codes_but_no_address() {
    let (_, text) = refused("RCPT", "550 5.1.1 <zaneta@example.com>: unknown").await;
    assert!(
        text.contains("the server answered 550 5.1.1 while naming the recipient"),
        "{text}"
    );
    assert!(!text.contains("zaneta"), "{text}");
    let (_, text) = refused("RCPT", "zaneta@example.com is unknown").await;
    assert!(!text.contains("zaneta"), "{text}");
}

#[tokio::test]
async fn a_refused_dialogue_ends_politely() {
    let mut stub = Stub::start(Script::default().at("RCPT", Act::Say("550 no"))).await;
    assert!(is_permanent(&send_to(&stub, &mail()).await));
    stub.reaches("QUIT").await;
    assert!(stub.contents().is_empty());
}

#[tokio::test]
async fn a_silent_server_holds_nobody_for_longer_than_configured() {
    let mut sendings = JoinSet::new();
    for point in ["CONNECT", "EHLO", "MAIL", "RCPT", "DATA", "CONTENT"] {
        sendings.spawn(async move {
            let stub = Stub::start(Script::default().at(point, Act::Hush)).await;
            let began = Instant::now();
            let outcome = mailer(&impatient(stub.port())).send(&mail()).await;
            assert!(began.elapsed() < Duration::from_secs(5), "{point}");
            assert!(!is_permanent(&outcome), "{point}");
            assert!(error_text(&outcome.unwrap_err()).contains("in time"), "{point}");
        });
    }
    sendings.join_all().await;
}

#[tokio::test]
async fn a_refusal_counts_although_the_server_never_says_good_bye() {
    let script = Script::default()
        .at("RCPT", Act::Say("550 no"))
        .at("QUIT", Act::Hush);
    let stub = Stub::start(script).await;
    assert!(is_permanent(&send_to(&stub, &mail()).await));
}

#[tokio::test]
async fn a_closed_port_is_tried_again() {
    // Bound and released: nobody listens there now.
    let port = TcpListener::bind(("127.0.0.1", 0))
        .await
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let outcome = mailer(&settings(port)).send(&mail()).await;
    assert!(!is_permanent(&outcome));
}

#[tokio::test]
async fn a_connection_that_breaks_anywhere_is_tried_again() {
    for point in ["CONNECT", "EHLO", "MAIL", "RCPT", "DATA", "BODY", "CONTENT"] {
        let stub = Stub::start(Script::default().once(point, Act::Close)).await;
        let mailer = mailer(&settings(stub.port()));
        assert!(!is_permanent(&mailer.send(&mail()).await), "{point}");
        // `BODY` has no usual answer; the others recover.
        if point != "BODY" {
            mailer.send(&mail()).await.unwrap();
            assert_eq!(stub.connections(), 2, "{point}");
        }
    }
}
