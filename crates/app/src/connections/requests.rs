//! What holds for every request, whichever listener it comes to, and is a matter of its connection alone.

use std::{rc::Rc, sync::Arc};

use actix_http::{BoxedPayloadStream, ConnectionType, HttpMessage as _, Payload, Request, Response};
use actix_service::Service;
use actix_web::http::{
    Method,
    header::{CONTENT_LENGTH, TRANSFER_ENCODING, UPGRADE},
};
use bytes::Bytes;
use futures_util::{StreamExt as _, stream};

use super::{course::Course, stopping::Stopping};

/// Hands a request on, and sees to its connection before and after.
///
/// A wish to speak another protocol is passed over (RFC 9110 §7.8), and so is one for a tunnel. The HTTP library takes
/// either for granted: it would read on for ever, and call the connection upgraded in the response.
pub(super) fn answer<S, B>(
    mut request: Request,
    app: &S,
    stopping: &Arc<Stopping>,
) -> impl Future<Output = Result<Response<B>, S::Error>> + use<S, B>
where
    S: Service<Request>,
    S::Response: Into<Response<B>>,
{
    let course = request.conn_data::<Rc<Course>>().map(Rc::clone);
    let stopping = Arc::clone(stopping);
    if let Some(course) = &course {
        course.request_begins();
    }
    let leads_elsewhere = leads_elsewhere(&request);
    if leads_elsewhere {
        bound_body(&mut request);
    }
    let answering = app.call(request);
    async move {
        let mut response: Result<Response<B>, _> = answering.await.map(Into::into);
        if let Some(course) = course {
            course.request_ends();
        }
        if let Ok(response) = &mut response
            && (leads_elsewhere || stopping.is_draining())
        {
            response.head_mut().set_connection_type(ConnectionType::Close);
        }
        response
    }
}

/// Whether a request asks for another protocol on its connection.
fn leads_elsewhere(request: &Request) -> bool {
    request.head().upgrade() || request.headers().contains_key(UPGRADE) || request.method() == Method::CONNECT
}

/// Gives the request the body that it announces, or none. The HTTP library would read to the end of the connection.
fn bound_body(request: &mut Request) {
    let headers = request.headers();
    if headers.contains_key(TRANSFER_ENCODING) {
        return;
    }
    let announced = headers.get(CONTENT_LENGTH);
    let announced = announced.and_then(|length| length.to_str().ok()?.trim().parse::<u64>().ok());
    let endless = request.take_payload();
    if let Some(length @ 1..) = announced {
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
