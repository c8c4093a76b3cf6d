//! Headers that a collector wants, such as a key of its service.

use std::fmt;

use reqwest::header::{CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderName, HeaderValue, TRANSFER_ENCODING};
use secrecy::{ExposeSecret, SecretString};

/// A header whose value is never shown.
#[derive(Clone)]
pub struct Header {
    pub(crate) name: HeaderName,
    pub(crate) value: HeaderValue,
}

/// A text that is no header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("each one must be `<name>=<value>`, a header that HTTP does not need for itself")]
pub struct NoHeader;

impl Header {
    /// Reads `<name>=<value>`.
    pub fn parse(text: &SecretString) -> Result<Self, NoHeader> {
        let (name, value) = text.expose_secret().split_once('=').ok_or(NoHeader)?;
        let name = HeaderName::from_bytes(name.trim().as_bytes()).map_err(|_| NoHeader)?;
        let mut value = HeaderValue::from_str(value.trim()).map_err(|_| NoHeader)?;
        value.set_sensitive(true);
        if value.is_empty() || [CONTENT_TYPE, CONTENT_LENGTH, HOST, TRANSFER_ENCODING].contains(&name) {
            return Err(NoHeader);
        }
        Ok(Self { name, value })
    }
}

impl fmt::Debug for Header {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Header")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Header, NoHeader> {
        Header::parse(&text.into())
    }

    #[test]
    fn a_header_is_read_and_its_value_not_shown() {
        let header = parse("Authorization=Basic aHVzaA==").unwrap();
        assert_eq!(
            (header.name.as_str(), header.value.to_str().unwrap()),
            ("authorization", "Basic aHVzaA==")
        );
        assert!(!format!("{header:?} {:?}", header.value).contains("aHVzaA"));
    }

    #[test]
    fn what_is_no_header_is_refused() {
        for text in [
            "",
            "x-key",
            "x-key=",
            "=value",
            "x key=value",
            "x-key=two\nlines",
            "Content-Type=text/plain",
        ] {
            assert_eq!(parse(text).unwrap_err(), NoHeader, "{text}");
        }
    }
}
