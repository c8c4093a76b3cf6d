//! TLS connections, and servers that offer none.

use std::sync::Arc;

use adapter_mail::{Security, SettingsError, SmtpMailer, SmtpSettings};
use kernel::Mailer as _;
use rcgen::{CertifiedKey, generate_simple_self_signed};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{ServerConfig, pki_types::PrivateKeyDer},
};

use crate::{
    stub::{Act, Script, Stub},
    support::{clock, error_text, is_permanent, mail, mailer, read, sender, settings},
};

/// A TLS acceptor for `name`, and its certificate, which the client must trust.
fn server_for(name: &str) -> (TlsAcceptor, String) {
    let CertifiedKey { cert, signing_key } = generate_simple_self_signed([name.to_owned()]).unwrap();
    let key = PrivateKeyDer::try_from(signing_key.serialize_der()).unwrap();
    let config = ServerConfig::builder().with_no_client_auth();
    let config = config.with_single_cert(vec![cert.der().clone()], key).unwrap();
    (TlsAcceptor::from(Arc::new(config)), cert.pem())
}

fn protected(stub: &Stub, security: Security, root: &str) -> SmtpSettings {
    SmtpSettings {
        security,
        extra_roots: Some(root.to_owned()),
        ..settings(stub.port())
    }
}

#[tokio::test]
async fn starttls_protects_before_anything_is_said() {
    let (acceptor, root) = server_for("127.0.0.1");
    let stub = Stub::start(Script::default().offers("STARTTLS").tls(acceptor)).await;
    let mailer = mailer(&protected(&stub, Security::StartTls, &root));
    mailer.send(&mail()).await.unwrap();
    mailer.send(&mail()).await.unwrap();
    let commands = stub.commands();
    assert_eq!(
        commands[..3],
        ["EHLO api.example.com", "STARTTLS", "EHLO api.example.com"]
    );
    assert_eq!(stub.contents().len(), 2);
    assert_eq!(stub.connections(), 1);
}

#[tokio::test]
async fn tls_from_the_first_byte() {
    let (acceptor, root) = server_for("127.0.0.1");
    let stub = Stub::start(Script::default().tls_first(acceptor)).await;
    mailer(&protected(&stub, Security::Tls, &root))
        .send(&mail())
        .await
        .unwrap();
    assert_eq!(read(stub.contents()[0].as_bytes()).to.1, "zaneta@example.com");
}

#[tokio::test]
async fn a_server_without_tls_gets_no_mail() {
    let (_, root) = server_for("127.0.0.1");
    for script in [
        Script::default(),
        Script::default()
            .offers("STARTTLS")
            .at("STARTTLS", Act::Say("454 4.7.0 not now")),
        Script::default()
            .offers("STARTTLS")
            .at("STARTTLS", Act::Say("502 what?")),
    ] {
        let stub = Stub::start(script).await;
        let outcome = mailer(&protected(&stub, Security::StartTls, &root))
            .send(&mail())
            .await;
        assert!(!is_permanent(&outcome));
        let commands = stub.commands();
        assert!(commands.iter().all(|said| {
            ["EHLO", "STARTTLS", "QUIT"]
                .iter()
                .any(|verb| said.starts_with(verb))
        }));
    }
}

#[tokio::test]
async fn a_certificate_has_to_be_trusted_and_the_servers_own() {
    let (_, stranger) = server_for("127.0.0.1");
    let (acceptor, root) = server_for("mail.example.com");
    for root in [&stranger, &root] {
        let starttls = Script::default().offers("STARTTLS").tls(acceptor.clone());
        let first = Script::default().tls_first(acceptor.clone());
        for (script, security) in [(starttls, Security::StartTls), (first, Security::Tls)] {
            let stub = Stub::start(script).await;
            let outcome = mailer(&protected(&stub, security, root)).send(&mail()).await;
            assert!(!is_permanent(&outcome));
            let text = error_text(&outcome.unwrap_err());
            assert!(text.contains("certificate"), "{text}");
            assert!(stub.contents().is_empty());
        }
    }
}

#[tokio::test]
async fn replies_slipped_in_before_tls_do_not_count_behind_it() {
    let (acceptor, root) = server_for("127.0.0.1");
    let slipped =
        "220 go ahead\r\n250 slipped.example.com\r\n250 fine\r\n250 fine\r\n354 go on\r\n250 queued";
    let script = Script::default()
        .offers("STARTTLS")
        .tls(acceptor)
        .at("STARTTLS", Act::Say(slipped));
    let stub = Stub::start(script).await;
    let outcome = mailer(&protected(&stub, Security::StartTls, &root))
        .send(&mail())
        .await;
    assert!(!is_permanent(&outcome));
    assert_eq!(stub.commands(), ["EHLO api.example.com", "STARTTLS"]);
}

#[test]
fn certificates_are_read_at_the_start() {
    let mut settings = SmtpSettings::new("mail.example.com");
    settings.extra_roots = Some("-----BEGIN CERTIFICATE-----\nnone\n-----END CERTIFICATE-----\n".to_owned());
    let refusal = SmtpMailer::new(&sender(), &settings, clock()).err();
    assert!(matches!(refusal, Some(SettingsError::Tls(_))));
}
