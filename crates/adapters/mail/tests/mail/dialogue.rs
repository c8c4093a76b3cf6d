//! A mail's complete dialogue with a server.

use adapter_mail::{Credentials, SenderSettings, SmtpMailer, SmtpSettings};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use kernel::Mailer as _;
use orders::ShipmentMail;
use testkit::{SmtpAction, SmtpScript, SmtpServer};

use crate::support::{
    clock, is_permanent, mail, mailer, read, rendered, send_to, sender, settings, transient,
};

#[tokio::test]
async fn a_mail_is_sent() {
    let stub = SmtpServer::start(SmtpScript::default()).await;
    send_to(&stub, &mail()).await.unwrap();
    let commands = [
        "EHLO api.example.com",
        "MAIL FROM:<sklep@zolw.example.pl>",
        "RCPT TO:<zaneta@example.com>",
        "DATA",
    ];
    assert_eq!(stub.commands(), commands);
    let [arrived] = stub.contents().try_into().unwrap();
    // The dialogue adds a line break at the end of the content (RFC 5321 §4.1.1.4).
    let file = String::from_utf8(rendered(&sender(), &mail()).await.unwrap()).unwrap();
    assert_eq!(arrived.trim_end(), file.trim_end(), "a folder gets the same");
}

#[tokio::test]
async fn a_line_that_begins_with_a_dot_arrives() {
    let stub = SmtpServer::start(SmtpScript::default()).await;
    let dotted = SenderSettings {
        name: ".sklep".to_owned(),
        ..sender()
    };
    let mailer = SmtpMailer::new(&dotted, &settings(stub.port()), clock()).unwrap();
    mailer.send(&mail()).await.unwrap();
    assert!(read(stub.contents()[0].as_bytes()).text.contains("\n.sklep\n"));
}

fn with_credentials(stub: &SmtpServer) -> SmtpSettings {
    let credentials = Credentials {
        username: "shop".to_owned(),
        password: "correct horse".to_owned().into(),
    };
    SmtpSettings {
        credentials: Some(credentials),
        ..settings(stub.port())
    }
}

#[tokio::test]
async fn the_client_authenticates_if_it_has_credentials() {
    let stub = SmtpServer::start(SmtpScript::default().offers("AUTH PLAIN LOGIN")).await;
    mailer(&with_credentials(&stub)).send(&mail()).await.unwrap();
    let expected = format!("AUTH PLAIN {}", STANDARD.encode("\0shop\0correct horse"));
    assert_eq!(stub.commands()[1], expected);
    assert_eq!(stub.contents().len(), 1);
}

#[tokio::test]
async fn rejected_credentials_are_a_temporary_failure_and_stay_secret() {
    for script in [
        SmtpScript::default()
            .offers("AUTH PLAIN")
            .at("AUTH", SmtpAction::Reply("535 5.7.8 correct horse is wrong")),
        SmtpScript::default().offers("AUTH CRAM-MD5"),
        SmtpScript::default(),
    ] {
        let stub = SmtpServer::start(script).await;
        let text = transient(mailer(&with_credentials(&stub)).send(&mail()).await);
        assert!(text.contains("signing in"), "{text}");
        assert!(!text.contains("correct horse"), "{text}");
        assert!(stub.contents().is_empty());
    }
}

fn to(address: &str) -> ShipmentMail {
    let to = address.to_owned();
    ShipmentMail { to, ..mail() }
}

#[tokio::test]
async fn a_domain_beyond_ascii_is_encoded_and_a_local_part_needs_a_server_that_accepts_it() {
    let stub = SmtpServer::start(SmtpScript::default()).await;
    send_to(&stub, &to("zaneta@łąka.pl")).await.unwrap();
    assert_eq!(stub.commands()[2], "RCPT TO:<zaneta@xn--ka-ola7v.pl>");
    assert!(is_permanent(&send_to(&stub, &to("żaneta@example.com")).await));
    assert_eq!(stub.contents().len(), 1);

    let stub = SmtpServer::start(SmtpScript::default().offers("SMTPUTF8").offers("8BITMIME")).await;
    send_to(&stub, &to("żaneta@example.com")).await.unwrap();
    let expected = [
        "MAIL FROM:<sklep@zolw.example.pl> SMTPUTF8 BODY=8BITMIME",
        "RCPT TO:<żaneta@example.com>",
    ];
    assert_eq!(stub.commands()[1..3], expected);
    assert_eq!(read(stub.contents()[0].as_bytes()).to.1, "żaneta@example.com");
}
