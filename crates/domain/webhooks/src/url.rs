//! The URL of a subscription: parsed once, stored character by character (contract: Address rules, D54, D92).

use std::fmt;
use std::net::IpAddr;

use kernel::Invalid;
use url::Url;

use crate::{AddressPolicy, address_rules::is_loopback};

/// Maximum length of a URL in characters.
pub const MAX_URL: u16 = 2048;
/// Maximum length of a host name (RFC 1035 §2.3.4), without the final dot.
const MAX_NAME: usize = 253;
/// Maximum length of a label of a host name (RFC 1035 §2.3.4).
const MAX_LABEL: usize = 63;

/// The host of a URL. Every spelling is parsed into one of these two. This value is resolved, vetted and
/// connected to: the text is never parsed a second time.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Host {
    /// A name to resolve: ASCII, lower case, absolute, without the final dot.
    Name(String),
    /// An address in any notation.
    Address(IpAddr),
}

impl fmt::Display for Host {
    /// The text in a `Host` header: IPv6 in brackets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Address(IpAddr::V4(address)) => write!(f, "{address}"),
            Self::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
        }
    }
}

/// A valid delivery URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookUrl {
    text: String,
    is_https: bool,
    host: Host,
    port: u16,
}

impl WebhookUrl {
    /// Parses a URL (RFC 3986) of at most [`MAX_URL`] characters, with any port, without user information and
    /// fragment, whose scheme and host the policy admits; names are resolved later. Stored URLs are parsed
    /// under [`AddressPolicy::Any`], since the sender checks them again.
    pub fn parse(text: impl Into<String>, policy: AddressPolicy) -> Result<Self, Invalid> {
        let text = text.into();
        let pieces = Pieces::of(&text).ok_or_else(|| {
            Invalid::new(
                "must be an absolute URL (RFC 3986) such as https://example.com/hook, in ASCII, with anything else \
                 percent-encoded",
            )
        })?;
        if text.len() > MAX_URL.into() {
            return Err(Invalid::new(format!("must have at most {MAX_URL} characters")));
        }
        if pieces.rest.contains('#') {
            return Err(Invalid::new("must not have a fragment"));
        }
        if pieces.authority.contains('@') {
            return Err(Invalid::new("must not have user information before the host"));
        }
        let url =
            Url::parse(&text).map_err(|_| Invalid::new("must have a host and port that can be reached"))?;
        let url = Self {
            is_https: is_https(&url)?,
            host: host(&url)?,
            port: url.port_or_known_default().unwrap_or_default(),
            text,
        };
        if url.port == 0 {
            return Err(Invalid::new("must have a host and port that can be reached"));
        }
        match url.broken_rule(policy) {
            None => Ok(url),
            Some(rule) => Err(Invalid::new(rule)),
        }
    }

    /// The rule of the policy that the URL breaks, judged by its scheme and, if that is `localhost` or an
    /// address, by its host.
    pub(crate) fn broken_rule(&self, policy: AddressPolicy) -> Option<&'static str> {
        let (is_local, is_admitted) = match &self.host {
            Host::Name(name) => (is_local(name), policy != AddressPolicy::Public || !is_local(name)),
            Host::Address(address) => (is_loopback(*address), policy.admits(*address)),
        };
        let may_be_http = policy == AddressPolicy::Any || policy == AddressPolicy::Local && is_local;
        if !self.is_https && !may_be_http {
            return Some("must begin with https://");
        }
        (!is_admitted).then_some("must lead to a public address")
    }

    /// The URL as it was given.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// As a seller sees it: whole if the application is the seller's own, else the host, for the rest may
    /// hold its owner's secret.
    pub fn shown(&self, is_own: bool) -> String {
        if is_own {
            self.text.clone()
        } else {
            self.host.to_string()
        }
    }

    /// Whether its scheme is `https`; otherwise it is `http`.
    pub const fn is_https(&self) -> bool {
        self.is_https
    }

    pub const fn host(&self) -> &Host {
        &self.host
    }

    /// The port; without one in the URL, the scheme's default.
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// The value of the `Host` header (RFC 9112 §3.2): the host, and the port unless it is the scheme's
    /// default.
    pub fn authority(&self) -> String {
        let default_port = if self.is_https { 443 } else { 80 };
        if self.port == default_port {
            self.host.to_string()
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }

    /// The request target (RFC 9112 §3.2.1) as given; `/` if the path is empty.
    pub fn path_and_query(&self) -> String {
        let given = Pieces::of(&self.text).map_or("", |pieces| pieces.rest);
        if given.starts_with('/') {
            given.to_owned()
        } else {
            format!("/{given}")
        }
    }
}

impl fmt::Display for WebhookUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

fn is_https(url: &Url) -> Result<bool, Invalid> {
    match url.scheme() {
        "https" => Ok(true),
        "http" => Ok(false),
        _ => Err(Invalid::new("must begin with https://")),
    }
}

/// The only definition of a host. The parser has converted every spelling of an IPv4 address (WHATWG URL
/// §3.5: missing parts, decimal, octal, hexadecimal, percent-encoded) into that address.
fn host(url: &Url) -> Result<Host, Invalid> {
    match url.host() {
        Some(url::Host::Ipv4(address)) => Ok(Host::Address(address.into())),
        Some(url::Host::Ipv6(address)) => Ok(Host::Address(address.into())),
        Some(url::Host::Domain(name)) => {
            let absolute = name.strip_suffix('.').unwrap_or(name);
            if is_name(absolute) {
                Ok(Host::Name(absolute.to_owned()))
            } else {
                Err(Invalid::new("must have a host that is a name or an address"))
            }
        }
        None => Err(Invalid::new("must have a host")),
    }
}

/// Whether the text consists of labels of letters, digits, hyphens and underscores.
fn is_name(name: &str) -> bool {
    let fine = |label: &str| {
        let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'-' | b'_');
        (1..=MAX_LABEL).contains(&label.len()) && label.bytes().all(plain)
    };
    name.len() <= MAX_NAME && name.split('.').all(fine)
}

/// `localhost` and its subdomains never leave the machine (RFC 6761 §6.3).
fn is_local(name: &str) -> bool {
    name == "localhost" || name.ends_with(".localhost")
}

/// A text split into its components, which are not parsed further.
struct Pieces<'a> {
    authority: &'a str,
    rest: &'a str,
}

impl<'a> Pieces<'a> {
    /// None if the text has no scheme, `://` and authority, or has characters outside of RFC 3986 §2.
    /// Browser-style parsers repair such texts, each in its own way.
    fn of(text: &'a str) -> Option<Self> {
        let (scheme, after) = text.split_once("://")?;
        let end = after.find(['/', '?', '#']).unwrap_or(after.len());
        let (authority, rest) = after.split_at_checked(end)?;
        let bracket = |b: u8| matches!(b, b'[' | b']');
        let fine = scheme.bytes().all(|b| b.is_ascii_alphabetic())
            && !authority.is_empty()
            && authority.bytes().all(|b| is_of_a_uri(b) || bracket(b))
            && rest.bytes().all(is_of_a_uri)
            && text.split('%').skip(1).all(begins_with_two_digits);
        fine.then_some(Self { authority, rest })
    }
}

fn is_of_a_uri(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b"-._~:/?#@!$&'()*+,;=%".contains(&b)
}

fn begins_with_two_digits(text: &str) -> bool {
    let digit = |b: &u8| b.is_ascii_hexdigit();
    matches!(text.as_bytes(), [a, b, ..] if digit(a) && digit(b))
}

#[cfg(test)]
mod tests;
