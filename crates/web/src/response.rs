//! Responses: common headers, bodies in slices, and the limit of unsent bytes.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use actix_web::HttpResponse;
use actix_web::body::{BodySize, BoxBody, MessageBody};
use actix_web::http::header::{
    CACHE_CONTROL, CONTENT_LENGTH, CONTENT_SECURITY_POLICY, CONTENT_TYPE, CROSS_ORIGIN_RESOURCE_POLICY,
    HeaderMap, HeaderValue, REFERRER_POLICY, STRICT_TRANSPORT_SECURITY, X_CONTENT_TYPE_OPTIONS,
    X_FRAME_OPTIONS,
};
use actix_web::http::{ConnectionType, StatusCode};
use bytes::Bytes;
use kernel::SellerId;
use oauth::ClientId;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::tasks::wake_after_others;
use crate::trace_id::{TraceId, X_TRACE_ID};

pub(crate) const JSON: HeaderValue = HeaderValue::from_static("application/json");
const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");
const NO_SNIFF: HeaderValue = HeaderValue::from_static("nosniff");
pub const SAME_ORIGIN: HeaderValue = HeaderValue::from_static("same-origin");

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
fn set_common_headers(headers: &mut HeaderMap, trace_id: &TraceId) {
    headers.insert(CACHE_CONTROL, NO_STORE);
    headers.insert(X_CONTENT_TYPE_OPTIONS, NO_SNIFF);
    headers.insert(X_TRACE_ID, trace_id.to_header_value());
}

