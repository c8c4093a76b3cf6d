//! The table of a listener's operations, and route matching.

use actix_web::dev::Payload;
use actix_web::http::Method;
use futures_util::future::{BoxFuture, LocalBoxFuture};
use kernel::Claim;

use crate::error::Error;
use crate::listener::Listener;
use crate::openapi::{Docs, Parameter};
use crate::operation::{Call, Effect, Incoming, Read, Stream, Write, fields_alone};
use crate::path::{Ids, capture};
use crate::problem::Problem;
use crate::reply::Reply;
use crate::violations::Violations;
use crate::write::write;

/// An operation's declaration as a value, so that code can iterate over the table.
pub struct Route<L: Listener> {
    pub method: Method,
    /// With each variable part in braces.
    pub path: &'static str,
    pub scope: L::Scope,
    pub effect: Effect,
    pub query: &'static [Parameter],
    pub fields: &'static [&'static str],
    pub docs: Option<&'static Docs>,
    pub needs_finished: bool,
    pub(crate) decode: fn(&Incoming<'_>, Call<L>) -> Result<Work, Violations>,
}

/// A decoded request, ready to be executed.
pub(crate) enum Work {
    Read(ReplyFuture),
    /// Takes the claim on its key, and its route for the log.
    Write(Box<dyn FnOnce(Option<Claim>, &'static str) -> ReplyFuture>),
    Stream(Box<dyn FnOnce(&mut Payload) -> LocalReplyFuture<'_>>),
}

type ReplyFuture = BoxFuture<'static, Result<Reply, Error>>;
/// Not `Send`: bound to the server thread, as the payload is.
type LocalReplyFuture<'a> = LocalBoxFuture<'a, Result<Reply, Error>>;

impl<L: Listener> Route<L> {
    /// GET, which includes HEAD.
    pub const fn read<O: Read<L>>(path: &'static str) -> Self {
        Self {
            method: Method::GET,
            path,
            scope: O::SCOPE,
            effect: Effect::Read,
            query: O::QUERY,
            fields: O::FIELDS,
            docs: O::DOCS,
            needs_finished: O::NEEDS_FINISHED,
            decode: |incoming, call| {
                let operation = O::decode(incoming, &call)?;
                Ok(Work::Read(Box::pin(async move {
                    let operation = operation.ok_or_else(Problem::not_found)?;
                    let deadline = call.deadline;
                    let executing = operation.execute(call);
                    if O::OWN_DEADLINE {
                        return executing.await;
                    }
                    deadline.run(executing).await?
                })))
            },
        }
    }

    pub const fn write<O: Write<L>>(method: Method, path: &'static str) -> Self {
        Self {
            method,
            path,
            scope: O::SCOPE,
            effect: Effect::Write,
            query: fields_alone(O::FIELDS),
            fields: O::FIELDS,
            docs: O::DOCS,
            needs_finished: O::NEEDS_FINISHED,
            decode: |incoming, call| {
                let operation = O::decode(incoming, &call)?;
                Ok(Work::Write(Box::new(|claim, route| {
                    Box::pin(write(operation, call, claim, route))
                })))
            },
        }
    }

    /// POST.
    pub const fn stream<O: Stream<L>>(path: &'static str) -> Self {
        Self {
            method: Method::POST,
            path,
            scope: O::SCOPE,
            effect: Effect::Stream,
            query: &[],
            fields: &[],
            docs: None,
            needs_finished: false,
            decode: |incoming, call| {
                let operation = O::decode(incoming, &call)?;
                Ok(Work::Stream(Box::new(|body| {
                    Box::pin(async move {
                        let operation = operation.ok_or_else(Problem::not_found)?;
                        operation.execute(call, body).await
                    })
                })))
            },
        }
    }

    /// Whether an `Idempotency-Key` is read.
    pub fn is_keyed(&self) -> bool {
        self.effect == Effect::Write && L::KEYED.contains(&self.method)
    }
}

/// The match of a request in the table.
pub(crate) struct RouteMatch<'a, L: Listener> {
    /// The route, or the path's first route if the path lacks the method.
    pub(crate) at_path: Option<&'static Route<L>>,
    /// The operation, or 404 (D4).
    pub(crate) operation: Result<(&'static Route<L>, Ids<'a>), Problem>,
}

/// Finds the operation of a request. HEAD counts as GET (D5) but is not listed among the allowed methods
/// (D118). Paths are compared as sent, including a trailing slash (D6). Operations that need a finished schema
/// are there only if it `is_finished`.
pub(crate) fn find<'a, L: Listener>(
    table: &'static [Route<L>],
    is_finished: bool,
    method: &Method,
    path: &'a str,
) -> RouteMatch<'a, L> {
    let table = || table.iter().filter(|route| is_finished || !route.needs_finished);
    let method = if *method == Method::HEAD {
        &Method::GET
    } else {
        method
    };
    // A path without ids comes before one that has an id at the same place.
    let literal = table().find(|route| route.path == path);
    let Some(first) = literal.or_else(|| table().find(|route| capture(route.path, path).is_some())) else {
        let is_path = |path| table().any(|route| capture(route.path, path).is_some());
        let problem = if path.strip_suffix('/').is_some_and(is_path) {
            Problem::trailing_slash()
        } else {
            Problem::no_such_path()
        };
        return RouteMatch {
            at_path: None,
            operation: Err(problem),
        };
    };
    let at_path = table().filter(|route| route.path == first.path);
    let meant = at_path.clone().find(|route| route.method == *method);
    let operation = meant.and_then(|route| Some((route, capture(route.path, path)?)));
    RouteMatch {
        at_path: Some(meant.unwrap_or(first)),
        operation: operation.ok_or_else(|| {
            let methods: Vec<_> = at_path.map(|route| route.method.as_str()).collect();
            Problem::wrong_method(methods.join(", "))
        }),
    }
}
