//! What distinguishes one listener from another: who calls, what is checked of a caller, which operations there are.

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
    /// The name in logs and metrics.
    const NAME: &'static str;
    /// The largest body, in bytes. Streams have no limit.
    const BODY_CAP: usize;
    /// The methods of writing operations that take an `Idempotency-Key`.
    const KEYED: &'static [Method];
    /// How long a write may take from its head on, carriers and the sending of its body not counted.
    const WRITE_WITHIN: Duration;

    /// Who calls.
    type Caller: Send + Sync + 'static;
    /// What an operation demands of a caller.
    type Scope: Copy + 'static;
    /// What the checks leave behind for the response, whichever of them was the last.
    type ResponseContext;

    fn ports(&self) -> Ports<'_>;

    fn response_context(&self) -> Self::ResponseContext;

    /// Everything that is checked of a request before its route, in order. `scope` is that of the path, where it exists.
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

    /// What else than method, target and body a key is bound to.
    fn key_binding(&self, caller: &Self::Caller, path: &str) -> Option<String>;

    /// Adds what the checks left behind to the response, and counts it.
    fn finish(&self, request: &Request, context: Self::ResponseContext, response: &mut HttpResponse);
}

/// The ports and settings that the pipeline itself needs.
pub struct Ports<'a> {
    /// Opens the transactions of writes.
    pub units: &'a dyn UnitOfWork,
    pub claims: &'a Arc<dyn IdempotencyClaims>,
    pub randomness: &'a dyn Randomness,
    /// Runs writes past the end of their request.
    pub tasks: &'a Tasks,
    /// How long a body may take to arrive.
    pub body_timeout: Duration,
    /// How long a claim on an idempotency key holds when nobody gives it back.
    pub idempotency_lease: Duration,
}
