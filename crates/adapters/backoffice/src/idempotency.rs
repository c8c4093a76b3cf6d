//! Idempotency keys: a POST that is sent again with its key is answered as it was, and does nothing more.
//!
//! All of it runs as a task of its own, the release of a failed claim included, so that a client that goes away leaves no
//! claim behind.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use kernel::{Claim, Claimed, IdempotencyClaims, KeySpace, Remembered, StoreError};
use tokio::time::timeout;
use usecases::{Ran, Repeatable, once};
use web::{Violations, idempotency_key};

use crate::meters;
use crate::operation::{Context, Operation};
use crate::pipeline::READ_WITHIN;
use crate::refusal::{Overdue, Refusal};
use crate::reply::Reply;
use crate::request::{Origin, Parts};
use crate::state::BackOffice;

/// How long a failure waits for its key to be given back. What takes longer goes on without it.
const RELEASE_WITHIN: Duration = Duration::from_millis(100);

/// The claim that a request asks for, in the operators' own key space (D46).
pub(crate) fn claim(parts: &Parts<'_>, office: &BackOffice) -> Result<Option<Claim>, Violations> {
    let claim = |key| Claim {
        space: KeySpace::Operator,
        key,
        fingerprint: parts.fingerprint(),
        fence: office.randomness.uuid(),
    };
    Ok(parts.key()?.map(claim))
}

/// Does an operation that changes something, to its end whatever becomes of the client. Nobody may be left to hear of a
/// failure, so it is logged here.
pub(crate) async fn run<O: Operation>(
    input: O::Input,
    claim: Option<Claim>,
    origin: Origin,
    mut context: Context,
) -> Result<Reply, Refusal> {
    let (claim, office) = (claim.map(Arc::new), Arc::clone(&context.office));
    let owned = Arc::clone(&office);
    context.claim.clone_from(&claim);
    let executing = O::execute(input, context);
    let running = async move {
        let outcome = match claim {
            Some(claim) => claimed(&owned, &claim, executing).await,
            None => executing.await,
        };
        outcome.map_err(|refusal| refusal.logged(&origin.trace_id, origin.route))
    };
    office.tasks.run(running).await?
}

/// Executes what the claim allows, or answers by what is known of its key.
async fn claimed(
    office: &Arc<BackOffice>,
    claim: &Claim,
    executing: impl Future<Output = Result<Reply, Refusal>> + Send + 'static,
) -> Result<Reply, Refusal> {
    let claims = InTime(office);
    match claims.claim(claim, office.settings.idempotency_lease).await {
        Ok(Claimed::Run) => {
            meters::count_claim("run");
            // A task within the task: where the operation panics, its claim is settled all the same.
            let running = async { office.tasks.run(executing).await? };
            settled(once(&claims, claim, running).await)
        }
        Ok(Claimed::InProgress) => {
            meters::count_claim("in_progress");
            Err(idempotency_key::in_progress().into())
        }
        Ok(Claimed::Reused) => {
            meters::count_claim("reused");
            Err(idempotency_key::reused().into())
        }
        Ok(Claimed::Completed(remembered)) => {
            meters::count_claim("replayed");
            Ok(Reply::replayed(remembered))
        }
        Err(error) => {
            // It may stand though its answer was lost, and nobody runs what it was made for.
            drop(claims.release(claim).await);
            Err(error.into())
        }
    }
}

fn settled(ran: Result<Ran<Reply>, Refusal>) -> Result<Reply, Refusal> {
    match ran {
        Ok(Ran::Done(reply)) => Ok(reply),
        Ok(Ran::Known(remembered)) => {
            meters::count_claim("recovered");
            Ok(Reply::remembered(remembered))
        }
        Err(refusal) => {
            meters::count_claim(if refusal.is_unknown() {
                "unanswered"
            } else if refusal.lost_its_claim() {
                "lost"
            } else {
                "released"
            });
            Err(refusal)
        }
    }
}

/// The claims of one request, which waits for the store no longer than it may.
struct InTime<'a>(&'a Arc<BackOffice>);

#[async_trait]
impl IdempotencyClaims for InTime<'_> {
    async fn claim(&self, claim: &Claim, lease: Duration) -> Result<Claimed, StoreError> {
        timeout(READ_WITHIN, self.0.claims.claim(claim, lease))
            .await
            .unwrap_or_else(|_| Err(Overdue.into()))
    }

    /// Is finished also where nobody waits for it any more.
    async fn release(&self, claim: &Claim) -> Result<(), StoreError> {
        let (office, claim) = (Arc::clone(self.0), claim.clone());
        let releasing = self
            .0
            .tasks
            .run(async move { office.claims.release(&claim).await });
        match timeout(RELEASE_WITHIN, releasing).await {
            Ok(released) => released.map_err(StoreError::unexpected)?,
            Err(_) => Err(Overdue.into()),
        }
    }

    /// May take longer: the true answer is worth it (D132).
    async fn outcome(&self, claim: &Claim) -> Result<Option<Remembered>, StoreError> {
        self.0.claims.outcome(claim).await
    }
}
