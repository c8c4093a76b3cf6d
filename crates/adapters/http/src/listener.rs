//! Where every request of the listener comes in: it gets its trace id and its span, goes to the part that answers it, and leaves a
//! line in the log and a mark in the meters.

use std::sync::Arc;

use actix_web::http::Method;
use actix_web::web::Payload;
use actix_web::{HttpRequest, HttpResponse};
use bytes::Bytes;
use tokio::time::Instant;
use web::access_log::AccessLine;
use web::meters::RequestMeters;
use web::{Entry, Problem, RequestSpan, TraceId, head};

use crate::arrival::Arrival;
use crate::deprecated::{Ending, Notices};
use crate::forwarding::Forwarding;
use crate::meters::Decisions;
use crate::routes::{Route, TABLE};
use crate::trace_ids::TraceIds;
use crate::{Public, authorization_server, document, pipeline};

/// What the listener is called in logs and metrics.
pub(crate) const LISTENER: &str = "api";

/// The listener in one server thread.
pub(crate) struct Listener {
    pub(crate) public: Arc<Public>,
    /// The operations of `/v1`.
    pub(crate) table: &'static [Route],
    /// What of them and of the authorization server goes away.
    pub(crate) notices: Notices,
    forwarding: Forwarding,
    trace_ids: TraceIds,
    meters: RequestMeters,
    pub(crate) decisions: Decisions,
    document: Bytes,
}

/// A response, and the template of the route that gave it.
pub(crate) struct Answer {
    pub(crate) response: HttpResponse,
    pub(crate) route: &'static str,
}

impl Listener {
    pub(crate) fn new(public: Public) -> Self {
        Self::over(TABLE, authorization_server::ENDING, public)
    }

    /// The listener with these operations, and these endpoints going away.
    pub(crate) fn over(table: &'static [Route], ending: &[Ending], public: Public) -> Self {
        Self {
            table,
            notices: Notices::of(table, ending),
            forwarding: Forwarding::new(&public.settings.trusted_proxies),
            trace_ids: TraceIds::new(public.randomness.as_ref()),
            meters: RequestMeters::new(LISTENER),
            decisions: Decisions::new(),
            document: document::served(&public.settings.public_url, &public.settings.docs_url),
            public: Arc::new(public),
        }
    }

    /// Answers any request.
    pub(crate) async fn serve(&self, request: HttpRequest, payload: Payload) -> HttpResponse {
        let at = Instant::now();
        let trace_id = TraceId::of(request.headers(), || self.trace_ids.next());
        let span = RequestSpan::begin(LISTENER, request.headers(), &trace_id, || {
            self.forwarding.trusts(&request)
        });
        let client = self.forwarding.client(&request, at);
        let method = request.method().clone();
        let payload = payload.into_inner();
        let arrival = Arrival::new(request, payload, (trace_id, span.clone()), client, at);
        let Answer { response, route } = span.around(self.answer(arrival)).await;
        let (status, duration) = (response.status(), at.elapsed());
        self.meters.count(route, &method, status, duration);
        let line = AccessLine {
            listener: LISTENER,
            trace_id: &trace_id,
            method: &method,
            route,
            status,
            duration,
        };
        span.end(&method, route, status, || line.write());
        response
    }

    async fn answer(&self, arrival: Arrival) -> Answer {
        match arrival.path() {
            path if is_under(path, "/v1") => pipeline::answer(self, arrival).await,
            path if is_under(path, "/oauth") => authorization_server::answer(self, arrival).await,
            authorization_server::METADATA_PATH => authorization_server::metadata(self, arrival),
            document::PATH => document::answer(&self.document, arrival),
            _ => nothing_here(arrival),
        }
    }
}

/// Whether a path is the part itself or lies under it.
fn is_under(path: &str, part: &str) -> bool {
    path.strip_prefix(part)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn nothing_here(arrival: Arrival) -> Answer {
    Answer::unguarded(arrival, "-", |arrival| {
        Problem::not_found().into_response(&arrival.trace_id)
    })
}

impl Answer {
    /// Of a document that everybody may read.
    pub(crate) fn document(
        arrival: Arrival,
        route: &'static str,
        document: impl FnOnce(&Arrival) -> HttpResponse,
    ) -> Self {
        Self::unguarded(arrival, route, |arrival| match *arrival.request.method() {
            Method::GET | Method::HEAD => document(arrival),
            _ => Problem::wrong_method("GET").into_response(&arrival.trace_id),
        })
    }

    /// Where nobody needs a token: nothing but the head is checked.
    fn unguarded(
        arrival: Arrival,
        route: &'static str,
        answer: impl FnOnce(&Arrival) -> HttpResponse,
    ) -> Self {
        let (response, closes) = match head::check(arrival.request.head()) {
            Ok(()) => (answer(&arrival), false),
            Err(excess) => {
                let problem = Problem::from(Entry::from(excess));
                (problem.into_response(&arrival.trace_id), true)
            }
        };
        Self {
            response: arrival.end(response, closes),
            route,
        }
    }
}
