//! What an operation of `/v1` declares about itself, and what it is given to work with.

use std::str::FromStr;
use std::sync::Arc;

use actix_web::http::header::HeaderMap;
use actix_web::http::{Method, StatusCode};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use oauth::{Principal, Scope};
use serde::Serialize;
use web::{Violations, percent};

use crate::Public;
use crate::refusal::Refusal;

/// One operation: a value of the type is one request for it, decoded. The consts are the contract's table about it; the
/// pipeline acts on them, so that an operation cannot forget a check.
pub(crate) trait Operation: Sized + Send + 'static {
    /// The method. Where it is GET, HEAD works too.
    const METHOD: Method;
    /// The path; its one variable part, if it has any, is `{id}`.
    const TEMPLATE: &'static str;
    /// The scope that a token needs.
    const SCOPE: Option<Scope>;
    /// Whether it changes anything.
    const EFFECT: Effect;
    /// The names of its query parameters, in the contract's order.
    const PARAMETERS: &'static [&'static str];
    /// The fields that `fields` chooses from: of the body, or of each item where it is a list.
    const FIELDS: &'static [&'static str];

    /// Reads headers, query and body; all that is wrong with them is reported together.
    fn decode(incoming: &Incoming<'_>, context: &Context) -> Result<Self, Violations>;

    /// Does it.
    fn execute(self, context: Context) -> impl Future<Output = Result<Reply, Refusal>> + Send;
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
    #[expect(
        dead_code,
        reason = "what only reads has no headers of its own; what writes will"
    )]
    pub(crate) headers: &'a HeaderMap,
    /// The query string as it was sent, without its `?`.
    pub(crate) query: &'a str,
    /// The part of the path in the place of `{id}`, as it was sent; empty where the template has none.
    pub(crate) id: &'a str,
    /// The body; empty where there was none.
    #[expect(dead_code, reason = "what only reads takes no body; what writes will")]
    pub(crate) body: &'a Bytes,
}

impl Incoming<'_> {
    /// The id in the path, or nothing where no resource can have it: broken percent-encoding and NUL are no error of
    /// their own (D6).
    pub(crate) fn id<T: FromStr>(&self) -> Option<T> {
        percent::decode(self.id)?.parse().ok()
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
    /// JSON.
    pub(crate) body: Bytes,
}

impl Reply {
    /// 200 with this body, written straight to bytes; `expected` is its usual length, so that it is rarely moved.
    pub(crate) fn ok(body: &impl Serialize, expected: usize) -> Result<Self, Refusal> {
        let mut bytes = Vec::with_capacity(expected);
        serde_json::to_writer(&mut bytes, body)?;
        Ok(Self {
            status: StatusCode::OK,
            body: bytes.into(),
        })
    }
}

/// A decoded request that only waits to be run.
pub(crate) type Call = BoxFuture<'static, Result<Reply, Refusal>>;

/// [`Operation::decode`], what comes out of it made ready to run.
pub(crate) fn prepare<O: Operation>(incoming: &Incoming<'_>, context: Context) -> Result<Call, Violations> {
    let operation = O::decode(incoming, &context)?;
    Ok(Box::pin(operation.execute(context)))
}
