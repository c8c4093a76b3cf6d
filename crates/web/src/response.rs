//! Responses: JSON bytes and the common headers.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use actix_web::HttpResponse;
use actix_web::body::{BodySize, BoxBody, MessageBody};
use actix_web::http::header::{
    CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderValue, X_CONTENT_TYPE_OPTIONS,
};
use actix_web::http::{ConnectionType, StatusCode};
use bytes::Bytes;
use kernel::SellerId;
use parking_lot::Mutex;

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
pub(crate) fn in_slices(response: HttpResponse, owner: Owner) -> HttpResponse {
    let size = response.body().size();
    if matches!(size, BodySize::Sized(1..=LARGE)) {
        return response;
    }
    let mut response = response.map_body(|_, body| match body.try_into_bytes() {
        Ok(bytes) if bytes.is_unique() => BoxBody::new(UNSENT.add(owner, bytes)),
        Ok(shared) => slices(BoxBody::new(shared)),
        Err(body) => slices(body),
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

fn slices(body: BoxBody) -> BoxBody {
    let unsent = Bytes::new();
    BoxBody::new(Slices { body, unsent })
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

/// The large bodies of this process that are not sent yet, each the answer to one request.
static UNSENT: Unsent = Unsent::new(64 * 1024 * 1024);

/// Whose answer a body is: the seller's for whom it was asked or, without one, that of the address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Owner {
    Seller(SellerId),
    Address(IpAddr),
}

/// Bodies that were not sent yet. Beyond so many bytes, whoever has most of them loses the oldest one, whose
/// connection ends: it does not read.
struct Unsent {
    most: usize,
    bodies: Mutex<UnsentBodies>,
}

struct UnsentBodies {
    begun: u64,
    bytes: usize,
    by_owner: BTreeMap<Owner, OwnBodies>,
}

#[derive(Default)]
struct OwnBodies {
    bytes: usize,
    by_age: BTreeMap<u64, (usize, Left)>,
}

/// What is left of a body; `None` once it was given up.
type Left = Arc<Mutex<Option<Bytes>>>;

/// One of them.
struct UnsentBody {
    unsent: &'static Unsent,
    owner: Owner,
    age: u64,
    size: usize,
    left: Left,
}

impl Unsent {
    const fn new(most: usize) -> Self {
        let bodies = UnsentBodies {
            begun: 0,
            bytes: 0,
            by_owner: BTreeMap::new(),
        };
        let bodies = Mutex::new(bodies);
        Self { most, bodies }
    }

    fn add(&'static self, owner: Owner, body: Bytes) -> UnsentBody {
        let size = body.len();
        let left = Arc::new(Mutex::new(Some(body)));
        let mut bodies = self.bodies.lock();
        bodies.begun += 1;
        bodies.bytes += size;
        let age = bodies.begun;
        let own = bodies.by_owner.entry(owner).or_default();
        own.bytes += size;
        own.by_age.insert(age, (size, Arc::clone(&left)));
        while bodies.bytes > self.most && bodies.give_up() {}
        UnsentBody {
            unsent: self,
            owner,
            age,
            size,
            left,
        }
    }
}

impl UnsentBodies {
    /// Gives one body up; false if there is none.
    fn give_up(&mut self) -> bool {
        let largest = self.by_owner.iter().max_by_key(|(_, own)| own.bytes);
        let Some((owner, (age, left))) = largest.and_then(|(owner, own)| {
            let (age, (_, left)) = own.by_age.first_key_value()?;
            Some((*owner, (*age, Arc::clone(left))))
        }) else {
            return false;
        };
        *left.lock() = None;
        self.remove(owner, age);
        true
    }

    fn remove(&mut self, owner: Owner, age: u64) {
        let Some(own) = self.by_owner.get_mut(&owner) else {
            return;
        };
        if let Some((size, _)) = own.by_age.remove(&age) {
            own.bytes -= size;
            self.bytes -= size;
        }
        if own.by_age.is_empty() {
            self.by_owner.remove(&owner);
        }
    }
}

impl MessageBody for UnsentBody {
    type Error = <BoxBody as MessageBody>::Error;

    fn size(&self) -> BodySize {
        u64::try_from(self.size).map_or(BodySize::Stream, BodySize::Sized)
    }

    fn poll_next(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Bytes, Self::Error>>> {
        Poll::Ready(match self.left.lock().as_mut() {
            None => Some(Err("it was not read while memory was short".into())),
            Some(left) if left.is_empty() => None,
            Some(left) => Some(Ok(left.split_to(left.len().min(SLICE)))),
        })
    }
}

impl Drop for UnsentBody {
    fn drop(&mut self) {
        self.unsent.bodies.lock().remove(self.owner, self.age);
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use actix_web::body::to_bytes;
    use uuid::Uuid;

    use super::*;

    #[actix_web::test]
    async fn who_has_most_unsent_bodies_loses_the_oldest_for_later_ones() {
        static UNSENT: Unsent = Unsent::new(4 * SLICE);
        let greedy = Owner::Seller(Uuid::from_u128(1).into());
        let modest = Owner::Address(Ipv4Addr::LOCALHOST.into());
        let body = |owner, n: u8| UNSENT.add(owner, vec![n; SLICE].into());
        let first = body(modest, 1);
        let (second, third, fourth) = (body(greedy, 2), body(greedy, 3), body(greedy, 4));
        let fifth = body(modest, 5);
        assert!(to_bytes(second).await.is_err());
        for (n, whole) in [(1, first), (3, third), (4, fourth), (5, fifth)] {
            assert_eq!(to_bytes(whole).await.unwrap(), vec![n; SLICE]);
        }
        // What was sent counts no more.
        for _ in 0..10 {
            assert!(to_bytes(body(greedy, 6)).await.is_ok());
        }
        let bodies = UNSENT.bodies.lock();
        assert!(bodies.bytes == 0 && bodies.by_owner.is_empty());
    }
}
