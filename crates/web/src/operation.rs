//! The declaration of an operation, and the input that it receives. An operation implements [`Read`],
//! [`Write`] or [`Stream`]; a value of the type is one decoded request. The router and the pipeline act on the
//! consts, so an operation cannot skip a check.

use std::str::FromStr;
use std::sync::Arc;

use actix_web::dev::{Payload, RequestHead};
use actix_web::http::header::HeaderMap;
use bytes::Bytes;
use kernel::{Claim, Claimed};
use usecases::{LockSet, Transaction};

use crate::deadline::Deadline;
use crate::decode::{self, ObjectShape, Shape};
use crate::error::Error;
use crate::form::percent_decode;
use crate::listener::Listener;
use crate::media_type::MediaType;
use crate::openapi::{Docs, Parameter};
use crate::path::Ids;
use crate::query::{self, Query, Selection};
use crate::reply::Reply;
use crate::trace_id::TraceId;
use crate::violations::{Violations, both};

/// An operation that only reads. It is dropped when the client disconnects.
pub trait Read<L: Listener>: Sized + Send + Sync + 'static {
    /// The scope that a caller needs.
    const SCOPE: L::Scope;
    /// The query parameters, in the contract's order; unless it has others, `fields` if there are any.
    const QUERY: &'static [Parameter] = fields_alone(Self::FIELDS);
    /// The fields that `fields` can select: of the body, or of each item of a list.
    const FIELDS: &'static [&'static str] = &[];
    /// Whether it is there only once the schema is finished (`migrate --finish`): a program of the
    /// previous release would misread what it leaves.
    const NEEDS_FINISHED: bool = false;
    /// Its part of the OpenAPI document, if the listener has one.
    const DOCS: Option<&'static Docs> = None;
    /// True if it keeps to the request's deadline itself, because it waits for an event or may have a long answer to
    /// write. All others are dropped at the deadline.
    const OWN_DEADLINE: bool = false;

    /// Reads headers, a query with more than `fields`, and body, and reports all violations together. `None`
    /// means that no resource can have the id in the path: the pipeline answers 404 after all checks.
    fn decode(incoming: &Incoming<'_>, call: &Call<L>) -> Result<Option<Self>, Violations>;

    fn execute(self, call: Call<L>) -> impl Future<Output = Result<Reply, Error>> + Send;
}

/// An operation that changes something. It runs to its end even if the client disconnects. [`crate::write`]
/// handles its transaction, idempotency key, deadline and panics. What it declares is as in [`Read`]; its only
/// query parameter is `fields`.
pub trait Write<L: Listener>: Sized + Send + Sync + 'static {
    const SCOPE: L::Scope;
    const FIELDS: &'static [&'static str] = &[];
    const NEEDS_FINISHED: bool = false;
    const DOCS: Option<&'static Docs> = None;

    fn decode(incoming: &Incoming<'_>, call: &Call<L>) -> Result<Option<Self>, Violations>;

    /// Runs before the transaction: cheap checks, calls to other services. It changes nothing and keeps the
    /// call's deadline; it pauses the deadline while it waits for anything but the store.
    fn prepare(&mut self, call: &mut Call<L>) -> impl Future<Output = Result<(), Error>> + Send {
        let _ = call;
        async { Ok(()) }
    }

    /// The rows that [`Self::apply`] will lock; called after [`Self::prepare`]. The rows need not exist.
    fn locks(&self, call: &Call<L>) -> LockSet {
        let _ = call;
        LockSet::default()
    }

    /// Tries to execute a request without a claim on its key and without a lock: key, change and answer are
    /// stored in one statement, which may be shared with other requests. Changes nothing if it fails, unless
    /// the outcome is unknown.
    fn try_unclaimed(
        &self,
        call: &Call<L>,
        claim: &Claim,
    ) -> impl Future<Output = Result<Unclaimed, Error>> + Send {
        let _ = (call, claim);
        async { Ok(Unclaimed::NeedsClaim) }
    }

    /// Makes the change and returns the answer, which is stored in the same transaction. It may be retried
    /// from its start, and must change nothing outside the transaction.
    fn apply(
        &self,
        call: &Call<L>,
        transaction: &dyn Transaction,
    ) -> impl Future<Output = Result<Reply, Error>> + Send;
}

