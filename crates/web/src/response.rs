//! Responses: JSON bytes and the common headers.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use actix_web::HttpResponse;
use actix_web::body::{BodySize, BoxBody, MessageBody};
use actix_web::http::header::{
    CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderValue, X_CONTENT_TYPE_OPTIONS,
};
use actix_web::http::{ConnectionType, StatusCode};
use bytes::Bytes;

use crate::trace_id::{TraceId, X_TRACE_ID};

pub(crate) const JSON: HeaderValue = HeaderValue::from_static("application/json");
const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");
const NO_SNIFF: HeaderValue = HeaderValue::from_static("nosniff");

/// The length of a rate-limit window, in seconds (contract: Limits).
pub const WINDOW_SECONDS: u32 = 60;

/// A response with this JSON body: `Content-Type: application/json` without a charset (D8), `no-store`, trace
/// id.
pub fn json(status: StatusCode, body: impl Into<Bytes>, trace_id: &TraceId) -> HttpResponse {
    let mut response = HttpResponse::with_body(status, BoxBody::new(body.into()));
    response.headers_mut().insert(CONTENT_TYPE, JSON);
    set_common_headers(response.headers_mut(), trace_id);
    response
}

/// A response without a body, such as 204: `no-store` and trace id.
pub fn empty(status: StatusCode, trace_id: &TraceId) -> HttpResponse {
    let mut response = HttpResponse::with_body(status, BoxBody::new(()));
    set_common_headers(response.headers_mut(), trace_id);
    response
}

/// Sets the headers of every response: `Cache-Control: no-store`, `X-Content-Type-Options: nosniff` and
/// `X-Trace-Id`.
pub fn set_common_headers(headers: &mut HeaderMap, trace_id: &TraceId) {
    headers.insert(CACHE_CONTROL, NO_STORE);
    headers.insert(X_CONTENT_TYPE_OPTIONS, NO_SNIFF);
    headers.insert(X_TRACE_ID, trace_id.to_header_value());
}

/// A response after which the connection is closed, because the rest of the request's body is not worth
/// reading.
///
/// It holds the payload until the response is sent. If the payload were dropped earlier, actix-http would
/// first read a chunked body to its end, however long that takes and whatever the response says about the
/// connection.
pub fn closing<P: 'static>(response: HttpResponse, payload: P) -> HttpResponse {
    let mut response = keep_payload(response, payload);
    response.head_mut().set_connection_type(ConnectionType::Close);
    response
}

/// A response to a request whose body was not read, such as a 401. The connection stays open if there was no
/// body or all of it has arrived; otherwise it is closed, as in [`closing`].
pub fn keep_payload<P: 'static>(response: HttpResponse, payload: P) -> HttpResponse {
    response.map_body(|_, body| {
        BoxBody::new(WithPayload {
            body,
            _payload: payload,
        })
    })
}

/// A response body that keeps a request's payload alive.
struct WithPayload<P> {
    body: BoxBody,
    _payload: P,
}

// Nothing in it is pinned: a boxed body can be moved.
impl<P> Unpin for WithPayload<P> {}

impl<P> MessageBody for WithPayload<P> {
    type Error = <BoxBody as MessageBody>::Error;

    fn size(&self) -> BodySize {
        self.body.size()
    }

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Self::Error>>> {
        Pin::new(&mut self.body).poll_next(cx)
    }
}

/// Bodies of more bytes leave in slices.
const LARGE: u64 = 64 * 1024;
const SLICE: usize = 32 * 1024;

/// Bounds how much of a response is buffered for a client that does not read.
///
/// actix-http copies each chunk of a body into the connection's buffer, and checks for room only before a
/// chunk. So a large body yields slices. An empty body is polled too: otherwise redirects, pipelined by a
/// client that does not read, would fill memory.
pub(crate) fn in_slices(response: HttpResponse) -> HttpResponse {
    let size = response.body().size();
    if matches!(size, BodySize::Sized(1..=LARGE)) {
        return response;
    }
    let mut response = response.map_body(|_, body| {
        let unsent = Bytes::new();
        BoxBody::new(Slices { body, unsent })
    });
    if size.is_eof() {
        response.head_mut().no_chunking(true);
        if !matches!(
            response.status(),
            StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED
        ) {
            let zero = HeaderValue::from_static("0");
            response.headers_mut().insert(CONTENT_LENGTH, zero);
        }
    }
    response
}

/// A response body in slices that share its bytes.
struct Slices {
    body: BoxBody,
    unsent: Bytes,
}

impl MessageBody for Slices {
    type Error = <BoxBody as MessageBody>::Error;

    fn size(&self) -> BodySize {
        match self.body.size() {
            // actix-http does not poll a body that it knows to be empty.
            size if size.is_eof() => BodySize::Stream,
            size => size,
        }
    }

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Self::Error>>> {
        if self.unsent.is_empty() {
            match ready!(Pin::new(&mut self.body).poll_next(cx)) {
                Some(Ok(bytes)) => self.unsent = bytes,
                ended => return Poll::Ready(ended),
            }
        }
        let length = self.unsent.len().min(SLICE);
        Poll::Ready(Some(Ok(self.unsent.split_to(length))))
    }
}
