//! The caps on a request's head: URL and headers (D7, D111).
//!
//! The HTTP library bounds what it buffers of a head; these are the product's own, tighter caps, applied to a head
//! that was read. Beyond them the listener answers 400 in its own shape and closes the connection.

use actix_web::dev::RequestHead;
use thiserror::Error;

use crate::problem::Entry;

/// The longest URL, in bytes: path and query, with scheme and authority where a client sends them.
pub const LONGEST_URL: usize = 8 * 1024;

/// The most bytes of all header names and values together.
pub const LARGEST_HEADERS: usize = 16 * 1024;

/// What of a head is too large. The texts are for the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum HeadTooLarge {
    /// The URL is longer than [`LONGEST_URL`].
    #[error("The URL is longer than 8 KiB.")]
    Url,
    /// The headers are larger than [`LARGEST_HEADERS`].
    #[error("The headers are larger than 16 KiB.")]
    Headers,
}

impl From<HeadTooLarge> for Entry {
    fn from(excess: HeadTooLarge) -> Self {
        Self::whole(excess.to_string())
    }
}

/// Checks a head against the caps.
pub fn check(head: &RequestHead) -> Result<(), HeadTooLarge> {
    let uri = &head.uri;
    let scheme = uri
        .scheme_str()
        .map_or(0, |scheme| scheme.len().saturating_add("://".len()));
    let authority = uri.authority().map_or(0, |authority| authority.as_str().len());
    let rest = uri.path_and_query().map_or(0, |rest| rest.as_str().len());
    if scheme.saturating_add(authority).saturating_add(rest) > LONGEST_URL {
        return Err(HeadTooLarge::Url);
    }
    let sizes = head
        .headers
        .iter()
        .map(|(name, value)| name.as_str().len().saturating_add(value.len()));
    if sizes.sum::<usize>() > LARGEST_HEADERS {
        return Err(HeadTooLarge::Headers);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;

    use super::*;

    fn with_url(length: usize) -> Result<(), HeadTooLarge> {
        let url = format!("/{}?q={}", "p".repeat(100), "v".repeat(length - 104));
        assert_eq!(url.len(), length);
        check(TestRequest::with_uri(&url).to_http_request().head())
    }

    fn with_headers(total: usize) -> Result<(), HeadTooLarge> {
        let (name, half) = ("x-long", total / 2);
        let request = TestRequest::default()
            .append_header((name, "v".repeat(half - name.len())))
            .append_header((name, "v".repeat(total - half - name.len())));
        check(request.to_http_request().head())
    }

    #[test]
    fn a_url_may_have_8_kib() {
        assert_eq!(with_url(LONGEST_URL), Ok(()));
        assert_eq!(with_url(LONGEST_URL + 1), Err(HeadTooLarge::Url));
    }

    #[test]
    fn a_url_counts_with_its_authority() {
        let url = format!("http://shop.example/{}", "p".repeat(LONGEST_URL - 10));
        let request = TestRequest::with_uri(&url).to_http_request();
        assert_eq!(check(request.head()), Err(HeadTooLarge::Url));
    }

    #[test]
    fn headers_may_have_16_kib_together() {
        assert_eq!(with_headers(LARGEST_HEADERS), Ok(()));
        assert_eq!(with_headers(LARGEST_HEADERS + 1), Err(HeadTooLarge::Headers));
    }
}
