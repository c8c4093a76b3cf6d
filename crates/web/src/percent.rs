//! Strict percent-decoding (RFC 3986 §2.1): what the lenient decoders let through is refused.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;

/// The text behind the percent-encoding, or nothing where a `%` is not followed by two hexadecimal digits, or the
/// result is no UTF-8 or contains NUL. Borrows where there is nothing to decode.
pub fn decode(text: &str) -> Option<Cow<'_, str>> {
    let mut rest = text.split('%');
    let _before_the_first = rest.next();
    let is_escape = |after: &str| after.bytes().take(2).filter(u8::is_ascii_hexdigit).count() == 2;
    if !rest.all(is_escape) {
        return None;
    }
    percent_decode_str(text)
        .decode_utf8()
        .ok()
        .filter(|decoded| !decoded.contains('\0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn good_text_is_decoded() {
        for (text, decoded) in [
            ("", ""),
            ("plain+text", "plain+text"),
            ("%C5%bc%25x", "ż%x"),
            ("a%20b", "a b"),
        ] {
            assert_eq!(decode(text).as_deref(), Some(decoded), "{text}");
        }
    }

    #[test]
    fn broken_text_is_refused() {
        for text in ["%", "%4", "%4x", "%%41", "a%", "%c5", "%00", "%ff", "%+1"] {
            assert_eq!(decode(text), None, "{text}");
        }
    }
}
