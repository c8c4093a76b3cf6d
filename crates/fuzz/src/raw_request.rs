//! A request as lines of text: method and target, headers, an empty line, the body. Whatever is no request is left out.

use actix_web::http::{
    Method, Uri,
    header::{HeaderName, HeaderValue},
};
use actix_web::test::TestRequest;

/// A request that HTTP itself lets through.
pub(crate) struct RawRequest {
    pub(crate) method: Method,
    pub(crate) uri: Uri,
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
    pub(crate) body: Vec<u8>,
}

impl RawRequest {
    /// Reads one; nothing where its first line is none.
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let (first, mut rest) = line(bytes);
        let mut words = first.split(|byte| *byte == b' ');
        let method = Method::from_bytes(words.next()?).ok()?;
        let uri = Uri::try_from(words.next()?).ok()?;
        let mut headers = Vec::new();
        loop {
            let (header, behind) = line(rest);
            rest = behind;
            if header.is_empty() {
                break;
            }
            let Some(colon) = header.iter().position(|byte| *byte == b':') else {
                continue;
            };
            let name = HeaderName::from_bytes(header[..colon].trim_ascii());
            let value = HeaderValue::from_bytes(header[colon + 1..].trim_ascii());
            if let (Ok(name), Ok(value)) = (name, value) {
                headers.push((name, value));
            }
        }
        // Sizes are for the connection to keep to; here there is none.
        headers.retain(|(name, _)| name != "content-length" && name != "transfer-encoding");
        let body = rest.to_vec();
        Some(Self {
            method,
            uri,
            headers,
            body,
        })
    }

    /// Adds a header where there is none of that name, so that most changes of a request concern what comes behind it.
    pub(crate) fn unless_given(&mut self, name: &'static str, value: &str) {
        if self.headers.iter().all(|(given, _)| given != name) {
            let value = HeaderValue::from_str(value).expect("a header");
            self.headers.push((HeaderName::from_static(name), value));
        }
    }

    /// True where DEL is in what an answer may quote: as it is, or as URLs or JSON write it.
    pub(crate) fn has_del(&self) -> bool {
        let target = self.uri.to_string();
        [target.as_bytes(), &self.body].iter().any(|sent| {
            let written = |del: &[u8]| sent.windows(del.len()).any(|part| part.eq_ignore_ascii_case(del));
            written(b"\x7f") || written(b"%7f") || written(b"\\u007f")
        })
    }

    /// The request for a listener.
    pub(crate) fn built(&self) -> TestRequest {
        let mut request = TestRequest::default()
            .method(self.method.clone())
            .uri(&self.uri.to_string())
            .set_payload(self.body.clone());
        for header in self.headers.clone() {
            request = request.append_header(header);
        }
        request
    }
}

fn line(bytes: &[u8]) -> (&[u8], &[u8]) {
    let end = bytes.iter().position(|byte| *byte == b'\n');
    let (line, rest) = end.map_or((bytes, &[][..]), |end| (&bytes[..end], &bytes[end + 1..]));
    (line.strip_suffix(b"\r").unwrap_or(line), rest)
}
