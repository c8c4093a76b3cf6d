//! Checks of a request's head: the limits on URL and headers (D7, D111), and a valid host.
//!
//! The HTTP library limits how much of a head it buffers. These are the product's tighter limits, applied to
//! a parsed head. Beyond them the listener answers 400 in its own error shape and closes the connection.

use actix_web::dev::RequestHead;
use actix_web::http::header::{HOST, HeaderMap, HeaderName, HeaderValue};
use actix_web::http::uri::Authority;

/// The longest URL, in bytes: path and query, plus scheme and authority if sent.
pub const MAX_URL_LENGTH: usize = 8 * 1024;

/// The largest total size of header names and values, in bytes.
pub const MAX_HEADERS_SIZE: usize = 16 * 1024;

/// The value of a header that was sent exactly once.
pub fn only(headers: &HeaderMap, name: HeaderName) -> Option<&HeaderValue> {
    let mut given = headers.get_all(name);
    given.next().filter(|_| given.next().is_none())
}

/// Checks a head against the limits. The error is a sentence for the client.
pub fn check(head: &RequestHead) -> Result<(), &'static str> {
    if head.uri.to_string().len() > MAX_URL_LENGTH {
        return Err("The URL is longer than 8 KiB.");
    }
    let sizes = head
        .headers
        .iter()
        .map(|(name, value)| name.as_str().len().saturating_add(value.len()));
    if sizes.sum::<usize>() > MAX_HEADERS_SIZE {
        return Err("The headers are larger than 16 KiB.");
    }
    // RFC 9112 §3.2. This service does not use the host, but a proxy in front may.
    if let Some(host) = head.headers.get(HOST)
        && !is_host(host.as_bytes())
    {
        return Err("The Host header is not a valid host.");
    }
    Ok(())
}

/// Whether a value is a host with or without a port. An empty value names no host and is allowed (RFC 9112
/// §3.2).
fn is_host(value: &[u8]) -> bool {
    if value.is_empty() {
        return true;
    }
    let Ok(text) = std::str::from_utf8(value) else {
        return false;
    };
    let Ok(authority) = text.parse::<Authority>() else {
        return false;
    };
    let port = text.strip_prefix(authority.host());
    let port = port.map(|port| port.strip_prefix(':').unwrap_or(port));
    port.is_some_and(|port| port.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;

    use super::*;

    #[test]
    fn a_url_counts_with_its_authority() {
        let url = format!("http://shop.example/{}", "p".repeat(MAX_URL_LENGTH - 10));
        let request = TestRequest::with_uri(&url).to_http_request();
        let refused = "The URL is longer than 8 KiB.";
        assert_eq!(check(request.head()), Err(refused));
    }

    #[test]
    fn a_host_may_be_a_name_or_an_address_with_a_port() {
        let hosts = " a a: api.example api.example:443 127.0.0.1:8080 [::1]:80 [::1] shop_1.example";
        for host in hosts.split(' ') {
            let request = TestRequest::default()
                .insert_header((HOST, host))
                .to_http_request();
            assert_eq!(check(request.head()), Ok(()), "{host}");
        }
    }
}
