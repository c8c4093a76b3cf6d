//! The path of a request through a listener, from its head to its response.

use std::sync::Arc;

use actix_web::HttpRequest;
use bytes::Bytes;

use crate::body::BodyLimits;
use crate::error::Error;
use crate::head;
use crate::idempotency;
use crate::listener::Listener;
use crate::operation::{Call, Effect, Incoming};
use crate::query::Selection;
use crate::reply::Reply;
use crate::request::{Answer, Request};
use crate::route::{Route, RouteMatch, Work, find};
use crate::tasks::catch_panic;
use crate::violations::both;

/// Answers a request with the listener's operations.
pub async fn answer<L: Listener>(
    listener: &Arc<L>,
    routes: &'static [Route<L>],
    mut request: Request,
) -> Answer {
    let http = request.http.clone();
    // Matched first, so that the log names the route of every request. A wrong path or method is rejected
    // after authentication.
    let is_finished = listener.ports().is_finished();
    let found = find(routes, is_finished, http.method(), http.uri().path());
    let route = found.at_path.map_or("-", |route| route.path);
    let mut context = listener.response_context();
    let trace_id = request.trace_id;
    let executing = check_and_execute(listener, routes, &http, &mut request, found, &mut context);
    let (mut response, closes) = match catch_panic(executing).await {
        Ok(reply) => (reply.into_response(&trace_id), false),
        Err(error) => error.logged(&trace_id, route).into_response(&trace_id),
    };
    listener.finish(context, &mut response);
    request.end(response, route, closes)
}

/// Runs the checks in the order of the contract (D1). The first that fails determines the response.
async fn check_and_execute<L: Listener>(
    listener: &Arc<L>,
    routes: &'static [Route<L>],
    http: &HttpRequest,
    request: &mut Request,
    found: RouteMatch<'_, L>,
    context: &mut L::ResponseContext,
) -> Result<Reply, Error> {
    head::check(http.head()).map_err(Error::closing)?;

    let scope = found.at_path.map(|route| route.scope);
    let caller = listener.admit(request, scope, context).await?;

    // Whether the schema is finished may be known only since the admission, which reads from the database. The log
    // has no route of such a request.
    let found = found.operation.or_else(|_| {
        let now_finished = listener.ports().is_finished();
        find(routes, now_finished, http.method(), http.uri().path()).operation
    });
    let (route, ids) = found?;
    listener.permit(&caller, route.scope)?;

    let body = match route.effect {
        Effect::Stream => Bytes::new(),
        Effect::Read | Effect::Write => {
            let limits = BodyLimits {
                cap: L::BODY_CAP,
                within: listener.ports().service.body_timeout,
            };
            let body = request.body(limits).await;
            body.map_err(|error| Error::closing(error.to_string()))?
        }
    };

    let incoming = Incoming {
        head: http.head(),
        ids,
        query: route.query,
        fields: route.fields,
        body: &body,
    };
    let claim = if route.is_keyed() {
        idempotency::claim(listener.as_ref(), &caller, &incoming)
    } else {
        Ok(None)
    };
    let query = incoming.selected(|_| ());
    let call = Call {
        state: Arc::clone(listener),
        caller,
        fields: query.as_ref().map_or(Selection::ALL, |(fields, ())| *fields),
        deadline: request.deadline(),
        trace_id: request.trace_id,
    };
    // Violations of an operation have the query's among them, at their place.
    let work = (route.decode)(&incoming, call).and_then(|work| query.map(|_| work));
    let (claim, work) = both(claim, work)?;
    // Work may wait for its turn for seconds.
    drop(body);

    match work {
        Work::Read(reading) => reading.await,
        Work::Write(write) => listener.ports().tasks.run(write(claim, route.path)).await?,
        Work::Stream(stream) => stream(&mut request.payload).await,
    }
}
