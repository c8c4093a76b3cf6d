//! What a seller reads of a link to the account, in Polish and in English: nobody knows yet which the seller prefers.

use askama::Template;
use oauth::{AccountMail, LinkKind};

use crate::letter::{Text, Told};

/// What both texts say.
struct Facts<'a> {
    shop: &'a str,
    seller: Option<&'a str>,
    email: &'a str,
    link: &'a str,
    /// Whether it answers somebody who has forgotten the password; else the account is new.
    is_reset: bool,
    /// When the link ends, to the minute, in UTC.
    until: String,
}

#[derive(Template)]
#[template(path = "account.txt")]
struct PlainText<'a> {
    facts: &'a Facts<'a>,
}

/// Everything shown in it is escaped, as askama does for `.html`.
#[derive(Template)]
#[template(path = "account.html")]
struct HtmlText<'a> {
    facts: &'a Facts<'a>,
    subject: &'a str,
}

impl Told for AccountMail {
    fn to(&self) -> &str {
        &self.to
    }

    fn recipient(&self) -> Option<&str> {
        Some(&self.name)
    }

    fn text(&self, shop: &str, recipient: Option<&str>) -> Result<Text, askama::Error> {
        let is_reset = self.kind == LinkKind::PasswordReset;
        let facts = Facts {
            shop,
            seller: recipient,
            email: &self.to,
            link: &self.url,
            is_reset,
            until: self.expires_at.format("%Y-%m-%d %H:%M UTC").to_string(),
        };
        let subject = if is_reset {
            "Nowe hasło do panelu sprzedawcy / New password for the seller panel"
        } else {
            "Zaproszenie do panelu sprzedawcy / Invitation to the seller panel"
        };
        Ok(Text {
            subject: subject.to_owned(),
            plain: PlainText { facts: &facts }.render()?,
            html: HtmlText {
                facts: &facts,
                subject,
            }
            .render()?,
        })
    }
}
