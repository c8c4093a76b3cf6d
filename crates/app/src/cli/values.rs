//! The kinds of value that arguments have, refused in words that say what to give.

use std::{num::NonZeroU32, str::FromStr};

use oauth::{ClientId, RateLimit};
use uuid::Uuid;

/// An id.
pub(super) fn id(text: &str) -> Result<Uuid, String> {
    text.parse()
        .map_err(|_| "must be an id such as 0197a5c4-8b1e-7c3a-9d2f-4e5b6a7c8d9e".to_owned())
}

/// What the audit log can tell of: it has ids of several forms, and none of them has white space.
pub(super) fn subject(text: &str) -> Result<String, String> {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    if text.is_empty() || !text.bytes().all(fits) {
        return Err(
            "must be an id such as 0197a5c4-8b1e-7c3a-9d2f-4e5b6a7c8d9e, a client_id such as \
             psa_0197a5c48b1e7c3a9d2f4e5b6a7c8d9e, or the id of a sealing key"
                .to_owned(),
        );
    }
    Ok(text.to_owned())
}

/// True for the id of a thing in the database, which may be there without the log telling of it.
pub(super) fn is_id(text: &str) -> bool {
    text.parse::<Uuid>().is_ok() || text.parse::<ClientId>().is_ok()
}

/// A seller, as people name one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SellerName {
    Id(Uuid),
    Number(i32),
    Email(String),
}

impl FromStr for SellerName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(id) = text.parse() {
            return Ok(Self::Id(id));
        }
        if let Some(number) = text.parse::<i32>().ok().filter(|number| *number > 0) {
            return Ok(Self::Number(number));
        }
        if text.contains('@') {
            return Ok(Self::Email(text.to_owned()));
        }
        Err("must be a seller's id such as 0197a5c4-8b1e-7c3a-9d2f-4e5b6a7c8d9e, number such as 17, or e-mail address".to_owned())
    }
}

impl std::fmt::Display for SellerName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Id(id) => write!(f, "{id}"),
            Self::Number(number) => write!(f, "{number}"),
            Self::Email(email) => f.write_str(email),
        }
    }
}

/// An application, as people name one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ApplicationName {
    Id(ClientId),
    Name(String),
}

impl FromStr for ApplicationName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.trim().is_empty() {
            return Err(
                "must be a client_id such as psa_0197a5c48b1e7c3a9d2f4e5b6a7c8d9e, or a name".to_owned(),
            );
        }
        Ok(text
            .parse::<ClientId>()
            .map_or_else(|_| Self::Name(text.to_owned()), Self::Id))
    }
}

impl std::fmt::Display for ApplicationName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Id(client_id) => write!(f, "{client_id}"),
            Self::Name(name) => write!(f, "{name:?}"),
        }
    }
}

/// A client id.
pub(super) fn client_id(text: &str) -> Result<ClientId, String> {
    text.parse()
        .map_err(|_| "must be a client_id such as psa_0197a5c48b1e7c3a9d2f4e5b6a7c8d9e".to_owned())
}

/// The largest limit that an operator can set, in requests a minute (D104).
const RATE_LIMIT_MAX: u32 = 10_000_000;

/// A rate limit.
pub(super) fn rate_limit(text: &str) -> Result<RateLimit, String> {
    if text == "default" {
        return Ok(RateLimit::Default);
    }
    let own = text.parse::<NonZeroU32>().ok();
    own.filter(|limit| limit.get() <= RATE_LIMIT_MAX)
        .map(RateLimit::Own)
        .ok_or_else(|| format!("must be 1 to {RATE_LIMIT_MAX} requests a minute, or `default`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sellers_are_known_by_id_number_and_address() {
        let id = "0197a5c4-8b1e-7c3a-9d2f-4e5b6a7c8d9e";
        for (text, name) in [
            (id, SellerName::Id(id.parse().unwrap())),
            ("17", SellerName::Number(17)),
            ("a@b.example", SellerName::Email("a@b.example".to_owned())),
        ] {
            assert_eq!(text.parse::<SellerName>(), Ok(name.clone()));
            assert_eq!(name.to_string(), text);
        }
        for text in ["", "0", "-1", "Kettles", "99999999999"] {
            assert!(text.parse::<SellerName>().is_err(), "{text}");
        }
    }

    #[test]
    fn what_is_no_client_id_is_a_name() {
        let id = "psa_0197a5c48b1e7c3a9d2f4e5b6a7c8d9e";
        let read = id.parse::<ApplicationName>();
        assert_eq!(read, Ok(ApplicationName::Id(id.parse().unwrap())));
        let name = ApplicationName::Name("psa_x".to_owned());
        assert_eq!("psa_x".parse::<ApplicationName>(), Ok(name));
        assert!(" ".parse::<ApplicationName>().is_err());
    }

    #[test]
    fn limits_have_bounds() {
        assert_eq!(rate_limit("default"), Ok(RateLimit::Default));
        assert_eq!(
            rate_limit("10000000").map(RateLimit::own),
            Ok(NonZeroU32::new(RATE_LIMIT_MAX))
        );
        for text in ["0", "10000001", "-1", "many"] {
            assert!(rate_limit(text).is_err(), "{text}");
        }
    }
}
