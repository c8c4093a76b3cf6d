//! TLS connections, and servers that offer none.

use std::sync::Arc;

use adapter_mail::{Security, SettingsError, SmtpMailer, SmtpSettings};
use kernel::Mailer as _;
use rcgen::{CertifiedKey, generate_simple_self_signed};
use testkit::{SmtpAction, SmtpScript, SmtpServer};
use tokio_rustls::rustls::{ServerConfig, pki_types::PrivateKeyDer};

use crate::support::{clock, mail, mailer, sender, settings, transient};

/// The configuration of a TLS server for `name`, and its certificate, which the client must trust.
fn server_for(name: &str) -> (Arc<ServerConfig>, String) {
    let CertifiedKey { cert, signing_key } = generate_simple_self_signed([name.to_owned()]).unwrap();
    let key = PrivateKeyDer::try_from(signing_key.serialize_der()).unwrap();
    let config = ServerConfig::builder().with_no_client_auth();
    let config = config.with_single_cert(vec![cert.der().clone()], key).unwrap();
    (Arc::new(config), cert.pem())
}

fn protected(stub: &SmtpServer, security: Security, root: &str) -> SmtpSettings {
    SmtpSettings {
        security,
        extra_roots: Some(root.to_owned()),
        ..settings(stub.port())
    }
}

#[tokio::test]
async fn tls_begins_before_any_mail_command() {
    let (config, root) = server_for("127.0.0.1");
    let greeted = "EHLO api.example.com";
    for (script, security, commands) in [
        (
            SmtpScript::default().starttls(config.clone()),
            Security::StartTls,
            [greeted, "STARTTLS", greeted],
        ),
        (
            SmtpScript::default().tls_first(config),
            Security::Tls,
            [
                greeted,
                "MAIL FROM:<sklep@zolw.example.pl>",
                "RCPT TO:<zaneta@example.com>",
            ],
        ),
    ] {
        let stub = SmtpServer::start(script).await;
        let mailer = mailer(&protected(&stub, security, &root));
        mailer.send(&mail()).await.unwrap();
        mailer.send(&mail()).await.unwrap();
        assert_eq!(stub.commands()[..3], commands);
        assert_eq!((stub.contents().len(), stub.connections()), (2, 1));
    }
}

#[tokio::test]
async fn a_server_without_tls_gets_no_mail() {
    let (config, root) = server_for("127.0.0.1");
    let refusing = |reply| {
        SmtpScript::default()
            .offers("STARTTLS")
            .at("STARTTLS", SmtpAction::Reply(reply))
    };
    // Replies that were injected before TLS do not count after it.
    let injected =
        "220 go ahead\r\n250 injected.example.com\r\n250 fine\r\n250 fine\r\n354 go on\r\n250 queued";
    let injecting = SmtpScript::default()
        .starttls(config)
        .at("STARTTLS", SmtpAction::Reply(injected));
    for script in [
        SmtpScript::default(),
        refusing("454 4.7.0 not now"),
        refusing("502 what?"),
        refusing("354 go on"),
        injecting,
    ] {
        let stub = SmtpServer::start(script).await;
        transient(
            mailer(&protected(&stub, Security::StartTls, &root))
                .send(&mail())
                .await,
        );
        let allowed = ["EHLO api.example.com", "STARTTLS", "QUIT"];
        let commands = stub.commands();
        assert!(
            commands.iter().all(|command| allowed.contains(&command.as_str())),
            "{commands:?}"
        );
        assert!(commands.len() <= 3, "{commands:?}");
    }
}

#[tokio::test]
async fn a_reply_without_end_is_read_no_further_than_its_limit() {
    let endless: &'static str = Box::leak(format!("220 {}", "a".repeat(1_000_000)).into());
    let (config, root) = server_for("127.0.0.1");
    for (script, security, limit) in [
        (SmtpScript::default(), Security::Plain, 4096),
        (SmtpScript::default(), Security::StartTls, 4096),
        (SmtpScript::default().tls_first(config), Security::Tls, 16_384),
    ] {
        let stub = SmtpServer::start(script.at("CONNECT", SmtpAction::Reply(endless))).await;
        let settings = protected(&stub, security, &root);
        let text = transient(mailer(&settings).send(&mail()).await);
        let told = format!("a reply of the mail server has more than {limit} bytes");
        assert!(text.contains(&told), "{text}");
    }
}

#[tokio::test]
async fn the_certificate_must_be_trusted_and_valid_for_the_server() {
    let (_, other_root) = server_for("127.0.0.1");
    let (config, root) = server_for("mail.example.com");
    for root in [&other_root, &root] {
        let starttls = SmtpScript::default().starttls(config.clone());
        let first = SmtpScript::default().tls_first(config.clone());
        for (script, security) in [(starttls, Security::StartTls), (first, Security::Tls)] {
            let stub = SmtpServer::start(script).await;
            let text = transient(mailer(&protected(&stub, security, root)).send(&mail()).await);
            assert!(text.contains("certificate"), "{text}");
            assert!(stub.contents().is_empty());
        }
    }
}

#[test]
fn certificates_are_read_at_the_start() {
    let mut settings = SmtpSettings::new("mail.example.com");
    settings.extra_roots = Some("-----BEGIN CERTIFICATE-----\nnone\n-----END CERTIFICATE-----\n".to_owned());
    let refusal = SmtpMailer::new(&sender(), &settings, clock()).err();
    assert!(matches!(refusal, Some(SettingsError::Tls(_))));
}
