//! A seller's account.

use chrono::{DateTime, Utc};
use kernel::{Invalid, Redacted, SellerId, is_mailable};

const MAX_NAME: usize = 200;
const MAX_EMAIL: usize = 254; // bytes (RFC 5321 §4.5.3.1.3, without the angle brackets)
const NO_ADDRESS: &str = "must be an e-mail address such as shop@example.com";

/// Characters that look blank, although `char::escape_debug` leaves them as they are: see [`is_visible`].
const BLANK: &str = " \u{115f}\u{1160}\u{2800}\u{3164}\u{ffa0}";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seller {
    pub id: SellerId,
    /// The public number; ascending from 1.
    pub seller_no: i32,
    /// The business name.
    pub name: String,
    /// The e-mail address used to sign in.
    pub email: String,
    pub created_at: DateTime<Utc>,
    /// When the account was closed; its tokens are rejected from then on.
    pub closed_at: Option<DateTime<Utc>>,
}

/// A seller's name: 1 to 200 characters without control characters. At least one is visible, so that a consent
/// screen names its owner.
pub fn seller_name(name: String) -> Result<String, Invalid> {
    if !is_name(&name, MAX_NAME) {
        return Err(Invalid::new(format!(
            "must have 1 to {MAX_NAME} characters, at least one of them visible, and no control characters"
        )));
    }
    Ok(name)
}

/// Whether a name has a visible character, no control characters, and at most `most` characters.
pub(crate) fn is_name(name: &str, most: usize) -> bool {
    name.contains(is_visible) && !name.contains(char::is_control) && name.chars().count() <= most
}

/// False for white space, control and format characters, and accents: the standard library escapes all but
/// those in [`BLANK`].
fn is_visible(c: char) -> bool {
    !BLANK.contains(c) && c.escape_debug().count() == 1
}

/// A buyer's e-mail address, which may be one that no mail can be sent to: one `@` with text on both sides, at
/// most 254 bytes.
pub fn plausible_address(address: String) -> Result<String, Invalid> {
    let parts = address.split_once('@');
    let whole =
        parts.is_some_and(|(local, domain)| !local.is_empty() && !domain.is_empty() && !domain.contains('@'));
    let clean = !address
        .contains(|c: char| c.is_whitespace() || c.is_control() || matches!(c, '<' | '>' | ',' | ';'));
    if !whole || !clean || address.len() > MAX_EMAIL {
        return Err(Invalid::new(NO_ADDRESS));
    }
    Ok(address)
}

/// A seller's e-mail address: a plausible one to which mails can be sent.
pub fn email_address(address: String) -> Result<String, Invalid> {
    let address = plausible_address(address)?;
    if !is_mailable(&address) {
        return Err(Invalid::new(NO_ADDRESS));
    }
    Ok(address)
}

/// Whether two spellings given at sign-in mean the same account. Only the case of ASCII letters is ignored:
/// programs fold other letters differently, and every address that the database matches must also be counted
/// as the same one by the limiters ([`oauth::Subject::account`]).
pub fn is_same_address(one: &str, other: &str) -> bool {
    one.eq_ignore_ascii_case(other)
}

/// A password's hash in PHC string format. Never printed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PasswordHash(Redacted<String>);

impl PasswordHash {
    /// Accepts a hash made by a [`crate::PasswordHasher`].
    pub fn new(phc: String) -> Self {
        Self(Redacted(phc))
    }

    pub fn as_str(&self) -> &str {
        &self.0.0
    }
}

/// A seller to be registered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewSeller {
    /// The id, chosen by the caller.
    pub id: SellerId,
    /// See [`seller_name`].
    pub name: String,
    /// See [`email_address`]; unique among sellers, ignoring case.
    pub email: String,
    /// None until the seller sets a password.
    pub password: Option<PasswordHash>,
    pub created_at: DateTime<Utc>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        for fine in ["a@b", "shop+api@example.com", "ż@przykład.pl"] {
            assert_eq!(email_address(fine.to_owned()).unwrap(), fine);
        }
        let longest = format!("a@{}{}", "b.".repeat(95), "b".repeat(62));
        assert!(email_address(longest.clone()).is_ok());
        assert!(email_address(format!("a{longest}")).is_err());
        for refused in [
            "",
            "@",
            "a@",
            "@b",
            "a@b@c",
            "a b@c",
            "a@b\n",
            "<a@b>",
            "a\u{85}@b",
            "a@b,c@d",
        ] {
            assert!(plausible_address(refused.to_owned()).is_err(), "{refused}");
            assert!(email_address(refused.to_owned()).is_err(), "{refused}");
        }
        for unmailable in [
            "a.@b", "a..a@b", "a\"a@b", "a(b)@c", "a@b..c", "a@-b", "a@[::1]", "a@b.c\\",
        ] {
            assert_eq!(plausible_address(unmailable.to_owned()).unwrap(), unmailable);
            assert!(email_address(unmailable.to_owned()).is_err(), "{unmailable}");
        }
    }

    #[test]
    fn names() {
        let longest = "ż".repeat(200);
        assert_eq!(seller_name(longest.clone()).unwrap(), longest);
        assert!(seller_name("ż".repeat(201)).is_err());
        let hidden = " \u{a0}\u{ad}\u{301}\u{200b}\u{202e}\u{2066}\u{feff}\u{2800}\u{3164}";
        for refused in ["", " ", "\u{200b}", hidden, "Kettles\n", "\u{1b}[2J", "K\u{9b}"] {
            assert!(seller_name(refused.to_owned()).is_err(), "{refused:?}");
        }
        for fine in ["O'Neil", "日本", "!", "Zwo\u{308}lf"] {
            assert!(seller_name(fine.to_owned()).is_ok(), "{fine}");
        }
    }

    #[test]
    fn debug_shows_no_hash() {
        let hash = PasswordHash::new("$argon2id$v=19$x".to_owned());
        assert_eq!(hash.as_str(), "$argon2id$v=19$x");
        assert_eq!(format!("{hash:?}"), "PasswordHash(…)");
    }

    #[test]
    fn spellings_that_find_an_account_share_its_rate_limit() {
        let spellings = [
            "Ikea@Shop.example",
            "iKEA@shop.EXAMPLE",
            "İkea@shop.example",
            "i\u{212a}ea@shop.example",
        ];
        let subject = oauth::Subject::account;
        for one in spellings {
            for other in spellings {
                assert_eq!(is_same_address(one, other), subject(one) == subject(other));
            }
        }
        let same = spellings.map(|other| is_same_address(spellings[0], other));
        assert_eq!(same, [true, true, false, false]);
    }
}
