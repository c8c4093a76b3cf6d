//! A mail as it goes out: headers, plain text and HTML.

use std::{sync::Arc, time::SystemTime};

use askama::Template;
use kernel::Clock;
use lettre::{
    Address, Message,
    message::{
        Mailbox, MultiPart, SinglePart,
        header::{ContentTransferEncoding, ContentType, HeaderName, HeaderValue},
    },
};
use orders::{Carrier, SendError, ShipmentMail};

use crate::{
    address::{self, AddressRefusal, one_line},
    settings::{SenderSettings, SettingsError},
};

/// Writes letters in one sender's name.
pub(crate) struct LetterWriter {
    sender: Mailbox,
    shop: String,
    clock: Arc<dyn Clock>,
}

/// A letter, ready to be handed over.
pub(crate) struct Letter {
    /// The envelope's sender.
    pub from: Address,
    /// The envelope's one recipient.
    pub to: Address,
    /// Header and body (RFC 5322), lines ended by CRLF; ASCII unless the recipient's local part is not.
    pub bytes: Vec<u8>,
}

/// Why a mail cannot be written. Trying again changes nothing.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unwritable {
    #[error("the buyer's address cannot be written to")]
    Recipient(#[from] AddressRefusal),
    #[error("the text could not be rendered")]
    Text(#[from] askama::Error),
    #[error("the message could not be put together")]
    Message(#[from] lettre::error::Error),
}

impl From<Unwritable> for SendError {
    fn from(reason: Unwritable) -> Self {
        Self::Permanent(Box::new(reason))
    }
}

/// What both texts say.
struct Facts {
    shop: String,
    buyer: Option<String>,
    order_number: String,
    carrier: &'static str,
    tracking_number: String,
    tracking_link: Option<String>,
}

#[derive(Template)]
#[template(path = "shipment.txt")]
struct PlainText<'a> {
    facts: &'a Facts,
}

/// Everything shown in it is escaped, as askama does for `.html`.
#[derive(Template)]
#[template(path = "shipment.html")]
struct HtmlText<'a> {
    facts: &'a Facts,
}

impl LetterWriter {
    pub(crate) fn new(sender: &SenderSettings, clock: Arc<dyn Clock>) -> Result<Self, SettingsError> {
        let shop = one_line(&sender.name);
        let address =
            address::parse(&sender.address).map_err(|why| SettingsError::SenderAddress(why.into()))?;
        if shop.is_empty() {
            return Err(SettingsError::SenderName);
        }
        if !address.to_string().is_ascii() {
            return Err(SettingsError::SenderAddressBeyondAscii);
        }
        Ok(Self {
            sender: Mailbox::new(Some(shop.clone()), address),
            shop,
            clock,
        })
    }

    /// Writes the letter. Two letters of one mail differ in nothing but `Date`.
    pub(crate) fn write(&self, mail: &ShipmentMail) -> Result<Letter, Unwritable> {
        let to = address::parse(&mail.to)?;
        let facts = self.facts(mail);
        let texts = MultiPart::alternative()
            .boundary(boundary(mail))
            .singlepart(part(
                ContentType::TEXT_PLAIN,
                PlainText { facts: &facts }.render()?,
            ))
            .singlepart(part(ContentType::TEXT_HTML, HtmlText { facts: &facts }.render()?));
        let message = Message::builder()
            .message_id(Some(format!("<{}@{}>", mail.id, self.sender.email.domain())))
            .date(SystemTime::from(self.clock.now()))
            .from(self.sender.clone())
            .to(Mailbox::new(facts.buyer.clone(), to.clone()))
            .subject(format!(
                "Przesyłka z zamówienia {} jest w drodze",
                facts.order_number
            ))
            .raw_header(auto_submitted())
            .multipart(texts)?;
        Ok(Letter {
            from: self.sender.email.clone(),
            to,
            bytes: message.formatted(),
        })
    }

    fn facts(&self, mail: &ShipmentMail) -> Facts {
        let buyer = mail.name.as_deref().map(one_line);
        Facts {
            shop: self.shop.clone(),
            buyer: buyer.filter(|name| !name.is_empty()),
            order_number: one_line(mail.number.as_str()),
            carrier: carrier_name(mail.carrier),
            tracking_number: mail.tracking_number.as_str().to_owned(),
            tracking_link: mail.carrier.tracking_url(&mail.tracking_number),
        }
    }
}

/// The name that people know; the one that is no name reads as Polish.
fn carrier_name(carrier: Carrier) -> &'static str {
    match carrier {
        Carrier::Other => "inny",
        known => known.display_name(),
    }
}

/// Cannot occur in a quoted-printable text, where `=` is followed by hexadecimal digits or a line's end (RFC 2045 §6.7).
fn boundary(mail: &ShipmentMail) -> String {
    format!("=_{}", mail.id.uuid().simple())
}

/// Quoted-printable passes every server, keeps its lines short, and stays readable in the sandbox's files.
fn part(kind: ContentType, text: String) -> SinglePart {
    let builder = SinglePart::builder()
        .header(kind)
        .header(ContentTransferEncoding::QuotedPrintable);
    builder.body(text)
}

/// Keeps vacation notices and other responders quiet (RFC 3834 §5).
fn auto_submitted() -> HeaderValue {
    HeaderValue::new(
        HeaderName::new_from_ascii_str("Auto-Submitted"),
        "auto-generated".to_owned(),
    )
}
