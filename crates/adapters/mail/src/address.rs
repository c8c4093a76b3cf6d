//! Makes untrusted addresses and names safe for headers and SMTP commands.

use lettre::{Address, address};
use url::Host;

/// Maximum length in bytes: a path (RFC 5321 §4.5.3.1.3) without the angle brackets.
const MAX_ADDRESS: usize = 254;

/// Maximum length in characters.
const MAX_NAME: usize = 100;

/// Errors of an address. Their text does not contain it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum InvalidAddress {
    #[error("the address is longer than {MAX_ADDRESS} bytes")]
    TooLong,
    /// Such characters could end a header or a command.
    #[error("the address contains white space or control characters")]
    Unprintable,
    #[error("the address is malformed")]
    Malformed(#[source] address::AddressError),
}

/// Parses a single address. Converts a non-ASCII domain to A-labels (RFC 5890), which every server accepts. A
/// non-ASCII local part stays unchanged and needs SMTPUTF8.
pub(crate) fn parse(text: &str) -> Result<Address, InvalidAddress> {
    if text.len() > MAX_ADDRESS {
        return Err(InvalidAddress::TooLong);
    }
    if text.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return Err(InvalidAddress::Unprintable);
    }
    let address = match text.rsplit_once('@') {
        Some((local, domain)) if !domain.is_ascii() => {
            let invalid = |_| InvalidAddress::Malformed(address::AddressError::InvalidDomain);
            Address::new(local, Host::parse(domain).map_err(invalid)?.to_string())
        }
        _ => text.parse(),
    };
    address.map_err(InvalidAddress::Malformed)
}

/// Replaces line breaks, control characters and direction marks by spaces, collapses spaces, and truncates to
/// 100 characters.
pub(crate) fn one_line(text: &str) -> String {
    let visible = text.replace(is_control_or_direction, " ");
    let words = visible.split_whitespace().collect::<Vec<_>>().join(" ");
    let cut = words.chars().take(MAX_NAME).collect::<String>();
    cut.trim_end().to_owned()
}

fn is_control_or_direction(c: char) -> bool {
    let turns_direction =
        matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    c.is_control() || turns_direction
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_address_is_accepted_and_a_domain_beyond_ascii_is_encoded() {
        for (address, parsed) in [
            (
                "Anna.Nowak+sklep@poczta.example.pl",
                "Anna.Nowak+sklep@poczta.example.pl",
            ),
            ("żółw@example.com", "żółw@example.com"),
            ("a@[192.0.2.1]", "a@[192.0.2.1]"),
            ("anna@żółw.pl", "anna@xn--w-uga1v8h.pl"),
        ] {
            assert_eq!(parse(address).unwrap().to_string(), parsed);
        }
    }

    #[test]
    fn anything_but_one_address_is_refused() {
        let long = format!("{}@example.com", "a".repeat(65));
        let longer = format!("a@{}.com", "b.".repeat(150));
        for refused in [
            "",
            "anna",
            "@example.com",
            "anna@",
            "anna@example.com ",
            "anna@example.com\r\nBcc: eve@example.com",
            "anna@example.com\nRCPT TO:<eve@example.com>",
            "\"anna\r\nDATA\"@example.com",
            "anna@example.com,eve@example.com",
            "anna@example.com>,<eve@example.com",
            "Anna<anna@example.com>",
            "<anna@example.com>",
            "anna@example.com>",
            "anna@exam\u{2028}ple.com",
            "anna@ż\u{0}łw.pl",
            "anna@żółw<.pl",
            &long,
            &longer,
        ] {
            assert!(parse(refused).is_err(), "{refused:?}");
        }
    }

    #[test]
    fn a_name_stays_on_its_line() {
        assert_eq!(one_line("  Żaneta\t Łęcka "), "Żaneta Łęcka");
        assert_eq!(
            one_line("Anna\r\nBcc: eve@example.com"),
            "Anna Bcc: eve@example.com"
        );
        assert_eq!(one_line("Anna\u{2028}\u{202e}x\u{85}y\u{0}"), "Anna x y");
        assert_eq!(one_line(&"ż".repeat(200)).chars().count(), 100);
        assert_eq!(one_line("\r\n"), "");
    }
}
