//! The way of a request through `/v1`, from its head to its response.

use std::cell::Cell;

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use bytes::Bytes;
use kernel::SellerId;
use oauth::{Admission, ClientId, Principal, Scope, UsageKey};
use web::body::BodyLimits;
use web::guarded::guarded;
use web::reply::RateLimit;
use web::{Problem, both, failure, head, idempotency_key, reply};

use crate::arrival::Arrival;
use crate::call::Call;
use crate::deadline::Deadline;
use crate::listener::{Answer, Listener};
use crate::operation::{Context, Incoming, Reply};
use crate::refusal::Refusal;
use crate::routes::Route;
use crate::writing::Terms;
use crate::{HttpSettings, bearer, idempotency, quota, routes, user_agent};

/// What is known of a request at its end, whichever step was its last.
struct Progress {
    limit: Cell<RateLimit>,
    route: Cell<&'static str>,
    /// The operation that was asked for, even if the request never got there.
    operation: Cell<Option<&'static Route>>,
    /// The seller and the application that the request was counted for.
    counted: Cell<Option<(SellerId, ClientId)>>,
}

/// Answers a request to `/v1`.
pub(crate) async fn answer(listener: &Listener, mut arrival: Arrival) -> Answer {
    let progress = Progress {
        limit: Cell::new(quota::uncounted(&listener.public.settings)),
        route: Cell::new("-"),
        operation: Cell::new(None),
        counted: Cell::new(None),
    };
    let trace_id = arrival.trace_id;
    let outcome = guarded(&trace_id, pass(listener, &mut arrival, &progress)).await;
    let route = progress.route.get();
    let (mut response, closes) = match outcome.unwrap_or_else(|panicked| Err(panicked.into())) {
        Ok(reply) => (written(reply, &arrival), false),
        Err(refusal) => {
            let (problem, cause, closes) = refusal.into_parts();
            if let Some(cause) = cause {
                failure::log(&trace_id, route, &cause);
            }
            (problem.into_response(&trace_id), closes)
        }
    };
    if let Some((seller, client_id)) = progress.counted.get() {
        arrival.span.came_for(client_id);
        let status = response.status().as_u16();
        listener.public.usage.note(UsageKey {
            seller,
            client_id,
            status,
        });
    }
    progress.limit.get().write(response.headers_mut());
    if let Some(route) = progress.operation.get() {
        let query = arrival.request.uri().query();
        listener
            .notices
            .write(route.declared.id, query, response.headers_mut());
    }
    let response = arrival.end(response, closes);
    Answer { response, route }
}

/// The checks in the order of the contract (D1): the first that fails is the answer.
async fn pass(listener: &Listener, arrival: &mut Arrival, progress: &Progress) -> Result<Reply, Refusal> {
    let (public, settings) = (&listener.public, &listener.public.settings);
    let request = arrival.request.clone();
    let deadline = Deadline::of_arrival(arrival.at);
    // Looked up here so that the log can name the route of every request; judged below, in its turn.
    let found = routes::find(listener.table, request.method(), request.uri().path());
    progress
        .operation
        .set(found.as_ref().ok().map(|found| found.route));
    progress.route.set(match &found {
        Ok(found) => found.route.template,
        Err(none) => none.template(),
    });

    head::check(request.head())?;
    user_agent::check(request.headers())?;

    let unauthorized = || Problem::unauthorized(&settings.realm);
    let token = bearer::presented(request.headers()).ok_or_else(unauthorized)?;
    let admission = deadline
        .hold(public.gate.admit(token))
        .await?
        .map_err(Refusal::at_the_gate)?;
    let Admission { principal, quota } = admission.ok_or_else(unauthorized)?;

    progress.limit.set(quota::counted(&quota));
    progress
        .counted
        .set(Some((principal.seller, principal.client_id)));
    listener.decisions.api.count(quota.admits());
    quota::admit(&quota)?;

    let found = found.map_err(Problem::from)?;
    permit(&principal, found.route.scope, &settings.realm)?;

    let body = body_of(arrival, settings).await?;
    let incoming = Incoming {
        headers: request.headers(),
        query: request.uri().query().unwrap_or_default(),
        id: found.id,
        body: &body,
    };
    let context = Context {
        principal,
        public: public.clone(),
    };
    let claim = idempotency::claim(found.route.effect, &request, &body, &context);
    let (claim, call) = both(claim, (found.route.decode)(&incoming, context))?;

    let terms = Terms {
        claim,
        deadline: deadline.later_by(arrival.reading()),
        trace_id: arrival.trace_id,
    };
    carry_out(listener, call, terms).await
}

/// Refuses a token without the scope.
fn permit(principal: &Principal, scope: Option<Scope>, realm: &str) -> Result<(), Problem> {
    match scope {
        Some(scope) if !principal.may(scope) => Err(Problem::insufficient_scope(scope.as_str(), realm)),
        _ => Ok(()),
    }
}

async fn body_of(arrival: &mut Arrival, settings: &HttpSettings) -> Result<Bytes, Refusal> {
    let limits = BodyLimits {
        cap: BodyLimits::V1_CAP,
        within: settings.body_timeout,
    };
    arrival.body(limits).await.map_err(Refusal::closing)
}

/// Carries out what was decoded: idempotency, the resource and its state. What only reads is given up at the deadline;
/// what writes goes on to its end, with or without the client.
async fn carry_out(listener: &Listener, call: Call, terms: Terms) -> Result<Reply, Refusal> {
    match call {
        Call::Read(reading) => terms.deadline.hold(reading).await?,
        Call::Write(writing) => listener.public.tasks.run(writing(terms)).await?,
    }
}

fn written(reply: Reply, arrival: &Arrival) -> HttpResponse {
    let mut response = match reply.status {
        StatusCode::NO_CONTENT => reply::empty(reply.status, &arrival.trace_id),
        status => reply::json(status, reply.body, &arrival.trace_id),
    };
    if reply.replayed {
        idempotency_key::mark_replayed(response.headers_mut());
    }
    response
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures_util::FutureExt;
    use tokio::time::{Instant, sleep};
    use web::TraceId;

    use super::*;
    use crate::tests::fixture::Fixture;

    async fn slow() -> Result<Reply, Refusal> {
        sleep(Duration::from_secs(9)).await;
        Ok(Reply {
            status: StatusCode::NO_CONTENT,
            body: Bytes::new(),
            replayed: false,
        })
    }

    #[actix_web::test]
    async fn reading_is_given_up_at_the_deadline_and_writing_is_not() {
        tokio::time::pause();
        let listener = Listener::new(Fixture::new().public());
        let terms = || Terms {
            claim: None,
            deadline: Deadline::of_arrival(Instant::now()),
            trace_id: TraceId::from_random([1; 16]),
        };
        let read = carry_out(&listener, Call::Read(slow().boxed()), terms()).await;
        assert_eq!(read.unwrap_err().into_parts().0, Problem::unavailable());
        let write = Call::Write(Box::new(|_| slow().boxed()));
        assert_eq!(carry_out(&listener, write, terms()).await.unwrap().status, 204);
    }
}