/// The result of an attempt without a claim.
pub enum Unclaimed {
    Saved(Reply),
    /// The key was used before.
    KeyUsed(Claimed),
    /// Nothing was changed, and the request must be executed under a claim: after a conflict, or because the
    /// operation always takes one.
    NeedsClaim,
}

/// An operation that reads its body itself, in chunks. It takes no idempotency key, because a key could not
/// be bound to the body.
pub trait Stream<L: Listener>: Sized + Send + Sync + 'static {
    const SCOPE: L::Scope;

    fn decode(incoming: &Incoming<'_>, call: &Call<L>) -> Result<Option<Self>, Violations>;

    fn execute(self, call: Call<L>, body: &mut Payload) -> impl Future<Output = Result<Reply, Error>>;
}

/// `fields`, if there are any to select.
pub(crate) const fn fields_alone(fields: &[&str]) -> &'static [Parameter] {
    if fields.is_empty() { &[] } else { &[query::FIELDS] }
}

/// The effect of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    Read,
    Write,
    /// Writes while the body arrives.
    Stream,
}

/// What the later steps of a request need.
pub struct Call<L: Listener> {
    /// The listener's ports and settings.
    pub state: Arc<L>,
    pub caller: L::Caller,
    /// The fields that the query selects.
    pub fields: Selection,
    pub deadline: Deadline,
    pub trace_id: TraceId,
}

/// A request to decode.
pub struct Incoming<'a> {
    pub head: &'a RequestHead,
    /// The variable parts of the path as sent, in order.
    pub(crate) ids: Ids<'a>,
    /// The parameters of the operation.
    pub(crate) query: &'static [Parameter],
    /// The names that `fields` can have.
    pub(crate) fields: &'static [&'static str],
    /// Empty if there is none, or if the operation reads it itself.
    pub body: &'a Bytes,
}

impl<'a> Incoming<'a> {
    pub fn headers(&self) -> &HeaderMap {
        &self.head.headers
    }

    /// The id at this position of the path; `None` if no resource can have it. Broken percent-encoding and
    /// NUL are not separate errors (D6).
    pub fn id<T: FromStr>(&self, index: usize) -> Option<T> {
        percent_decode(self.ids.get(index)?)?.parse().ok()
    }

    /// Reads the operation's query parameters, `fields` among them, and refuses others.
    pub fn query<T>(&self, values: impl FnOnce(&mut Query<'a>) -> T) -> Result<T, Violations> {
        self.selected(values).map(|(_, values)| values)
    }

    /// As [`Self::query`], with the selected fields.
    pub(crate) fn selected<T>(
        &self,
        values: impl FnOnce(&mut Query<'a>) -> T,
    ) -> Result<(Selection, T), Violations> {
        let raw = self.head.uri.query().unwrap_or_default();
        query::read(raw, self.query, |query| {
            (query.fields(self.fields), values(query))
        })
    }

    /// A JSON body of this shape, or all violations of headers, query and body. A body whose `Content-Type` is
    /// not JSON is not decoded.
    pub fn json<S: Shape>(&self, shape: &S) -> Result<S::Value, Violations> {
        self.body_as(MediaType::Json, |body| decode::body(body, shape))
    }

    /// As [`Self::json`]; `None` without a body.
    pub fn optional_json<S: Shape>(&self, shape: &S) -> Result<Option<S::Value>, Violations> {
        if self.body.is_empty() {
            return Ok(None);
        }
        self.json(shape).map(Some)
    }

    /// Refuses a body, except for an empty object.
    pub fn no_body(&self) -> Result<(), Violations> {
        self.optional_json(&ObjectShape::new(|_| Some(()))).map(|_| ())
    }

    /// As [`Self::json`], with `read` for a body of this type.
    pub fn body_as<T>(
        &self,
        media_type: MediaType,
        read: impl FnOnce(&[u8]) -> Result<T, Violations>,
    ) -> Result<T, Violations> {
        let query = self.query(|_| ());
        match media_type.require(self.headers()) {
            Ok(()) => both(query, read(self.body)).map(|((), body)| body),
            Err(wrong) => both(Err(wrong), query).map(|(body, ())| body),
        }
    }
}
