//! A mail's complete dialogue with a server.

use adapter_mail::{Credentials, SenderSettings, SmtpMailer, SmtpSettings};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use kernel::Mailer as _;
use orders::ShipmentMail;

use crate::{
    stub::{Act, Script, Stub},
    support::{clock, error_text, is_permanent, mail, mailer, read, rendered, send_to, sender, settings},
};

#[tokio::test]
async fn a_mail_is_handed_over() {
    let stub = Stub::start(Script::default()).await;
    send_to(&stub, &mail()).await.unwrap();
    let said = [
        "EHLO api.example.com",
        "MAIL FROM:<sklep@zolw.example.pl>",
        "RCPT TO:<zaneta@example.com>",
        "DATA",
    ];
    assert_eq!(stub.commands(), said);
    let [arrived] = stub.contents().try_into().unwrap();
    // The dialogue adds a line break at the end of the content (RFC 5321 §4.1.1.4).
    let file = String::from_utf8(rendered(&sender(), &mail()).await.unwrap()).unwrap();
    assert_eq!(arrived.trim_end(), file.trim_end(), "a folder is given the same");
}

#[tokio::test]
async fn a_line_that_begins_with_a_dot_arrives() {
    let stub = Stub::start(Script::default()).await;
    let dotted = SenderSettings {
        name: ".sklep".to_owned(),
        ..sender()
    };
    let mailer = SmtpMailer::new(&dotted, &settings(stub.port()), clock()).unwrap();
    mailer.send(&mail()).await.unwrap();
    assert!(read(stub.contents()[0].as_bytes()).text.contains("\n.sklep\n"));
}

fn signed_in(stub: &Stub) -> SmtpSettings {
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
async fn the_client_signs_in_where_it_has_credentials() {
    let stub = Stub::start(Script::default().offers("AUTH PLAIN LOGIN")).await;
    mailer(&signed_in(&stub)).send(&mail()).await.unwrap();
    let expected = format!("AUTH PLAIN {}", STANDARD.encode("\0shop\0correct horse"));
    assert_eq!(stub.commands()[1], expected);
    assert_eq!(stub.contents().len(), 1);
}

#[tokio::test]
async fn refused_credentials_are_the_settings_fault_and_stay_secret() {
    for script in [
        Script::default()
            .offers("AUTH PLAIN")
            .at("AUTH", Act::Say("535 5.7.8 correct horse is wrong")),
        Script::default().offers("AUTH CRAM-MD5"),
        Script::default(),
    ] {
        let stub = Stub::start(script).await;
        let outcome = mailer(&signed_in(&stub)).send(&mail()).await;
        assert!(!is_permanent(&outcome));
        let text = error_text(&outcome.unwrap_err());
        assert!(text.contains("signing in"), "{text}");
        assert!(!text.contains("correct horse"), "{text}");
        assert!(stub.contents().is_empty());
    }
}

fn to(address: &str) -> ShipmentMail {
    ShipmentMail {
        to: address.to_owned(),
        ..mail()
    }
}

#[tokio::test]
async fn a_domain_beyond_ascii_reaches_any_server() {
    let stub = Stub::start(Script::default()).await;
    send_to(&stub, &to("zaneta@łąka.pl")).await.unwrap();
    assert_eq!(stub.commands()[2], "RCPT TO:<zaneta@xn--ka-ola7v.pl>");
}

#[tokio::test]
async fn a_local_part_beyond_ascii_needs_a_server_that_takes_it() {
    let stub = Stub::start(Script::default()).await;
    let outcome = send_to(&stub, &to("żaneta@example.com")).await;
    assert!(is_permanent(&outcome));
    assert!(stub.contents().is_empty());

    let stub = Stub::start(Script::default().offers("SMTPUTF8").offers("8BITMIME")).await;
    send_to(&stub, &to("żaneta@example.com")).await.unwrap();
    assert_eq!(
        stub.commands()[1],
        "MAIL FROM:<sklep@zolw.example.pl> SMTPUTF8 BODY=8BITMIME"
    );
    assert_eq!(stub.commands()[2], "RCPT TO:<żaneta@example.com>");
    assert_eq!(read(stub.contents()[0].as_bytes()).to.1, "żaneta@example.com");
}
