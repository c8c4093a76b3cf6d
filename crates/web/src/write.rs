//! Executes write requests, the same way for every operation. A write runs as a separate task, so a client
//! that disconnects does not interrupt it.

use std::sync::Arc;
use std::time::Duration;

use kernel::{Claim, Claimed, StoreError, TransactionError};
use tokio::time::{Instant, sleep, timeout, timeout_at};
use usecases::{LockSet, MAX_RETRIES, Transaction, UnitOfWork, retry};

use crate::deadline::Deadline;
use crate::error::Error;
use crate::idempotency;
use crate::listener::Listener;
use crate::operation::{Call, Unclaimed, Write};
use crate::problem::Problem;
use crate::reply::Reply;
use crate::tasks::catch_panic;

/// How long to look up the outcome of a lost COMMIT that no idempotency key records, counted from the first lost one (D132).
pub const RESOLVE_TIMEOUT: Duration = Duration::from_secs(30);
/// The pause after the first failed lookup; it doubles after each further one.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const MAX_PAUSE: Duration = Duration::from_secs(1);
/// The minimum time that a failed write waits for the release of its key. A slower release continues in the
/// background.
const RELEASE_TIMEOUT: Duration = Duration::from_millis(100);

/// Claims the key, if there is one, executes the operation, and settles the claim. Failures are logged here,
/// because no request handler is left to log them once the client has disconnected.
pub(crate) async fn write<L: Listener, W: Write<L>>(
    operation: Option<W>,
    call: Call<L>,
    claim: Option<Claim>,
    route: &'static str,
) -> Result<Reply, Error> {
    let trace_id = call.trace_id;
    let outcome = match claim {
        None => execute(operation, call, None).await,
        Some(claim) => run_keyed(operation, call, &claim).await,
    };
    outcome.map_err(|error| error.logged(&trace_id, route))
}

/// Executes the operation without a claim if that is possible, otherwise under one.
async fn run_keyed<L: Listener, W: Write<L>>(
    operation: Option<W>,
    call: Call<L>,
    claim: &Claim,
) -> Result<Reply, Error> {
    let Some(operation) = operation else {
        return run_claimed::<L, W>(None, call, claim).await;
    };
    let error = match catch_panic(operation.try_unclaimed(&call, claim)).await {
        Ok(Unclaimed::NeedsClaim) => return run_claimed(Some(operation), call, claim).await,
        Ok(Unclaimed::Saved(reply)) => {
            idempotency::count(L::NAME, "run");
            return Ok(reply);
        }
        Ok(Unclaimed::KeyUsed(state)) => {
            return answer_by_key::<L>(state)?.ok_or_else(|| Problem::internal().into());
        }
        Err(error) => error,
    };
    idempotency::count(L::NAME, "run");
    if error.is_unknown() {
        return recover(&call.state, claim, call.deadline, error).await;
    }
    idempotency::count(L::NAME, "released");
    Err(error)
}

/// Executes the operation if its claim is granted; otherwise answers by the state of the key.
async fn run_claimed<L: Listener, W: Write<L>>(
    operation: Option<W>,
    call: Call<L>,
    claim: &Claim,
) -> Result<Reply, Error> {
    let (state, deadline) = (Arc::clone(&call.state), call.deadline);
    let ports = state.ports();

    let lease = ports.service.idempotency_lease;
    match deadline.run(ports.claims.claim(claim, lease)).await.flatten() {
        Ok(state) => {
            if let Some(answer) = answer_by_key::<L>(state)? {
                return Ok(answer);
            }
        }
        Err(error) => {
            // The claim may have been stored although the answer was lost. Nothing will run under it, so
            // release it.
            release(&state, claim, deadline).await;
            return Err(error.into());
        }
    }

    let error = match execute(operation, call, Some(claim)).await {
        // The transaction has completed the claim.
        Ok(reply) => return Ok(reply),
        Err(error) => error,
    };
    if error.is_unknown() {
        return recover(&state, claim, deadline, error).await;
    }
    // Released before the client gets the error, so that it can retry.
    release(&state, claim, deadline).await;
    let is_lost = error.has_lost_its_claim();
    idempotency::count(L::NAME, if is_lost { "lost" } else { "released" });
    Err(error)
}

/// Counts the state of a key, and answers by it. `None` if the request may run.
fn answer_by_key<L: Listener>(state: Claimed) -> Result<Option<Reply>, Error> {
    let (outcome, answer) = match state {
        Claimed::Run => ("run", Ok(None)),
        Claimed::InProgress => ("in_progress", Err(Problem::key_in_progress())),
        Claimed::Reused => ("reused", Err(Problem::key_reused())),
        Claimed::Completed(answer) => ("replayed", Ok(Some(answer))),
    };
    idempotency::count(L::NAME, outcome);
    let reply = answer?.map(Reply::from_stored).transpose()?;
    Ok(reply.map(Reply::replayed))
}

/// Answers by the true outcome of a change whose answer was lost. It may exceed the deadline, because the
/// true answer is worth it (D132). If the row cannot be read, a claim stays until its lease expires.
async fn recover<L: Listener>(
    state: &Arc<L>,
    claim: &Claim,
    deadline: Deadline,
    error: Error,
) -> Result<Reply, Error> {
    match state.ports().claims.outcome(claim).await {
        Ok(Some(answer)) => {
            idempotency::count(L::NAME, "recovered");
            return Ok(Reply::from_stored(answer)?);
        }
        Ok(None) => release(state, claim, deadline).await,
        Err(unread) => tracing::debug!(error = %unread, "the outcome of a write is still unknown"),
    }
    idempotency::count(L::NAME, "unanswered");
    Err(error)
}

