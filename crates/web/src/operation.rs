//! What an operation declares about itself, and what it is given to work with.

use std::str::FromStr;
use std::sync::Arc;

use actix_web::dev::{Payload, RequestHead};
use actix_web::http::Method;
use actix_web::http::header::HeaderMap;
use bytes::Bytes;
use usecases::Transaction;

use crate::deadline::Deadline;
use crate::decode::{self, Shape};
use crate::error::Error;
use crate::form::percent_decode;
use crate::listener::Listener;
use crate::media_type::require_json;
use crate::openapi::{Docs, Parameter};
use crate::query::{self, Query};
use crate::reply::Reply;
use crate::trace_id::TraceId;
use crate::violations::{Violations, both};

/// One operation of a listener: a value of the type is one decoded request. The router and the pipeline act on the consts,
/// so that an operation cannot forget a check. It is also a [`Read`], a [`Write`] or a [`Stream`].
pub trait Operation<L: Listener>: Sized + Send + Sync + 'static {
    /// Where it is GET, HEAD works too.
    const METHOD: Method;
    /// The path, with each variable part in braces.
    const PATH: &'static str;
    /// What a caller needs.
    const SCOPE: L::Scope;
    /// The query parameters, in the contract's order.
    const QUERY: &'static [Parameter] = &[];
    /// The fields that `fields` chooses from: of the body, or of each item of a list.
    const FIELDS: &'static [&'static str] = &[];
    /// What the OpenAPI document says of it, where the listener has one.
    const DOCS: Option<&'static Docs> = None;

    /// Reads headers, query and body; all that is wrong with them is reported together. Nothing, where no resource can
    /// have the id in the path: that is 404, in its turn.
    fn decode(incoming: &Incoming<'_>, call: &Call<L>) -> Result<Option<Self>, Violations>;
}

/// An operation that only reads. It is dropped when the client goes away.
pub trait Read<L: Listener>: Operation<L> {
    /// It waits for something to happen, and bounds its time itself. All others are given up at the request's deadline.
    const WAITS: bool = false;

    fn execute(self, call: Call<L>) -> impl Future<Output = Result<Reply, Error>> + Send;
}

/// An operation that changes something. It runs to its end whatever becomes of the client. [`crate::write`] takes care of
/// its transaction, idempotency key, deadline and panics.
pub trait Write<L: Listener>: Operation<L> {
    /// What comes before the transaction: cheap checks, calls to others. It changes nothing, holds to the call's deadline,
    /// and pauses that while it waits for anybody other than the store.
    fn prepare(&mut self, call: &mut Call<L>) -> impl Future<Output = Result<(), Error>> + Send {
        let _ = call;
        async { Ok(()) }
    }

    /// Does it, and gives the answer, which is remembered with the effect. It may run again from its start, and must
    /// change nothing outside of the transaction.
    fn apply(
        &self,
        call: &Call<L>,
        transaction: &dyn Transaction,
    ) -> impl Future<Output = Result<Reply, Error>> + Send;
}

/// An operation that reads its body itself, piece by piece. It takes no idempotency key, which could not be bound to the
/// body.
pub trait Stream<L: Listener>: Operation<L> {
    fn execute(self, call: Call<L>, body: &mut Payload) -> impl Future<Output = Result<Reply, Error>>;
}

/// Whether an operation changes anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    Read,
    Write,
    /// It writes while the body arrives.
    Stream,
}

/// Everything that later stations of a request need.
pub struct Call<L: Listener> {
    /// The listener's ports and settings.
    pub state: Arc<L>,
    pub caller: L::Caller,
    pub deadline: Deadline,
    pub trace_id: TraceId,
}

/// What a request brings.
pub struct Incoming<'a> {
    pub head: &'a RequestHead,
    /// The variable parts of the path as they were sent, in their order.
    pub(crate) ids: Ids<'a>,
    /// Empty where there was none, or where the operation reads it itself.
    pub body: &'a Bytes,
}

/// The variable parts of a path; no path has more than two.
pub type Ids<'a> = [&'a str; 2];

impl<'a> Incoming<'a> {
    pub fn headers(&self) -> &HeaderMap {
        &self.head.headers
    }

    /// The id at this place of the path; nothing where no resource can have it: broken percent-encoding and NUL are no
    /// error of their own (D6).
    pub fn id<T: FromStr>(&self, place: usize) -> Option<T> {
        self.named(place, |text| text.parse().ok())
    }

    /// What `parse` makes of the text at this place of the path.
    pub fn named<T>(&self, place: usize, parse: impl FnOnce(&str) -> Option<T>) -> Option<T> {
        parse(&percent_decode(self.ids.get(place)?)?)
    }

    /// These query parameters and no others. A body is not looked at (D9).
    pub fn query<T>(
        &self,
        known: &'a [Parameter],
        values: impl FnOnce(&mut Query<'a>) -> T,
    ) -> Result<T, Violations> {
        query::read(self.head.uri.query().unwrap_or_default(), known, values)
    }

    /// No query. A body is not looked at (D9).
    pub fn no_query(&self) -> Result<(), Violations> {
        self.query(&[], |_| ())
    }

    /// What the query gave, and a JSON body of this shape; or all that is wrong with headers, query and body. A body that
    /// is not said to be JSON is not looked into.
    pub fn json<Q, S: Shape>(
        &self,
        query: Result<Q, Violations>,
        shape: &S,
    ) -> Result<(Q, S::Value), Violations> {
        self.body_as(require_json(self.headers()), query, |body| {
            decode::body(body, shape)
        })
    }

    /// A JSON body of this shape, and no query.
    pub fn json_alone<S: Shape>(&self, shape: &S) -> Result<S::Value, Violations> {
        self.json(self.no_query(), shape).map(|((), body)| body)
    }

    /// The same with what `read` makes of the body, whose headers have been judged.
    pub fn body_as<Q, T>(
        &self,
        headers: Result<(), Violations>,
        query: Result<Q, Violations>,
        read: impl FnOnce(&[u8]) -> Result<T, Violations>,
    ) -> Result<(Q, T), Violations> {
        match headers {
            Ok(()) => both(query, read(self.body)),
            Err(wrong) => both(Err(wrong), query).map(|(body, query)| (query, body)),
        }
    }
}
