//! The mail with a one-time link to a seller's account, in Polish and English: the seller's language is not
//! known yet.

use accounts::{AccountMail, LinkKind};
use askama::Template;

use crate::message::{Content, Text};

struct Facts<'a> {
    subject: String,
    shop: &'a str,
    seller: Option<&'a str>,
    email: &'a str,
    link: &'a str,
    /// The seller forgot the password; otherwise the account is new.
    is_reset: bool,
    /// The link's expiry in UTC, to the minute.
    until: String,
}

#[derive(Template)]
#[template(path = "account.txt")]
struct PlainText<'a> {
    facts: &'a Facts<'a>,
}

/// askama escapes all values, as it does for `.html`.
#[derive(Template)]
#[template(path = "account.html")]
struct HtmlText<'a> {
    facts: &'a Facts<'a>,
}

impl Content for AccountMail {
    fn to(&self) -> &str {
        &self.to
    }

    fn recipient(&self) -> Option<&str> {
        Some(&self.name)
    }

    fn text(&self, shop: &str, product: &str, recipient: Option<&str>) -> Result<Text, askama::Error> {
        let is_reset = self.kind == LinkKind::PasswordReset;
        let subject = if is_reset {
            "nowe hasło do panelu sprzedawcy / new password for the seller panel"
        } else {
            "zaproszenie do panelu sprzedawcy / invitation to the seller panel"
        };
        let facts = Facts {
            subject: format!("{product}: {subject}"),
            shop,
            seller: recipient,
            email: &self.to,
            link: &self.url,
            is_reset,
            until: self.expires_at.format("%Y-%m-%d %H:%M UTC").to_string(),
        };
        Ok(Text {
            plain: PlainText { facts: &facts }.render()?,
            html: HtmlText { facts: &facts }.render()?,
            subject: facts.subject,
        })
    }
}
