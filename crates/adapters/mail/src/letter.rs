//! A mail as it goes out: headers, plain text and HTML.

use std::{sync::Arc, time::SystemTime};

use kernel::{Clock, Mail, MailId, SendError};
use lettre::{
    Address, Message,
    message::{
        Mailbox, MultiPart, SinglePart,
        header::{ContentTransferEncoding, ContentType, HeaderName, HeaderValue},
    },
};

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

/// A mail that can be put into words.
pub(crate) trait Told: Mail {
    /// Where to.
    fn to(&self) -> &str;

    /// Whom it speaks to. It comes from outside, and may be anything.
    fn recipient(&self) -> Option<&str>;

    /// What it says, in the shop's name, to somebody of this name.
    fn text(&self, shop: &str, recipient: Option<&str>) -> Result<Text, askama::Error>;
}

/// What a mail says.
pub(crate) struct Text {
    /// On one line.
    pub(crate) subject: String,
    /// The plain text.
    pub(crate) plain: String,
    /// The same in HTML.
    pub(crate) html: String,
}

/// Why a mail cannot be written. Trying again changes nothing.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unwritable {
    #[error("the recipient's address cannot be written to")]
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
    pub(crate) fn write(&self, mail: &impl Told) -> Result<Letter, Unwritable> {
        let to = address::parse(mail.to())?;
        let recipient = mail.recipient().map(one_line).filter(|name| !name.is_empty());
        let text = mail.text(&self.shop, recipient.as_deref())?;
        let texts = MultiPart::alternative()
            .boundary(boundary(mail.id()))
            .singlepart(part(ContentType::TEXT_PLAIN, text.plain))
            .singlepart(part(ContentType::TEXT_HTML, text.html));
        let message = Message::builder()
            .message_id(Some(format!("<{}@{}>", mail.id(), self.sender.email.domain())))
            .date(SystemTime::from(self.clock.now()))
            .from(self.sender.clone())
            .to(Mailbox::new(recipient, to.clone()))
            .subject(text.subject)
            .raw_header(auto_submitted())
            .multipart(texts)?;
        Ok(Letter {
            from: self.sender.email.clone(),
            to,
            bytes: message.formatted(),
        })
    }
}

/// Cannot occur in a quoted-printable text, where `=` is followed by hexadecimal digits or a line's end (RFC 2045 §6.7).
fn boundary(mail: MailId) -> String {
    format!("=_{}", mail.uuid().simple())
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
