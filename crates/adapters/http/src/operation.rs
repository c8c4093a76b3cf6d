//! What an operation of `/v1` declares about itself, and what it is given to work with.

use std::str::FromStr;
use std::sync::Arc;

use actix_web::http::header::HeaderMap;
use actix_web::http::{Method, StatusCode};
use bytes::Bytes;
use kernel::{Remembered, StoreError};
use oauth::{Principal, Scope};
use serde::Serialize;
use usecases::{Answer, Transaction};
use web::decode::{self, Shape};
use web::media_type::require_json;
use web::{Violations, both, percent};

use crate::Public;
use crate::deadline::Deadline;
use crate::declared::Declared;
use crate::refusal::Refusal;

/// One operation: a value of the type is one request for it, decoded. The consts are the contract's table about it; the
/// pipeline acts on them, so that an operation cannot forget a check. It is either a [`Read`] or a [`Write`].
pub(crate) trait Operation: Sized + Send + Sync + 'static {
    /// The method. Where it is GET, HEAD works too.
    const METHOD: Method;
    /// The path; its one variable part, if it has any, is `{id}`.
    const TEMPLATE: &'static str;
    /// The scope that a token needs.
    const SCOPE: Option<Scope>;
    /// The names of its query parameters, in the contract's order.
    const PARAMETERS: &'static [&'static str];
    /// The fields that `fields` chooses from: of the body, or of each item where it is a list.
    const FIELDS: &'static [&'static str];
    /// What the document says of it.
    const DECLARED: &'static Declared;

    /// Reads headers, query and body; all that is wrong with them is reported together.
    fn decode(incoming: &Incoming<'_>, context: &Context) -> Result<Self, Violations>;
}

/// An operation that only reads. It is given up at the request's deadline, or when the client goes away.
pub(crate) trait Read: Operation {
    /// Does it.
    fn execute(self, context: Context) -> impl Future<Output = Result<Reply, Refusal>> + Send;
}

/// An operation that changes something. Its transaction, `Idempotency-Key`, deadlines and the client that goes away are
/// taken care of elsewhere (see [`crate::writing`]).
pub(crate) trait Write: Operation {
    /// What is found out before the transaction.
    type Prepared: Send + Sync;

    /// What is done before the transaction and outside of any: cheap checks, calls to others. It must change nothing. It
    /// waits for the store no longer than the deadline, and pauses that while it waits for anybody else.
    fn prepare(
        &self,
        context: &Context,
        deadline: &mut Deadline,
    ) -> impl Future<Output = Result<Self::Prepared, Refusal>> + Send;

    /// Does it, and gives the answer, which is remembered with it. It may be done again from its start, and must change
    /// nothing outside of the transaction.
    fn apply(
        &self,
        prepared: &Self::Prepared,
        context: &Context,
        transaction: &dyn Transaction,
    ) -> impl Future<Output = Result<Reply, Refusal>> + Send;
}

/// Whether an operation changes anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// It only reads: it may be dropped half-way.
    Read,
    /// It changes something: it runs to its end whatever becomes of the client, and takes an `Idempotency-Key`.
    Write,
}

/// What a request brings.
pub(crate) struct Incoming<'a> {
    /// The headers.
    pub(crate) headers: &'a HeaderMap,
    /// The query string as it was sent, without its `?`.
    pub(crate) query: &'a str,
    /// The part of the path in the place of `{id}`, as it was sent; empty where the template has none.
    pub(crate) id: &'a str,
    /// The body; empty where there was none.
    pub(crate) body: &'a Bytes,
}

impl Incoming<'_> {
    /// The id in the path, or nothing where no resource can have it: broken percent-encoding and NUL are no error of
    /// their own (D6).
    pub(crate) fn id<T: FromStr>(&self) -> Option<T> {
        self.named(|text| text.parse().ok())
    }

    /// What `parse` makes of the text in the place of the id.
    pub(crate) fn named<T>(&self, parse: impl FnOnce(&str) -> Option<T>) -> Option<T> {
        parse(&percent::decode(self.id)?)
    }

    /// What the query gave, and a JSON body of this shape; or all that is wrong with headers, query and body. A body that
    /// is not said to be JSON is not looked into.
    pub(crate) fn with_json<Q, S: Shape>(
        &self,
        query: Result<Q, Violations>,
        shape: &S,
    ) -> Result<(Q, S::Value), Violations> {
        match require_json(self.headers) {
            Ok(()) => both(query, decode::body(self.body, shape)),
            Err(wrong) => both(Err(wrong), query).map(|(body, query)| (query, body)),
        }
    }
}

/// Who calls, and what the listener works with.
pub(crate) struct Context {
    /// The caller.
    pub(crate) principal: Principal,
    /// The ports and settings.
    pub(crate) public: Arc<Public>,
}

/// A good answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reply {
    /// 200, 201 or 204.
    pub(crate) status: StatusCode,
    /// JSON; empty for 204.
    pub(crate) body: Bytes,
    /// True for the answer to an earlier request with the same idempotency key.
    pub(crate) replayed: bool,
}

impl Reply {
    /// 200 with this body, written straight to bytes; `expected` is its usual length, so that it is rarely moved.
    pub(crate) fn ok(body: &impl Serialize, expected: usize) -> Result<Self, Refusal> {
        Self::json(StatusCode::OK, body, expected)
    }

    /// 201, as [`Reply::ok`].
    pub(crate) fn created(body: &impl Serialize, expected: usize) -> Result<Self, Refusal> {
        Self::json(StatusCode::CREATED, body, expected)
    }

    /// 204.
    pub(crate) const fn no_content() -> Self {
        Self {
            status: StatusCode::NO_CONTENT,
            body: Bytes::new(),
            replayed: false,
        }
    }

    fn json(status: StatusCode, body: &impl Serialize, expected: usize) -> Result<Self, Refusal> {
        let mut bytes = Vec::with_capacity(expected);
        serde_json::to_writer(&mut bytes, body)?;
        Ok(Self {
            status,
            body: bytes.into(),
            replayed: false,
        })
    }

    /// An answer that was remembered.
    pub(crate) fn known(remembered: Remembered) -> Result<Self, StoreError> {
        let Remembered { status, body } = remembered;
        Ok(Self {
            status: StatusCode::from_u16(status).map_err(StoreError::unexpected)?,
            body: body.into(),
            replayed: false,
        })
    }
}

impl Answer for Reply {
    fn remembered(&self) -> Remembered {
        Remembered {
            status: self.status.as_u16(),
            body: self.body.to_vec(),
        }
    }
}
