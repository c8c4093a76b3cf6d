//! Refusals, silence and broken connections: which are retried, and how they are reported.

use std::time::{Duration, Instant};

use kernel::Mailer as _;
use testkit::{SmtpAction, SmtpScript, SmtpServer};
use tokio::{net::TcpListener, task::JoinSet};

use crate::support::{error_text, is_permanent, mail, mailer, send_to, settings, short_timeout, transient};

#[tokio::test]
async fn only_permanent_replies_about_recipient_and_content_are_final() {
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
        let stub = SmtpServer::start(SmtpScript::default().at(point, SmtpAction::Reply(reply))).await;
        let outcome = send_to(&stub, &mail()).await;
        assert_eq!(is_permanent(&outcome), is_final, "{point} {reply}");
        let text = error_text(&outcome.unwrap_err());
        assert!(!text.contains("zaneta"), "{text}");
        if is_final {
            let expected = format!("the server answered {}", &reply[..3]);
            assert!(text.contains(&expected), "{text}");
        }
    }
}

#[tokio::test]
async fn a_refused_dialogue_ends_with_quit_even_if_the_server_does_not_answer_it() {
    let script = SmtpScript::default()
        .at("RCPT", SmtpAction::Reply("550 no"))
        .at("QUIT", SmtpAction::Silence);
    let mut stub = SmtpServer::start(script).await;
    assert!(is_permanent(&send_to(&stub, &mail()).await));
    stub.reaches("QUIT").await;
    assert!(stub.contents().is_empty());
}

#[tokio::test]
async fn a_silent_server_costs_no_more_than_the_timeout() {
    let mut sendings = JoinSet::new();
    for point in ["CONNECT", "EHLO", "MAIL", "RCPT", "DATA", "CONTENT"] {
        sendings.spawn(async move {
            let stub = SmtpServer::start(SmtpScript::default().at(point, SmtpAction::Silence)).await;
            let began = Instant::now();
            let text = transient(mailer(&short_timeout(stub.port())).send(&mail()).await);
            assert!(began.elapsed() < Duration::from_secs(5), "{point}");
            assert!(text.contains("in time"), "{point}: {text}");
        });
    }
    sendings.join_all().await;
}

#[tokio::test]
async fn a_closed_port_and_a_connection_that_breaks_anywhere_are_tried_again() {
    // Bound and released, so nothing listens on the port.
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    transient(mailer(&settings(port)).send(&mail()).await);
    for point in ["CONNECT", "EHLO", "MAIL", "RCPT", "DATA", "BODY", "CONTENT"] {
        let stub = SmtpServer::start(SmtpScript::default().once(point, SmtpAction::Close)).await;
        let mailer = mailer(&settings(stub.port()));
        transient(mailer.send(&mail()).await);
        mailer.send(&mail()).await.unwrap();
        assert_eq!(stub.connections(), 2, "{point}");
    }
}
