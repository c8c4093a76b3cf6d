//! URLs that an application registers: its documentation, and its redirect URIs.

use std::net::IpAddr;

use kernel::is_public;
use url::{Host, Url};

use crate::Rule;

const MAX_LINK_LENGTH: usize = 2048;

/// Maximum bytes of a host: the longest name in DNS (253), the root's dot, and a port such as `:65535`.
const MAX_HOST: usize = 260;

/// The URL of an application's documentation: `https`, at most 2048 characters.
pub fn documentation_link(text: String) -> Result<String, Rule> {
    https(&text)?;
    without_user_information(&text)?;
    Ok(text)
}

/// A redirect URI (contract: Application registration): a full `https` URL of at most 2048 characters without
/// fragment and user information, whose host is neither `localhost` nor an IP address outside the public
/// internet. A query is kept. Names are not resolved: the browser goes there, not this service. It is
/// compared character by character.
pub fn redirect_uri(text: String) -> Result<String, Rule> {
    let url = https(&text)?;
    if text.contains('#') {
        return Err(Rule::NoFragment);
    }
    without_user_information(&text)?;
    if is_local(&url) {
        return Err(Rule::PublicHost);
    }
    Ok(text)
}

/// Rejects even empty user information, which a parsed URL no longer shows.
fn without_user_information(text: &str) -> Result<(), Rule> {
    if authority(text).contains('@') {
        return Err(Rule::NoUserInformation);
    }
    Ok(())
}

fn https(text: &str) -> Result<Url, Rule> {
    let clean = text
        .bytes()
        .all(|b| b.is_ascii_graphic() && !br#"\"<>^`{|}"#.contains(&b));
    let spelled_out = clean && text.starts_with("https://") && is_host(authority(text));
    if !spelled_out {
        return Err(Rule::Https);
    }
    if text.len() > MAX_LINK_LENGTH {
        return Err(Rule::MaxCharacters(MAX_LINK_LENGTH));
    }
    // Last: an `xn--` label takes time quadratic in its length.
    Url::parse(text).ok().filter(Url::has_host).ok_or(Rule::Https)
}

fn authority(text: &str) -> &str {
    let rest = text.strip_prefix("https://").unwrap_or(text);
    rest.split(['/', '?', '#']).next().unwrap_or(rest)
}

/// Whether this is a host name or a bracketed address, with or without a port: letters, digits and
/// separators, no longer than DNS allows, and no empty label except the root's at the end (RFC 1034 §3.1). Other characters that a URL
/// allows there cannot be resolved, and must not get into a header that names the host. User information
/// passes here, so that it is rejected with its own message.
fn is_host(authority: &str) -> bool {
    let allowed =
        |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_' | b':' | b'[' | b']' | b'@');
    let has_empty_label = authority.starts_with('.') || authority.contains("..");
    let host = authority.rsplit('@').next().unwrap_or(authority);
    (1..=MAX_HOST).contains(&host.len()) && !has_empty_label && authority.bytes().all(allowed)
}

fn is_local(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => {
            let name = name.trim_end_matches('.');
            name == "localhost" || name.ends_with(".localhost")
        }
        Some(Host::Ipv4(address)) => !is_public(IpAddr::V4(address)),
        Some(Host::Ipv6(address)) => !is_public(IpAddr::V6(address)),
        None => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redirect_uris() {
        let fine = "https://app.example/callback https://app.example:8443/cb?x=1 https://1.1.1.1/cb https://app.example
            https://localhost.example/ https://[2606:4700:4700::1111]/cb";
        for fine in fine.split_whitespace() {
            assert_eq!(redirect_uri(fine.to_owned()).unwrap(), fine);
        }
        let long = format!("https://app.example/{}", "x".repeat(2048 - 20));
        assert_eq!(long.len(), 2048);
        assert!(redirect_uri(long.clone()).is_ok());
        assert_eq!(redirect_uri(long + "x"), Err(Rule::MaxCharacters(2048)));
        let host = |length: usize| format!("https://{}.example/", "a".repeat(length - 8));
        assert!(redirect_uri(host(260)).is_ok() && redirect_uri(host(261)) == Err(Rule::Https));
        let refused = r"/callback http://app.example/cb HTTPS://app.example/cb https:app.example https:///cb
            https://app.example/# https://app.example/cb#part https://user@app.example/ https://:@app.example/
            https://@app.example/ https://user:word@app.example/ https://localhost/cb https://LOCALHOST/cb
            https://localhost./cb https://a.localhost/cb https://127.0.0.1/ https://0x7f.1/ https://2130706433/
            https://017700000001/ https://10.1.2.3/ https://127.0.0.1../ https://app..example/ https://.app.example/
            https://app.example../ https://./ https://[::1]/ https://[::ffff:8.8.8.8]/
            https://app.example\@evil.example/ https://app.example/a\b https://a.example;script-src/x
            https://*.a.example/ https://a.example,b/ https://a.example%3b.b/ https://app.example/żółw
            https://app.example/<x> https://app.example/{x}";
        for refused in refused.split_whitespace().chain(["", "https://app.example/ cb"]) {
            assert!(redirect_uri(refused.to_owned()).is_err(), "{refused}");
        }
    }

    #[test]
    fn a_documentation_link_is_https() {
        for fine in [
            "https://docs.example/app#usage@home",
            "https://docs.example#usage",
        ] {
            assert_eq!(documentation_link(fine.to_owned()), Ok(fine.to_owned()));
        }
        let refused = "http://docs.example https://good.example@evil.example/ https://*.example/";
        for refused in refused.split_whitespace() {
            assert!(documentation_link(refused.to_owned()).is_err(), "{refused}");
        }
    }
}
