//! Percent-encoding (RFC 3986 §2.1) and `application/x-www-form-urlencoded`, parsed strictly.
//!
//! Unlike in a query string, `+` is a space in a form (WHATWG URL §5.1), because browsers and OAuth libraries
//! encode forms that way.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;
use thiserror::Error;

/// The decoded pairs of a form, in the order sent.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Form(Vec<(String, String)>);

const MAX_FIELDS: usize = 64;

/// The body or query is not a form: broken percent-encoding, invalid UTF-8, NUL, or too many fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("The form must be percent-encoded UTF-8 without NUL, with at most {MAX_FIELDS} fields.")]
pub struct InvalidForm;

impl Form {
    /// Parses a form body, or a query string that is encoded as a form.
    pub fn parse(text: &[u8]) -> Result<Self, InvalidForm> {
        let text = std::str::from_utf8(text).map_err(|_| InvalidForm)?;
        let pairs = raw_pairs(text).map(|(name, value)| Some((form_decode(name)?, form_decode(value)?)));
        let pairs = pairs.take(MAX_FIELDS + 1).collect::<Option<Vec<_>>>();
        pairs
            .filter(|pairs| pairs.len() <= MAX_FIELDS)
            .map(Self)
            .ok_or(InvalidForm)
    }

    /// The first value of this name; it may be empty.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.pairs().find(|(key, _)| *key == name).map(|(_, value)| value)
    }

    /// The first name that occurs more than once, but for one that may.
    pub fn repeated(&self, repeatable: Option<&str>) -> Option<&str> {
        let mut earlier = std::collections::HashSet::with_capacity(self.0.len());
        self.pairs()
            .map(|(name, _)| name)
            .find(|name| Some(*name) != repeatable && !earlier.insert(*name))
    }

    pub fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

impl FromIterator<(String, String)> for Form {
    fn from_iter<I: IntoIterator<Item = (String, String)>>(pairs: I) -> Self {
        Self(pairs.into_iter().collect())
    }
}

impl std::fmt::Debug for Form {
    /// Forms carry secrets, so only the names are shown.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list()
            .entries(self.pairs().map(|(name, _)| name))
            .finish()
    }
}

/// The pairs of a form or a query string, not decoded. Empty ones are skipped.
pub fn raw_pairs(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let pairs = text.split('&').filter(|pair| !pair.is_empty());
    pairs.map(|pair| pair.split_once('=').unwrap_or((pair, "")))
}

/// The decoded name or value of a form; `None` as in [`percent_decode`].
pub fn form_decode(text: &str) -> Option<String> {
    percent_decode(&text.replace('+', " ")).map(Cow::into_owned)
}

/// The decoded text; `None` if a `%` is not followed by two hexadecimal digits, or the result is invalid
/// UTF-8 or contains NUL. Borrows if there is nothing to decode.
pub fn percent_decode(text: &str) -> Option<Cow<'_, str>> {
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
    fn debug_output_has_no_values() {
        let form = Form::parse(b"client_secret=pss_1").unwrap();
        assert_eq!(format!("{form:?}"), r#"["client_secret"]"#);
    }

    #[test]
    fn a_form_of_too_many_fields_is_read_no_further() {
        let form = |fields: usize| Form::parse("&&a=b".repeat(fields).as_bytes());
        assert_eq!(form(64).unwrap().pairs().count(), 64);
        assert_eq!(form(65), Err(InvalidForm));
    }

    #[test]
    fn broken_text_is_refused() {
        for text in ["%", "%4", "%4x", "%%41", "a%", "%c5", "%00", "%ff", "%+1"] {
            assert_eq!(percent_decode(text), None, "{text}");
        }
    }
}
