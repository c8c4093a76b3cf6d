//! Mails, a sender, a clock, and a parser of mails.

use std::{sync::Arc, time::Duration};

use accounts::{AccountMail, LinkKind};
use adapter_mail::{FolderMailer, Security, SenderSettings, SmtpMailer, SmtpSettings};
use chrono::TimeDelta;
use kernel::{Clock, Mail, MailId, Mailer, SendError};
use mail_parser::{MessageParser, MimeHeaders as _};
use orders::{Carrier, OrderNumber, ShipmentMail, TrackingNumber};
use testkit::{ManualClock, SmtpServer};
use uuid::Uuid;

pub(crate) fn clock() -> Arc<dyn Clock> {
    Arc::new(ManualClock::at("2026-03-07T09:05:01Z"))
}

pub(crate) fn sender() -> SenderSettings {
    SenderSettings {
        name: "Księgarnia Żółw".to_owned(),
        address: "sklep@zolw.example.pl".to_owned(),
        product: "Żółw API".to_owned(),
    }
}

/// A mail with a fixed id.
pub(crate) fn mail() -> ShipmentMail {
    ShipmentMail {
        id: MailId::from(Uuid::from_u128(0x0197_a5c4_8b1e_7c3a_9d2f_4e5b_6a7c_8d9e)),
        order: Uuid::from_u128(7).into(),
        number: OrderNumber::new("PS-2026-000123".to_owned()).unwrap(),
        to: "zaneta@example.com".to_owned(),
        name: Some("Żaneta Łęcka".to_owned()),
        carrier: Carrier::Dhl,
        tracking_number: TrackingNumber::new("JJD000-390-1234".to_owned()).unwrap(),
        is_correction: false,
    }
}

/// The same mail with another id.
pub(crate) fn another(number: u128) -> ShipmentMail {
    ShipmentMail {
        id: MailId::from(Uuid::from_u128(number)),
        ..mail()
    }
}

/// A mail about an account, with a conspicuous link.
pub(crate) fn account_mail(kind: LinkKind) -> AccountMail {
    AccountMail {
        id: MailId::from(Uuid::from_u128(0x0197_a5c4_8b1e_7c3a_9d2f_4e5b_6a7c_8d9f)),
        seller: Uuid::from_u128(8).into(),
        kind,
        to: "biuro@imbryk.example.pl".to_owned(),
        name: "Imbryk & Spółka".to_owned(),
        url: format!("https://api.example.pl/panel/{}/ps_ln_SECRET", kind.as_str()),
        expires_at: clock().now() + TimeDelta::weeks(1),
    }
}

/// Plain SMTP to a stub, with timeouts short enough for a test.
pub(crate) fn settings(port: u16) -> SmtpSettings {
    SmtpSettings {
        port: Some(port),
        security: Security::Plain,
        hello_name: Some("api.example.com".to_owned()),
        timeout: Duration::from_secs(10),
        ..SmtpSettings::new("127.0.0.1")
    }
}

/// Like `settings`, with shorter timeouts, for servers that stay silent.
pub(crate) fn short_timeout(port: u16) -> SmtpSettings {
    SmtpSettings {
        timeout: Duration::from_millis(150),
        acceptance_timeout: Duration::from_millis(150),
        ..settings(port)
    }
}

pub(crate) fn mailer(settings: &SmtpSettings) -> SmtpMailer {
    SmtpMailer::new(&sender(), settings, clock()).unwrap()
}

pub(crate) async fn send_to(stub: &SmtpServer, mail: &ShipmentMail) -> Result<(), SendError> {
    mailer(&settings(stub.port())).send(mail).await
}

/// The text of a sending's temporary error.
pub(crate) fn transient(outcome: Result<(), SendError>) -> String {
    assert!(!is_permanent(&outcome), "{outcome:?}");
    error_text(&outcome.unwrap_err())
}

/// Sends mails with these ids concurrently.
pub(crate) async fn send_at_once(mailer: &impl Mailer<ShipmentMail>, ids: [u128; 4]) {
    let mails = ids.map(another);
    let sendings = mails.iter().map(|mail| mailer.send(mail));
    for outcome in futures_util::future::join_all(sendings).await {
        outcome.unwrap();
    }
}

/// The bytes of a mail, written through a folder.
pub(crate) async fn rendered<M: Mail>(sender: &SenderSettings, mail: &M) -> Result<Vec<u8>, SendError>
where
    FolderMailer: Mailer<M>,
{
    let folder = tempfile::tempdir().unwrap();
    let mailer = FolderMailer::new(sender, folder.path(), clock()).unwrap();
    mailer.send(mail).await?;
    Ok(std::fs::read(folder.path().join(format!("{}.eml", mail.id()))).unwrap())
}

/// A mail as its recipient sees it.
pub(crate) struct Read {
    pub subject: String,
    pub from: (Option<String>, String),
    pub to: (Option<String>, String),
    pub headers: Vec<String>,
    pub text: String,
    pub html: String,
}

pub(crate) fn read(bytes: &[u8]) -> Read {
    let message = MessageParser::default().parse(bytes).unwrap();
    let kind = message.content_type().unwrap();
    assert_eq!((kind.ctype(), kind.subtype()), ("multipart", Some("alternative")));
    assert_eq!((message.text_body_count(), message.html_body_count()), (1, 1));
    let one = |list: Option<&mail_parser::Address<'_>>| {
        let list = list.unwrap().iter().collect::<Vec<_>>();
        assert_eq!(list.len(), 1, "one address");
        (
            list[0].name().map(str::to_owned),
            list[0].address().unwrap().to_owned(),
        )
    };
    let headers = message.headers().iter();
    Read {
        subject: message.subject().unwrap().to_owned(),
        from: one(message.from()),
        to: one(message.to()),
        headers: headers.map(|header| header.name().to_owned()).collect(),
        text: message.body_text(0).unwrap().replace("\r\n", "\n"),
        html: message.body_html(0).unwrap().replace("\r\n", "\n"),
    }
}

/// An error and its causes, as in a log.
pub(crate) fn error_text(error: &SendError) -> String {
    let mut text = format!("{error:?}");
    let mut next: Option<&dyn std::error::Error> = Some(error);
    while let Some(error) = next {
        text = format!("{text}\n{error}");
        next = error.source();
    }
    text
}

pub(crate) fn is_permanent(outcome: &Result<(), SendError>) -> bool {
    match outcome {
        Ok(()) => panic!("the mail was sent"),
        Err(SendError::Permanent(_)) => true,
        Err(SendError::Transient(_) | SendError::Interrupted) => false,
    }
}
