//! Idempotency keys: the header and its claim (contract: Idempotency).

use actix_web::http::header::{HeaderMap, HeaderName};
use kernel::{Claim, Fingerprint, IdempotencyKey};

use crate::listener::Listener;
use crate::operation::Incoming;
use crate::single_header::at_most_once;
use crate::violations::Violations;

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// The claim for a request, if it has a key.
pub(crate) fn claim<L: Listener>(
    listener: &L,
    caller: &L::Caller,
    incoming: &Incoming<'_>,
) -> Result<Option<Claim>, Violations> {
    let key = key(incoming.headers())?;
    Ok(key.map(|key| Claim {
        space: listener.key_space(caller),
        key,
        fingerprint: fingerprint(
            incoming,
            listener.key_binding(caller, incoming.head.uri.path()).as_deref(),
        ),
        fence: listener.ports().randomness.uuid(),
    }))
}

/// The key in the header. A repeated header is refused, whatever its values; a comma is a character of the
/// key (D48, D116).
pub fn key(headers: &HeaderMap) -> Result<Option<IdempotencyKey>, Violations> {
    at_most_once(headers, IDEMPOTENCY_KEY, "Idempotency-Key", IdempotencyKey::new)
}

/// Identifies a request: method, target and body, byte for byte (D47).
fn fingerprint(incoming: &Incoming<'_>, binding: Option<&[u8]>) -> Fingerprint {
    let target = incoming.head.uri.path_and_query();
    let target = target.map_or("", |target| target.as_str());
    let mut parts = vec![
        incoming.head.method.as_str().as_bytes(),
        target.as_bytes(),
        incoming.body,
    ];
    parts.extend(binding);
    Fingerprint::of(&parts)
}

/// Counts the outcome of a claim: `run`, `in_progress`, `reused` or `replayed`; after a failed run also
/// `released`, `recovered`, `unanswered` or `lost`.
pub(crate) fn count(listener: &'static str, outcome: &'static str) {
    metrics::counter!("idempotency_claims_total", "listener" => listener, "outcome" => outcome).increment(1);
}