/// Sets `X-Trace-Id` and, unless the page has set them itself, its security headers and `no-store`.
pub fn set_page_headers(headers: &mut HeaderMap, trace_id: &TraceId, policy: HeaderValue, https: bool) {
    headers.insert(X_TRACE_ID, trace_id.to_header_value());
    let a_year = HeaderValue::from_static("max-age=31536000");
    let always = [
        (CONTENT_SECURITY_POLICY, policy),
        (REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
        (X_CONTENT_TYPE_OPTIONS, NO_SNIFF),
        (X_FRAME_OPTIONS, HeaderValue::from_static("DENY")),
        (CROSS_ORIGIN_RESOURCE_POLICY, SAME_ORIGIN),
        (CACHE_CONTROL, NO_STORE),
    ];
    let with_https = https.then_some((STRICT_TRANSPORT_SECURITY, a_year));
    for (name, value) in always.into_iter().chain(with_https) {
        if !headers.contains_key(&name) {
            headers.insert(name, value);
        }
    }
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

/// After so many bytes of a large body, other connections of the thread have their turn: a client that reads fast would keep the
/// thread until the end.
const TURN: usize = 2 * SLICE;

/// Bounds how much of a response is buffered for a client that does not read, and how long one that reads keeps others waiting.
///
/// actix-http copies each chunk of a body into the connection's buffer, and checks for room only before a
/// chunk. So a large body yields slices. An empty body is polled too: otherwise redirects, pipelined by a
/// client that does not read, would fill memory.
pub(crate) fn in_slices(response: HttpResponse, owners: Owners) -> HttpResponse {
    let size = response.body().size();
    if matches!(size, BodySize::Sized(1..=LARGE)) {
        return response;
    }
    let mut response = response.map_body(|_, body| match body.try_into_bytes() {
        Ok(bytes) if bytes.is_unique() && !bytes.is_empty() => in_turns(UNSENT.add(owners, bytes)),
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
    in_turns(Slices { body, unsent })
}

fn in_turns(body: impl MessageBody + 'static) -> BoxBody {
    let body = BoxBody::new(body);
    BoxBody::new(InTurns { body, sent: 0 })
}

/// A response body that pauses after each [`TURN`].
struct InTurns {
    body: BoxBody,
    /// Bytes since the last pause.
    sent: usize,
}

impl MessageBody for InTurns {
    type Error = <BoxBody as MessageBody>::Error;

    fn size(&self) -> BodySize {
        self.body.size()
    }

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Self::Error>>> {
        if self.sent >= TURN {
            self.sent = 0;
            wake_after_others(cx.waker());
            return Poll::Pending;
        }
        let slice = ready!(Pin::new(&mut self.body).poll_next(cx));
        if let Some(Ok(bytes)) = &slice {
            self.sent += bytes.len();
        }
        Poll::Ready(slice)
    }
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

/// A body of which nothing was read for this long counts as idle.
const IDLE: Duration = Duration::from_secs(1);
/// One that began before this counts as idle: a client that reads has the largest, of some fifty megabytes, by then.
const LONG: Duration = Duration::from_mins(1);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Owner {
    Seller(SellerId),
    Application(ClientId),
    Address(IpAddr),
}

/// Whose answer a body is: that of the seller for whom it was asked or, without one, of the address; and that
/// of the application that asked.
pub(crate) type Owners = [Option<Owner>; 2];

/// Unsent bodies. Beyond `most` bytes, the owner with most of them loses one, and its connection: the longest unread,
/// or the newest if all are being read.
struct Unsent {
    most: usize,
    bodies: Mutex<UnsentBodies>,
}

struct UnsentBodies {
    last_number: u64,
    bytes: usize,
    /// In the order in which they were begun.
    by_number: BTreeMap<u64, UnsentEntry>,
}

struct UnsentEntry {
    owners: Owners,
    begun: Instant,
    size: usize,
    left: Arc<Mutex<Left>>,
}

/// What is left of a body; no bytes once it was given up.
struct Left {
    bytes: Option<Bytes>,
    read_at: Instant,
}

/// One of them.
struct UnsentBody {
    unsent: &'static Unsent,
    number: u64,
    size: usize,
    left: Arc<Mutex<Left>>,
}

impl Unsent {
    const fn new(most: usize) -> Self {
        let bodies = UnsentBodies {
            last_number: 0,
            bytes: 0,
            by_number: BTreeMap::new(),
        };
        let bodies = Mutex::new(bodies);
        Self { most, bodies }
    }

    fn add(&'static self, owners: Owners, body: Bytes) -> UnsentBody {
        let size = body.len();
        let left = Arc::new(Mutex::new(Left {
            bytes: Some(body),
            read_at: Instant::now(),
        }));
        let mut bodies = self.bodies.lock();
        bodies.last_number += 1;
        bodies.bytes += size;
        let number = bodies.last_number;
        let entry = UnsentEntry {
            owners,
            begun: Instant::now(),
            size,
            left: Arc::clone(&left),
        };
        bodies.by_number.insert(number, entry);
        while bodies.bytes > self.most && bodies.give_up() {}
        UnsentBody {
            unsent: self,
            number,
            size,
            left,
        }
    }
}

impl UnsentBodies {
    /// Gives one body up; false if there is none.
    fn give_up(&mut self) -> bool {
        let mut of_owners = HashMap::<Owner, usize>::new();
        for entry in self.by_number.values() {
            for owner in entry.owners.into_iter().flatten() {
                *of_owners.entry(owner).or_default() += entry.size;
            }
        }
        let precedence = |entry: &UnsentEntry| {
            let idle = entry.left.lock().read_at.elapsed();
            let is_idle = idle >= IDLE || entry.begun.elapsed() >= LONG;
            let owners = entry.owners.iter().flatten();
            let mut totals: Vec<_> = owners.filter_map(|owner| of_owners.get(owner)).collect();
            totals.sort_unstable_by_key(|total| Reverse(*total));
            (totals, Some(idle).filter(|_| is_idle))
        };
        // Among equal ones that are being read, the last to begin is dropped, so that the others come to their end.
        let entries = self.by_number.iter();
        let Some((&number, entry)) = entries.max_by_key(|(_, entry)| precedence(entry)) else {
            return false;
        };
        entry.left.lock().bytes = None;
        metrics::counter!("answers_given_up_total").increment(1);
        self.remove(number);
        true
    }

    fn remove(&mut self, number: u64) {
        if let Some(entry) = self.by_number.remove(&number) {
            self.bytes -= entry.size;
        }
    }
}

impl MessageBody for UnsentBody {
    type Error = <BoxBody as MessageBody>::Error;

    fn size(&self) -> BodySize {
        u64::try_from(self.size).map_or(BodySize::Stream, BodySize::Sized)
    }

    fn poll_next(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Bytes, Self::Error>>> {
        let mut left = self.left.lock();
        left.read_at = Instant::now();
        Poll::Ready(match left.bytes.as_mut() {
            None => Some(Err(
                "it was given up: most of the unsent answers had the same owner".into(),
            )),
            Some(bytes) if bytes.is_empty() => None,
            Some(bytes) => Some(Ok(bytes.split_to(bytes.len().min(SLICE)))),
        })
    }
}

impl Drop for UnsentBody {
    fn drop(&mut self) {
        self.unsent.bodies.lock().remove(self.number);
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::net::Ipv4Addr;

    use actix_web::body::to_bytes;
    use tokio::time::sleep;
    use uuid::Uuid;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn who_has_most_unsent_bytes_loses_what_was_read_longest_ago() {
        static UNSENT: Unsent = Unsent::new(8 * SLICE);
        let greedy = Owner::Seller(Uuid::from_u128(1).into());
        let modest = Owner::Address(Ipv4Addr::LOCALHOST.into());
        let body = |owner, n: u8| UNSENT.add([Some(owner), None], vec![n; 2 * SLICE].into());
        let first = body(modest, 1);
        let [second, mut third, fourth] = [2, 3, 4].map(|n| body(greedy, n));
        sleep(IDLE).await;
        let piece = poll_fn(|cx| Pin::new(&mut third).poll_next(cx)).await;
        assert_eq!(piece.unwrap().unwrap(), vec![3; SLICE]);
        let (fifth, sixth) = (body(greedy, 5), body(modest, 6));
        for given_up in [second, fourth] {
            assert!(to_bytes(given_up).await.is_err());
        }
        assert_eq!(to_bytes(third).await.unwrap(), vec![3; SLICE]);
        for (n, whole) in [(1, first), (5, fifth), (6, sixth)] {
            assert_eq!(to_bytes(whole).await.unwrap(), vec![n; 2 * SLICE]);
        }
        // Of bodies that are being read, the last one is lost.
        let reading: Vec<_> = (0..5).map(|_| body(greedy, 8)).collect();
        let mut lost = Vec::new();
        for one in reading {
            lost.push(to_bytes(one).await.is_err());
        }
        assert_eq!(lost, [false, false, false, false, true]);
        // What was sent counts no more.
        for _ in 0..10 {
            assert!(to_bytes(body(greedy, 7)).await.is_ok());
        }
        let bodies = UNSENT.bodies.lock();
        assert!(bodies.bytes == 0 && bodies.by_number.is_empty());
    }

    #[tokio::test]
    async fn a_large_body_leaves_others_their_turns() {
        let shared = Bytes::from(vec![0; 3 * TURN - 1]);
        for body in [BoxBody::new(shared.clone()), BoxBody::new(vec![0; 3 * TURN - 1])] {
            let response = in_slices(HttpResponse::with_body(StatusCode::OK, body), [None; 2]);
            let (mut body, mut turns) = (response.into_body(), vec![0]);
            poll_fn(|cx| {
                loop {
                    match Pin::new(&mut body).poll_next(cx) {
                        Poll::Ready(Some(slice)) => *turns.last_mut().unwrap() += slice.unwrap().len(),
                        Poll::Ready(None) => return Poll::Ready(()),
                        Poll::Pending => {
                            turns.push(0);
                            return Poll::Pending;
                        }
                    }
                }
            })
            .await;
            assert_eq!(turns, [TURN, TURN, TURN - 1]);
        }
    }

    #[tokio::test]
    async fn neither_many_sellers_nor_many_applications_take_what_another_asked_for() {
        static UNSENT: Unsent = Unsent::new(4 * SLICE);
        let body = |[seller, application]: [u128; 2], size: usize| {
            let seller = Owner::Seller(Uuid::from_u128(seller).into());
            let application = Owner::Application(Uuid::from_u128(application).into());
            UNSENT.add([Some(seller), Some(application)], vec![0_u8; size].into())
        };
        for greedy in [[1_u128, 0], [0, 1]] {
            let unread: Vec<_> = (1..=4).map(|n| body(greedy.map(|id| id * n), SLICE)).collect();
            let others = body([9, 9], 2 * SLICE);
            assert!(to_bytes(others).await.is_ok());
            let mut given_up = 0;
            for one in unread {
                given_up += usize::from(to_bytes(one).await.is_err());
            }
            assert_eq!(given_up, 2);
        }
    }
}
