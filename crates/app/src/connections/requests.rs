//! What holds for every request, whichever listener it comes to, and is a matter of its connection alone.

use std::{future::poll_fn, rc::Rc, sync::Arc, task::Poll};

use actix_http::{
    BoxedPayloadStream, ConnectionType, HttpMessage as _, Payload, Request, Response, body::BoxBody,
};
use actix_service::Service;
use actix_web::http::{
    Method, Version,
    header::{CONTENT_LENGTH, TRANSFER_ENCODING, UPGRADE},
};
use bytes::Bytes;
use futures_util::{StreamExt as _, stream};

use super::{answer::Answer, course::Course, intake::BodyLength, stopping::Stopping};

/// Hands a request on, and sees to its connection before and after.
///
/// A wish to speak another protocol is passed over (RFC 9110 §7.8), and so is one for a tunnel. The HTTP library takes
/// either for granted: it would read on for ever, and call the connection upgraded in the response.
///
/// What fails is an answer like all others: of one that the library makes of an error, the connection would not learn the end.
pub(super) fn answer<S>(
    mut request: Request,
    app: &S,
    stopping: &Arc<Stopping>,
) -> impl Future<Output = Result<Response<Answer>, S::Error>> + use<S>
where
    S: Service<Request>,
    S::Response: Into<Response<BoxBody>>,
    S::Error: Into<Response<BoxBody>>,
{
    let course = request.conn_data::<Rc<Course>>().map(Rc::clone);
    let stopping = Arc::clone(stopping);
    let length = body_length(&request);
    if let Some(course) = &course {
        course.request_begins(length);
    }
    let leads_elsewhere = leads_elsewhere(&request);
    // What the client asks for, or its version of the protocol.
    let asked_to_close = request.head().connection_type() == ConnectionType::Close;
    if leads_elsewhere {
        bound_body(&mut request, length);
    }
    let answering = app.call(request);
    async move {
        if let Some(course) = course.as_ref().filter(|_| length != BodyLength::Known(0)) {
            body_has_come(course).await;
        }
        let mut response = answering.await.map_or_else(Into::into, Into::into);
        // Heads are used again, and keep the version of the answer before; the library writes the right one later.
        response.head_mut().version = Version::HTTP_11;
        let last = asked_to_close
            || leads_elsewhere
            || stopping.is_draining()
            || response.head().connection_type() == ConnectionType::Close;
        if last {
            response.head_mut().set_connection_type(ConnectionType::Close);
        }
        if let Some(course) = &course {
            course.request_ends(last);
        }
        Ok(response.map_body(|_, body| Answer::new(body, course)))
    }
}

/// How often the library may ask after a request before it reads on. It asks twice as soon as it has read the head.
const MOST_ASKED: u8 = 4;

/// Lets the library read what lies there of the body before the request is looked at: a request that is refused unread keeps its
/// connection where all of it has come.
async fn body_has_come(course: &Course) {
    let mut asked = 0;
    poll_fn(|cx| {
        asked += 1;
        // Where the client has ended nothing is read any more.
        if course.is_read_on() || asked >= MOST_ASKED {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// How long the body is. The library refuses heads that say it twice, or in a way that could be read differently.
fn body_length(request: &Request) -> BodyLength {
    let headers = request.headers();
    if headers.contains_key(TRANSFER_ENCODING) {
        return BodyLength::Chunked;
    }
    let announced = headers.get(CONTENT_LENGTH);
    let announced = announced.and_then(|length| length.to_str().ok()?.trim().parse::<u64>().ok());
    BodyLength::Known(announced.unwrap_or_default())
}

/// Whether a request asks for another protocol on its connection.
fn leads_elsewhere(request: &Request) -> bool {
    request.head().upgrade() || request.headers().contains_key(UPGRADE) || request.method() == Method::CONNECT
}

/// Gives the request the body that it announces, or none. The HTTP library would read to the end of the connection.
fn bound_body(request: &mut Request, length: BodyLength) {
    let BodyLength::Known(length) = length else {
        return;
    };
    let endless = request.take_payload();
    if length > 0 {
        *request.payload() = Payload::Stream {
            payload: first_bytes(endless, length),
        };
    }
}

/// The first `length` bytes of a body.
fn first_bytes(payload: Payload, length: u64) -> BoxedPayloadStream {
    Box::pin(stream::unfold(
        (payload, length),
        |(mut payload, left)| async move {
            if left == 0 {
                return None;
            }
            let piece = payload.next().await?.map(|mut piece| {
                piece.truncate(usize::try_from(left).unwrap_or(usize::MAX));
                piece
            });
            let read = piece.as_ref().map_or(0, Bytes::len);
            let left = left.saturating_sub(u64::try_from(read).unwrap_or(u64::MAX));
            Some((piece, (payload, left)))
        },
    ))
}
