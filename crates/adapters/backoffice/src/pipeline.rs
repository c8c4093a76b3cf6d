//! The way of a request through the back office, from its head to its response.

use std::sync::Arc;
use std::time::Duration;

use actix_web::dev::Payload;
use actix_web::web::{self as extract, Data};
use actix_web::{HttpRequest, HttpResponse};
use bytes::Bytes;
use tokio::time::{Instant, timeout};
use web::access_log::AccessLine;
use web::body::{self, Body, BodyLimits};
use web::guarded::guarded;
use web::meters::RequestMeters;
use web::{RequestSpan, TraceId, head, reply};

use crate::meters::LISTENER;
use crate::operation::{Operation, Streaming};
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::request::{Origin, Parts};
use crate::routes::{self, Found, Kind, Route};
use crate::state::BackOffice;
use crate::{idempotency, operator};

/// How long a request may wait for what is only read, once for its token and once for its operation, or for its claim:
/// together a little under the 3 s in which every request is answered while the database is away (D16, D105).
pub(crate) const READ_WITHIN: Duration = Duration::from_millis(1_400);

/// Answers a request, whatever it is.
pub(crate) async fn serve(
    request: HttpRequest,
    payload: extract::Payload,
    office: Data<BackOffice>,
    requests: Data<RequestMeters>,
) -> HttpResponse {
    let began = Instant::now();
    let (mut payload, office) = (payload.into_inner(), office.into_inner());
    let trace_id = TraceId::of(request.headers(), || office.randomness.uuid().into_bytes());
    let found = routes::find(request.method(), request.uri().path());
    let route = found.template();
    // Whoever reaches this listener belongs to the marketplace.
    let span = RequestSpan::begin(LISTENER, request.headers(), &trace_id, || true);
    let passing = pass(&office, &request, trace_id, &mut payload, found);
    let outcome = span.around(guarded(&trace_id, passing)).await;
    let (response, closes) = match outcome.unwrap_or_else(|panicked| Err(panicked.into())) {
        Ok(reply) => (reply.into_response(&trace_id), false),
        Err(refusal) => {
            let (problem, closes) = span.within(|| refusal.logged(&trace_id, route)).into_answer();
            (problem.into_response(&trace_id), closes)
        }
    };
    let (method, status, duration) = (request.method(), response.status(), began.elapsed());
    requests.count(route, method, status, duration);
    let line = AccessLine {
        listener: LISTENER,
        trace_id: &trace_id,
        method,
        route,
        status,
        duration,
    };
    span.end(method, route, status, || line.write());
    match payload {
        payload if closes => reply::closing(response, payload),
        Payload::None => response,
        payload => reply::holding(response, payload),
    }
}

/// The checks in their order: head, token, route, then those of the operation. The first that fails is the answer.
async fn pass(
    office: &Arc<BackOffice>,
    request: &HttpRequest,
    trace_id: TraceId,
    payload: &mut Payload,
    found: Found<'_>,
) -> Result<Reply, Refusal> {
    head::check(request.head())?;
    let by = if found.is_open() {
        None
    } else {
        Some(in_time(operator::admit(request.head(), office)).await?)
    };
    let (route, ids) = found.route()?;
    let parts = Parts {
        head: request.head(),
        ids,
        body: whole_body(office, request, payload, route).await?,
        keyed: route.is_keyed(),
        by,
        origin: Origin {
            trace_id,
            route: route.template,
        },
    };
    let performing = (route.perform)(parts, office, payload);
    if route.method.is_safe() && route.kind != Kind::Waits {
        in_time(performing).await
    } else {
        performing.await
    }
}

/// The last steps of a request: its parts are decoded, its idempotency key is claimed, then the operation is done.
pub(crate) async fn perform<O: Operation>(
    parts: Parts<'_>,
    office: &Arc<BackOffice>,
) -> Result<Reply, Refusal> {
    let input = O::decode(&parts)?;
    if parts.head.method.is_safe() {
        return O::execute(input, parts.context(office)).await;
    }
    let claim = idempotency::claim(&parts, office)?;
    idempotency::run::<O>(input, claim, parts.origin, parts.context(office)).await
}

/// The last steps of a request whose operation reads the body itself.
pub(crate) async fn stream<O: Streaming>(
    parts: Parts<'_>,
    office: &Arc<BackOffice>,
    body: &mut Payload,
) -> Result<Reply, Refusal> {
    let input = O::decode(&parts)?;
    O::execute(input, parts.context(office), body).await
}

/// Waits for what only reads, and comes to no harm when it is dropped.
pub(crate) async fn in_time<T>(reading: impl Future<Output = Result<T, Refusal>>) -> Result<T, Refusal> {
    timeout(READ_WITHIN, reading)
        .await
        .unwrap_or_else(|_| Err(Refusal::overdue()))
}

/// The body, but for an operation that reads it itself.
async fn whole_body(
    office: &BackOffice,
    request: &HttpRequest,
    payload: &mut Payload,
    route: &Route,
) -> Result<Bytes, Refusal> {
    if route.kind == Kind::Streams || matches!(payload, Payload::None) {
        return Ok(Bytes::new());
    }
    let limits = BodyLimits {
        cap: BodyLimits::BACK_OFFICE_CAP,
        within: office.settings.body_timeout,
    };
    let read = body::read(request.headers(), payload, limits).await;
    match (read.complaint(), read) {
        (None, Body::Whole(bytes)) => Ok(bytes),
        (complaint, _) => Err(Refusal::closing(web::Entry::whole(complaint.unwrap_or_default()))),
    }
}
