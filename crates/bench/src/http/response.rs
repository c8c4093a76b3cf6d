//! Finding the end of a response in what has been received.

use anyhow::{Context as _, bail};

/// More header lines than any response of the product has.
const MOST_HEADERS: usize = 48;

/// A response's status and body, borrowed from the connection's buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Response<'a> {
    /// The status code.
    pub(crate) status: u16,
    /// The whole body.
    pub(crate) body: &'a [u8],
}

impl Response<'_> {
    /// The start of the body as text, for messages.
    pub(crate) fn excerpt(&self) -> String {
        String::from_utf8_lossy(self.body).chars().take(300).collect()
    }
}

/// What the head says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    /// The status code.
    pub(crate) status: u16,
    /// Bytes up to the body.
    pub(crate) length: usize,
    /// Bytes of the body.
    pub(crate) body: usize,
}

impl Head {
    /// Reads a head once it is whole; `None` before.
    pub(crate) fn parse(received: &[u8]) -> anyhow::Result<Option<Self>> {
        let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
        let mut response = httparse::Response::new(&mut headers);
        let parsed = response.parse(received).context("the response is not HTTP")?;
        let httparse::Status::Complete(length) = parsed else {
            return Ok(None);
        };
        let status = response.code.unwrap_or_default();
        let mut body = (status == 204 || status == 304).then_some(0);
        for header in response.headers.iter() {
            if header.name.eq_ignore_ascii_case("content-length") {
                let text = std::str::from_utf8(header.value).context("Content-Length is not text")?;
                body = Some(text.parse().context("Content-Length is not a number")?);
            }
        }
        let Some(body) = body else {
            bail!("the response (status {status}) has no Content-Length");
        };
        Ok(Some(Self { status, length, body }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_counts_once_it_is_whole() {
        let whole = b"HTTP/1.1 200 OK\r\nX-A: 1\r\ncontent-length: 5\r\n\r\nhel";
        let length = whole.len() - 3;
        assert_eq!(Head::parse(&whole[..length - 1]).unwrap(), None);
        let head = Head {
            status: 200,
            length,
            body: 5,
        };
        assert_eq!(Head::parse(whole).unwrap(), Some(head));
    }

    #[test]
    fn a_body_of_unknown_length_is_refused() {
        assert!(Head::parse(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n").is_err());
        assert_eq!(
            Head::parse(b"HTTP/1.1 204 No Content\r\n\r\n")
                .unwrap()
                .map(|head| head.body),
            Some(0)
        );
        assert!(Head::parse(b"nonsense\r\n\r\n").is_err());
    }
}
