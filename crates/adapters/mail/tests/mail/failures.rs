//! Refusals, silence and broken connections: which are retried, and how they are reported.

use std::time::{Duration, Instant};

use kernel::Mailer as _;
use tokio::{net::TcpListener, task::JoinSet};

use crate::{
    stub::{Act, Script, Stub},
    support::{error_text, impatient, is_permanent, mail, mailer, send_to, settings},
};

#[tokio::test]
async fn what_a_server_says_of_recipient_and_content_for_good_is_final_and_all_else_is_tried_again() {
    for (is_final, point, reply) in [
        (true, "RCPT", "550 5.1.1 no such box"),
        (true, "RCPT", "553 no"),
        (true, "RCPT", "501 5.1.3 bad address"),
        (true, "DATA", "554 5.6.0 no"),
        (true, "CONTENT", "550 5.7.1 spam"),
        (true, "CONTENT", "552 5.3.4 too big"),
        (false, "CONNECT", "421 4.3.2 later"),
        (false, "CONNECT", "554 not you"),
        (false, "EHLO", "550 5.7.1 who are you"),
        (false, "MAIL", "451 4.3.0 later"),
        (false, "MAIL", "550 5.7.1 sender refused"),
        (false, "RCPT", "450 4.2.1 greylisted"),
        (false, "RCPT", "452 4.5.3 too many"),
        (false, "RCPT", "530 5.7.0 sign in first"),
        (false, "DATA", "451 4.3.0 later"),
        (false, "CONTENT", "421 4.3.2 going down"),
        (false, "CONTENT", "452 4.3.1 disk full"),
        // Invalid replies.
        (false, "RCPT", "what, zaneta@example.com?"),
        (false, "DATA", "250 fine"),
        (false, "CONTENT", "354 go on"),
        (true, "RCPT", "550 5.1.1 <zaneta@example.com>: unknown"),
    ] {
        let stub = Stub::start(Script::default().at(point, Act::Say(reply))).await;
        let outcome = send_to(&stub, &mail()).await;
        assert_eq!(is_permanent(&outcome), is_final, "{point} {reply}");
        let text = error_text(&outcome.unwrap_err());
        assert!(!text.contains("zaneta"), "{text}");
        if is_final {
            let code = reply
                .split(|c: char| c != '.' && !c.is_ascii_digit())
                .next()
                .unwrap();
            assert!(text.contains(&format!("the server answered {code}")), "{text}");
        }
    }
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
    // Bound and released, so nothing listens on the port.
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
        // `BODY` has no default reply; after the other points the next mail succeeds.
        if point != "BODY" {
            mailer.send(&mail()).await.unwrap();
            assert_eq!(stub.connections(), 2, "{point}");
        }
    }
}
