//! The rules for an offer's title, handle, URLs and external id.

use kernel::Invalid;
use url::Url;

const MAX_TITLE: usize = 500;
const MAX_HANDLE: usize = 200;
const MAX_TEXT: usize = 500;
const MAX_ADDRESS: usize = 2048;
/// The most characters of an external id.
pub const MAX_EXTERNAL_ID: usize = 100;

/// A title: 1 to 500 characters, not all of them white space.
pub fn title(text: String) -> Result<String, Invalid> {
    if text.trim().is_empty() {
        return Err(Invalid::new("must not be empty"));
    }
    within(text, MAX_TITLE)
}

/// A URL slug: 1 to 200 characters without white space, `/`, `?` or `#`.
pub fn handle(text: String) -> Result<String, Invalid> {
    if text.is_empty() || text.contains(|c: char| c.is_whitespace() || matches!(c, '/' | '?' | '#')) {
        return Err(Invalid::new(
            "must be a URL slug: no white space, no '/', '?' or '#', and not empty",
        ));
    }
    within(text, MAX_HANDLE)
}

/// Any text of at most 500 characters.
pub fn short_text(text: String) -> Result<String, Invalid> {
    within(text, MAX_TEXT)
}

/// A seller's own name for an offer: 1 to 100 characters, none of them a control character.
pub fn external_id(text: String) -> Result<String, Invalid> {
    if text.is_empty() || text.contains(char::is_control) {
        return Err(Invalid::new(
            "must not be empty, and must have no control characters",
        ));
    }
    within(text, MAX_EXTERNAL_ID)
}

/// An absolute `http` or `https` URI (RFC 3986: ASCII, without user information) of at most 2048 characters.
pub fn web_address(text: String) -> Result<String, Invalid> {
    let invalid = || {
        Invalid::new(
            "must be an absolute URI that begins with https:// or http://, in ASCII, without user information",
        )
    };
    let rest = text
        .strip_prefix("http://")
        .or_else(|| text.strip_prefix("https://"));
    let spelled_out = rest.is_some_and(|rest| !rest.starts_with('/') && !authority(rest).contains('@'));
    let ascii = text
        .bytes()
        .all(|byte| byte.is_ascii_graphic() && !b"\\\"<>^`{|}".contains(&byte));
    if !spelled_out || !ascii {
        return Err(invalid());
    }
    let text = within(text, MAX_ADDRESS)?;
    // A parsable text that begins so has that scheme and a non-empty host. Last: an `xn--` label
    // takes time quadratic in its length.
    Url::parse(&text).map_err(|_| invalid())?;
    Ok(text)
}

fn authority(rest: &str) -> &str {
    rest.split(['/', '?', '#']).next().unwrap_or(rest)
}

fn within(text: String, max: usize) -> Result<String, Invalid> {
    if text.chars().count() > max {
        return Err(Invalid::new(format!("must have at most {max} characters")));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_absolute_and_stored_as_given() {
        let given = "https://shop.example/p/%C5%BC%C3%B3%C5%82w?x=1&mail=a@b";
        assert_eq!(web_address(given.to_owned()).unwrap(), given);
        let refused =
            "shop.example/p //shop.example ftp://shop.example https:/shop https:// https:///p https://?p
            https://:443/p https://[::1/p http:shop.example/p https://shop.example/żółw
            https://user:word@shop.example/ https://shop.example/{id}";
        for refused in refused.split_whitespace().chain(["", "https://a b"]) {
            assert!(web_address(refused.to_owned()).is_err(), "{refused}");
        }
        let long = web_address(format!("https://shop.example/{}", "x".repeat(2048)));
        assert!(long.unwrap_err().to_string().contains("2048"));
    }

    #[test]
    fn an_external_id_has_no_control_characters() {
        for good in [" ", "SKU 7/ż+ö🫖\u{2028}"] {
            assert_eq!(external_id(good.to_owned()).unwrap(), good);
        }
        for refused in ["", "a\tb", "\n", "a\u{7f}", "\u{85}"] {
            assert!(external_id(refused.to_owned()).is_err(), "{refused:?}");
        }
    }

    #[test]
    fn lengths_count_characters() {
        assert!(title("ż".repeat(500)).is_ok());
        assert!(title("ż".repeat(501)).is_err());
        assert!(title("  ".to_owned()).is_err());
        assert!(handle("red-shoes".to_owned()).is_ok());
        assert!(handle("red shoes".to_owned()).is_err());
        assert_eq!(short_text("ż".repeat(500)), Ok("ż".repeat(500)));
        assert!(short_text("ż".repeat(501)).is_err());
        assert_eq!(short_text(String::new()), Ok(String::new()));
        assert!(external_id("ż".repeat(100)).is_ok());
        assert!(external_id("ż".repeat(101)).is_err());
    }
}
