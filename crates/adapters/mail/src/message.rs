//! Renders a mail: headers, plain text and HTML.

use std::{sync::Arc, time::SystemTime};

use kernel::{Clock, Mail, MailId, SendError};
use lettre::message::header::{ContentTransferEncoding, ContentType, HeaderName, HeaderValue};
use lettre::message::{Mailbox, MultiPart, SinglePart};
use lettre::{Address, Message};

use crate::address;
use crate::address::{InvalidAddress, one_line};
use crate::settings::{SenderSettings, SettingsError};

/// Renders mails of one sender.
pub(crate) struct Renderer {
    sender: Mailbox,
    shop: String,
    product: String,
    clock: Arc<dyn Clock>,
}

pub(crate) struct Rendered {
    /// The envelope's sender.
    pub(crate) from: Address,
    /// The envelope's recipient.
    pub(crate) to: Address,
    /// Header and body (RFC 5322) with CRLF; ASCII unless the recipient's local part is not.
    pub(crate) bytes: Vec<u8>,
}

/// A kind of mail.
pub(crate) trait Content: Mail + Sync {
    /// The recipient's address, as untrusted input.
    fn to(&self) -> &str;

    /// The recipient's name, as untrusted input.
    fn recipient(&self) -> Option<&str>;

    /// The mail's texts. `recipient` has one line and at most 100 characters.
    fn text(&self, shop: &str, product: &str, recipient: Option<&str>) -> Result<Text, askama::Error>;
}

pub(crate) struct Text {
    pub(crate) subject: String,
    pub(crate) plain: String,
    pub(crate) html: String,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum RenderError {
    #[error("invalid recipient address")]
    Recipient(#[from] InvalidAddress),
    #[error("the text could not be rendered")]
    Text(#[from] askama::Error),
    #[error("the message could not be built")]
    Message(#[from] lettre::error::Error),
}

impl From<RenderError> for SendError {
    fn from(error: RenderError) -> Self {
        Self::Permanent(Box::new(error))
    }
}

impl Renderer {
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
            product: one_line(&sender.product),
            clock,
        })
    }

    /// Repeated renderings of a mail differ only in `Date`.
    pub(crate) fn render(&self, mail: &impl Content) -> Result<Rendered, RenderError> {
        let to = address::parse(mail.to())?;
        let recipient = mail.recipient().map(one_line).filter(|name| !name.is_empty());
        let text = mail.text(&self.shop, &self.product, recipient.as_deref())?;
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
        Ok(Rendered {
            from: self.sender.email.clone(),
            to,
            bytes: message.formatted(),
        })
    }
}

/// The boundary cannot occur in quoted-printable text, where hexadecimal digits or a line break follow `=`
/// (RFC 2045 §6.7).
fn boundary(mail: MailId) -> String {
    format!("=_{}", mail.uuid().simple())
}

/// Quoted-printable passes every server, keeps lines short, and is readable in the sandbox's files.
fn part(kind: ContentType, text: String) -> SinglePart {
    let builder = SinglePart::builder()
        .header(kind)
        .header(ContentTransferEncoding::QuotedPrintable);
    builder.body(text)
}

/// Suppresses vacation notices and other automatic replies (RFC 3834 §5).
fn auto_submitted() -> HeaderValue {
    HeaderValue::new(
        HeaderName::new_from_ascii_str("Auto-Submitted"),
        "auto-generated".to_owned(),
    )
}
