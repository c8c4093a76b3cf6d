//! What differs between listeners: callers, the checks before a route, operations.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use actix_web::HttpResponse;
use actix_web::http::Method;
use kernel::{IdempotencyClaims, KeySpace, Randomness};
use usecases::{LockSet, UnitOfWork};

use crate::client_ip::TrustedProxies;
use crate::error::Error;
use crate::observer::Observer;
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
    /// The time limit of a write, counted from its head; carrier calls and the time to receive the body do
    /// not count.
    const WRITE_TIMEOUT: Duration;

    /// The authenticated caller.
    type Caller: Send + Sync + 'static;
    /// The permission that an operation requires of a caller.
    type Scope: Copy + 'static;
    /// Facts from the checks for the response; kept when a check refuses the request.
    type ResponseContext;

    fn ports(&self) -> &Ports;

    fn response_context(&self) -> Self::ResponseContext;

    /// All checks of a request before its route, in order. `scope` is that of the path, if the path exists.
    fn admit(
        &self,
        request: &Request,
        scope: Option<Self::Scope>,
        context: &mut Self::ResponseContext,
    ) -> impl Future<Output = Result<Self::Caller, Error>>;

    /// Refuses a caller who lacks the scope.
    fn permit(&self, caller: &Self::Caller, scope: Self::Scope) -> Result<(), Problem>;

    fn key_space(&self, caller: &Self::Caller) -> KeySpace;

    /// The locks of a caller's transaction, with its shares of the connections.
    fn with_shares(&self, caller: &Self::Caller, locks: LockSet) -> LockSet;

    /// What a key is bound to besides method, target and body.
    fn key_binding(&self, caller: &Self::Caller, path: &str) -> Option<Vec<u8>>;

    /// Adds headers from the context of the checks to the response, and counts the response.
    fn finish(&self, context: Self::ResponseContext, response: &mut HttpResponse);
}

/// The ports and settings that every listener needs. Clones share them.
#[derive(Clone)]
pub struct Ports {
    /// Begins the transactions of writes.
    pub units: Arc<dyn UnitOfWork>,
    pub claims: Arc<dyn IdempotencyClaims>,
    pub randomness: Arc<dyn Randomness>,
    /// Runs writes beyond the end of their request.
    pub tasks: Tasks,
    /// Whether the schema is finished, so that no program of the previous release may run any more.
    pub finished: Arc<AtomicBool>,
    pub service: Arc<ServiceSettings>,
}

impl Ports {
    /// Whether to begin what a program of the previous release would misread.
    pub fn is_finished(&self) -> bool {
        self.finished.load(Ordering::Relaxed)
    }
}

/// The settings that the public listener, the panel, the documentation and the back office share.
pub struct ServiceSettings {
    /// The public origin and OAuth issuer, without a trailing slash. If it is https, cookies are `Secure` and
    /// browsers use only https (HSTS).
    pub public_url: String,
    /// The product's name, on every page.
    pub name: String,
    /// The realm in `WWW-Authenticate`.
    pub realm: String,
    /// The address of the documentation.
    pub docs_url: String,
    /// Requests per minute of an application without its own limit.
    pub default_rate_limit: NonZeroU32,
    /// The proxies whose `X-Forwarded-For` is trusted.
    pub trusted_proxies: TrustedProxies,
    /// The time limit for a body to arrive; in an import, for its next piece.
    pub body_timeout: Duration,
    /// The lease of a claim on an idempotency key: a claim that is not released expires after this time
    /// (contract's decision: 60 s). It must be longer than the longest request with a key, about 45 s;
    /// otherwise a request may lose its claim and then changes nothing.
    pub idempotency_lease: Duration,
    /// Sees all requests; none outside of the sandbox.
    pub observer: Option<Arc<dyn Observer>>,
}

impl ServiceSettings {
    /// Whether browsers reach the service over https.
    pub fn is_https(&self) -> bool {
        self.public_url.starts_with("https://")
    }
}
