//! Idempotency keys: from the header to the claim, and what comes of claiming (contract: Idempotency).

mod outcome;

use std::sync::Arc;
use std::time::Duration;

use actix_web::HttpRequest;
use async_trait::async_trait;
use kernel::{
    Claim, Claimed, Fingerprint, IdempotencyClaims, IdempotencyKey, KeySpace, Remembered, StoreError,
};
use oauth::Principal;
use usecases::{Ran, Repeatable};
use web::{Violations, idempotency_key, sentence};

use crate::Public;
use crate::deadline::Deadline;
use crate::operation::{Context, Effect, Reply};
use crate::refusal::Refusal;
use outcome::Outcome;

/// Where an answer holds a secret: the key of one application never gives it to another (D47).
const PER_APPLICATION: &str = "/v1/webhooks";

/// How long a failure waits at least to give its key back. What takes longer goes on without it.
const RELEASE_WITHIN: Duration = Duration::from_millis(100);

/// The claim that a request asks for: none where it reads, since a key is ignored there, or where it has no key.
pub(crate) fn claim(
    effect: Effect,
    request: &HttpRequest,
    body: &[u8],
    context: &Context,
) -> Result<Option<Claim>, Violations> {
    if effect == Effect::Read {
        return Ok(None);
    }
    let key = idempotency_key::read(request.headers(), |key| {
        IdempotencyKey::new(key).map_err(|invalid| sentence::of(&invalid))
    })?;
    let Context { principal, public } = context;
    Ok(key.map(|key| Claim {
        space: KeySpace::Seller(principal.seller),
        key,
        fingerprint: fingerprint(request, body, principal),
        fence: public.randomness.uuid(),
    }))
}

/// What makes two requests of a seller the same one (D47).
fn fingerprint(request: &HttpRequest, body: &[u8], principal: &Principal) -> Fingerprint {
    let target = request
        .uri()
        .path_and_query()
        .map_or("", |target| target.as_str());
    let client_id = principal.client_id.to_string();
    let mut parts = vec![request.method().as_str().as_bytes(), target.as_bytes(), body];
    if target.starts_with(PER_APPLICATION) {
        parts.push(client_id.as_bytes());
    }
    Fingerprint::of(&parts)
}

/// Runs a request if its claim is granted, and settles the claim; otherwise answers what the key already stands for.
pub(crate) async fn once(
    public: &Arc<Public>,
    claim: &Claim,
    deadline: Deadline,
    run: impl Future<Output = Result<Reply, Refusal>>,
) -> Result<Reply, Refusal> {
    let claims = InTime { public, deadline };
    let lease = public.settings.idempotency_lease;
    match claims.claim(claim, lease).await {
        Ok(Claimed::Run) => {
            Outcome::Run.count();
            settled(usecases::once(&claims, claim, run).await)
        }
        Ok(Claimed::InProgress) => {
            Outcome::InProgress.count();
            Err(idempotency_key::in_progress().into())
        }
        Ok(Claimed::Reused) => {
            Outcome::Reused.count();
            Err(idempotency_key::reused().into())
        }
        Ok(Claimed::Completed(remembered)) => {
            Outcome::Replayed.count();
            let reply = Reply::known(remembered)?;
            Ok(Reply {
                replayed: true,
                ..reply
            })
        }
        Err(error) => {
            // The claim may stand though its answer was lost, and nobody runs it.
            drop(claims.release(claim).await);
            Err(error.into())
        }
    }
}

fn settled(ran: Result<Ran<Reply>, Refusal>) -> Result<Reply, Refusal> {
    match ran {
        Ok(Ran::Done(reply)) => Ok(reply),
        Ok(Ran::Known(remembered)) => {
            Outcome::Recovered.count();
            Ok(Reply::known(remembered)?)
        }
        Err(refusal) => {
            let outcome = if refusal.is_unknown() {
                Outcome::Unanswered
            } else if refusal.lost_its_claim() {
                Outcome::Lost
            } else {
                Outcome::Released
            };
            outcome.count();
            Err(refusal)
        }
    }
}

/// The claims of one request, which waits for the store no longer than it may.
struct InTime<'a> {
    public: &'a Arc<Public>,
    deadline: Deadline,
}

#[async_trait]
impl IdempotencyClaims for InTime<'_> {
    async fn claim(&self, claim: &Claim, lease: Duration) -> Result<Claimed, StoreError> {
        self.deadline.hold(self.public.claims.claim(claim, lease)).await?
    }

    /// Is finished also where nobody waits for it any more.
    async fn release(&self, claim: &Claim) -> Result<(), StoreError> {
        let (public, claim) = (Arc::clone(self.public), claim.clone());
        let releasing = self
            .public
            .tasks
            .run(async move { public.claims.release(&claim).await });
        let deadline = self.deadline.no_sooner_than(RELEASE_WITHIN);
        deadline.hold(releasing).await?.map_err(StoreError::unexpected)?
    }

    /// May take longer than the deadline: the true answer is worth it (D132).
    async fn outcome(&self, claim: &Claim) -> Result<Option<Remembered>, StoreError> {
        self.public.claims.outcome(claim).await
    }
}

#[cfg(test)]
mod tests;
