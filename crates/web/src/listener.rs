//! What differs between listeners: callers, the checks before a route, operations.

use std::sync::Arc;
use std::time::Duration;

use actix_web::HttpResponse;
use actix_web::http::Method;
use kernel::{IdempotencyClaims, KeySpace, Randomness};
use usecases::UnitOfWork;

use crate::deadline::Deadline;
use crate::error::Error;
use crate::problem::Problem;
use crate::request::Request;
use crate::tasks::Tasks;

/// The ports, settings and policy of one listener.
pub trait Listener: Sized + Send + Sync + 'static {
    /// The name of the listener in logs and metrics.
    const NAME: &'static str;
    /// The largest body, in bytes. Streams have no limit.
    const BODY_CAP: usize;
    /// The methods of write operations that accept an `Idempotency-Key`.
    const KEYED: &'static [Method];
    /// The time limit of a write, counted from its head; carrier calls and the time to receive the body do not count.
    const WRITE_TIMEOUT: Duration;

    /// The authenticated caller.
    type Caller: Send + Sync + 'static;
    /// The permission that an operation requires of a caller.
    type Scope: Copy + 'static;
    /// What the checks have learned for the response, whichever check was the last.
    type ResponseContext;

    fn ports(&self) -> Ports<'_>;

    fn response_context(&self) -> Self::ResponseContext;

    /// All checks of a request before its route, in order. `scope` is that of the path, if the path exists.
    fn admit(
        &self,
        request: &Request,
        scope: Option<Self::Scope>,
        deadline: Deadline,
        context: &mut Self::ResponseContext,
    ) -> impl Future<Output = Result<Self::Caller, Error>>;

    /// Refuses a caller who lacks the scope.
    fn permit(&self, caller: &Self::Caller, scope: Self::Scope) -> Result<(), Problem>;

    fn key_space(&self, caller: &Self::Caller) -> KeySpace;

    /// What a key is bound to besides method, target and body.
    fn key_binding(&self, caller: &Self::Caller, path: &str) -> Option<String>;

    /// Adds headers from the context of the checks to the response, and counts the response.
    fn finish(&self, context: Self::ResponseContext, response: &mut HttpResponse);
}

/// The ports and settings that the pipeline itself needs.
pub struct Ports<'a> {
    /// Begins the transactions of writes.
    pub units: &'a dyn UnitOfWork,
    pub claims: &'a Arc<dyn IdempotencyClaims>,
    pub randomness: &'a dyn Randomness,
    /// Runs writes beyond the end of their request.
    pub tasks: &'a Tasks,
    /// The time limit for a body to arrive.
    pub body_timeout: Duration,
    /// The lease of a claim on an idempotency key: a claim that is not released expires after this time.
    pub idempotency_lease: Duration,
}