/// Prepares, then applies the operation and stores the answer in one transaction; retries after a transaction
/// conflict. A panic becomes an error, and the claim is settled as after any other error.
async fn execute<L: Listener, W: Write<L>>(
    operation: Option<W>,
    mut call: Call<L>,
    claim: Option<&Claim>,
) -> Result<Reply, Error> {
    let mut operation = operation.ok_or_else(Problem::not_found)?;
    call.deadline = call
        .deadline
        .extended_by(L::WRITE_TIMEOUT.saturating_sub(Deadline::REQUEST_TIMEOUT));
    let executing = async {
        operation.prepare(&mut call).await?;
        let locks = call.state.with_shares(&call.caller, operation.locks(&call));
        retry(|| attempt(&operation, &call, claim, &locks)).await
    };
    catch_panic(executing).await
}

/// A transaction that only has to be committed, and its result.
pub type PreparedTransaction<T> = (Box<dyn Transaction>, T);

/// The work of one transaction. Its rows show whether it was committed.
pub trait Recoverable: Sync {
    type Done: Send + Sync;
    type Error: From<TransactionError> + Send;

    /// Does everything up to the COMMIT.
    fn prepare(&self) -> impl Future<Output = Result<PreparedTransaction<Self::Done>, Self::Error>> + Send;

    /// Whether the work was committed, as seen by another transaction.
    fn was_committed(
        &self,
        transaction: &dyn Transaction,
        done: &Self::Done,
    ) -> impl Future<Output = Result<bool, StoreError>> + Send;
}

/// Commits. Work that was certainly rolled back is prepared and committed again if a retry can help. If the
/// response to the COMMIT is lost, the rows show whether it was committed.
pub async fn commit_or_resolve<W: Recoverable>(
    units: &dyn UnitOfWork,
    work: &W,
    mut ready: PreparedTransaction<W::Done>,
) -> Result<W::Done, W::Error> {
    let (mut retries, mut until) = (0, None);
    loop {
        let (transaction, done) = ready;
        match transaction.commit().await {
            Ok(()) => return Ok(done),
            Err(TransactionError::Store(StoreError::Retryable(_))) if retries < MAX_RETRIES => retries += 1,
            Err(error @ TransactionError::Store(_)) => return Err(error.into()),
            Err(TransactionError::Unknown(cause)) => {
                let until = *until.get_or_insert_with(|| Instant::now() + RESOLVE_TIMEOUT);
                let look = || async {
                    let transaction = units.begin(&LockSet::default()).await?;
                    work.was_committed(transaction.as_ref(), &done).await
                };
                match resolve(until, look).await {
                    Some(true) => return Ok(done),
                    Some(false) => {}
                    None => return Err(TransactionError::Unknown(cause).into()),
                }
            }
        }
        ready = work.prepare().await?;
    }
}

/// Looks up an outcome, each time in a new transaction, until the store responds; None at `until`.
pub async fn resolve<T, F: Future<Output = Result<T, StoreError>>>(
    until: Instant,
    look: impl Fn() -> F,
) -> Option<T> {
    let mut pause = FIRST_PAUSE;
    let looking = async {
        loop {
            match look().await {
                Ok(outcome) => return outcome,
                Err(error) => tracing::debug!(%error, "the outcome of a write is still unknown"),
            }
            sleep(pause).await;
            pause = MAX_PAUSE.min(pause * 2);
        }
    };
    timeout_at(until, looking).await.ok()
}

/// One transaction. Before the COMMIT it is dropped at the deadline, with no effect; the COMMIT itself is
/// always awaited.
async fn attempt<L: Listener, W: Write<L>>(
    operation: &W,
    call: &Call<L>,
    claim: Option<&Claim>,
    locks: &LockSet,
) -> Result<Reply, Error> {
    let (units, deadline) = (&call.state.ports().units, call.deadline);
    let beginning = units.begin_within(locks, deadline.for_turn());
    let transaction = deadline.run(beginning).await??;
    let reply = deadline
        .run(operation.apply(call, transaction.as_ref()))
        .await??;
    if let Some(claim) = claim {
        let is_finished = call.state.ports().is_finished();
        // Fails if another request has taken over the claim; then the whole transaction fails.
        deadline
            .run(transaction.complete(claim, &reply.to_stored_response(is_finished)))
            .await??;
    }
    transaction.commit().await?;
    Ok(reply)
}

/// Releases a claim, even if the client is gone. A claim that cannot be released expires with its lease.
async fn release<L: Listener>(state: &Arc<L>, claim: &Claim, deadline: Deadline) {
    let ports = state.ports();
    let (claims, claim) = (Arc::clone(&ports.claims), claim.clone());
    let releasing = ports.tasks.run(async move { claims.release(&claim).await });
    let released = timeout(deadline.remaining().max(RELEASE_TIMEOUT), releasing).await;
    let released = released.map(|ended| ended.map_err(StoreError::unexpected).and_then(|done| done));
    if let Ok(Err(error)) = released {
        tracing::debug!(%error, "the claim on an idempotency key was not released");
    }
}

#[cfg(test)]
mod tests;
