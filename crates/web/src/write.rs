//! How a request that writes is carried out, the same for every operation. It runs as a task of its own, so that a client
//! that goes away neither stops nor halves it.

use std::sync::Arc;
use std::time::Duration;

use kernel::{Claim, Claimed, CommitError, StoreError};
use tokio::time::{Instant, sleep, timeout_at};
use usecases::{Repeatable, Transaction, UnitOfWork, UnitOfWorkError};

use crate::deadline::Deadline;
use crate::error::{Error, catch_panic};
use crate::idempotency;
use crate::listener::Listener;
use crate::operation::{Call, Write};
use crate::problem::Problem;
use crate::reply::Reply;

/// How often a transaction that lost against another one is done again.
const REPEATS: usize = 3;

/// How long the outcome of a lost COMMIT is asked for, from the first one on (D132).
const FIND_OUT_WITHIN: Duration = Duration::from_secs(30);
/// The pause after a first question that was not answered; it doubles with each further one.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// How long a failure waits at least for its key to be given back. What takes longer goes on without it.
const RELEASE_WITHIN: Duration = Duration::from_millis(100);

/// Claims the key, where there is one, carries the operation out, and settles the claim. A failure is logged here, since a
/// client that has gone away leaves nobody behind who would.
pub(crate) async fn write<L: Listener, W: Write<L>>(
    operation: Option<W>,
    call: Call<L>,
    claim: Option<Claim>,
) -> Result<Reply, Error> {
    let trace_id = call.trace_id;
    let outcome = match claim {
        None => run(operation, call, None).await,
        Some(claim) => once(operation, call, &claim).await,
    };
    outcome.map_err(|error| error.logged(&trace_id, W::PATH))
}

/// Runs the operation if its claim is granted; otherwise answers what the key already stands for.
async fn once<L: Listener, W: Write<L>>(
    operation: Option<W>,
    call: Call<L>,
    claim: &Claim,
) -> Result<Reply, Error> {
    let (state, deadline) = (Arc::clone(&call.state), call.deadline);
    let (claims, lease) = (state.ports().claims, state.ports().idempotency_lease);
    let count = |outcome| idempotency::count(L::NAME, outcome);

    let claimed = deadline.hold(claims.claim(claim, lease)).await;
    match claimed.unwrap_or_else(|overdue| Err(overdue.into())) {
        Ok(Claimed::Run) => count("run"),
        Ok(Claimed::InProgress) => {
            count("in_progress");
            return Err(Problem::key_in_progress().into());
        }
        Ok(Claimed::Reused) => {
            count("reused");
            return Err(Problem::key_reused().into());
        }
        Ok(Claimed::Completed(answer)) => {
            count("replayed");
            return Ok(Reply::remembered(answer)?.replayed());
        }
        Err(error) => {
            // The claim may stand though its answer was lost, and nobody runs what it was made for.
            release(&state, claim, deadline).await;
            return Err(error.into());
        }
    }

    let error = match run(operation, call, Some(claim)).await {
        // The claim was completed in the transaction.
        Ok(reply) => return Ok(reply),
        Err(error) => error,
    };
    if error.is_unknown() {
        // May take longer than the deadline: the true answer is worth it (D132). Where the row cannot be read, the claim
        // stays until its lease runs out.
        match claims.outcome(claim).await {
            Ok(Some(answer)) => {
                count("recovered");
                return Ok(Reply::remembered(answer)?);
            }
            Ok(None) => release(&state, claim, deadline).await,
            Err(_) => {}
        }
        count("unanswered");
    } else {
        // Before the failure is told, so that the client may try again.
        release(&state, claim, deadline).await;
        count(if error.has_lost_its_claim() {
            "lost"
        } else {
            "released"
        });
    }
    Err(error)
}

/// Carries the operation out; a panic becomes an error, and settles the claim like any other.
async fn run<L: Listener, W: Write<L>>(
    operation: Option<W>,
    call: Call<L>,
    claim: Option<&Claim>,
) -> Result<Reply, Error> {
    let trace_id = call.trace_id;
    catch_panic(&trace_id, execute(operation, call, claim)).await?
}

/// Prepares, then applies and remembers in one transaction, again where that lost against another one.
async fn execute<L: Listener, W: Write<L>>(
    operation: Option<W>,
    mut call: Call<L>,
    claim: Option<&Claim>,
) -> Result<Reply, Error> {
    let mut operation = operation.ok_or_else(Problem::not_found)?;
    call.deadline = call
        .deadline
        .extended_by(L::WRITE_WITHIN.saturating_sub(Deadline::ANSWER_WITHIN));
    operation.prepare(&mut call).await?;
    repeat(|| attempt(&operation, &call, claim)).await
}

/// Does work again from its start where it lost against other work.
pub async fn repeat<T, E: Repeatable, F: Future<Output = Result<T, E>>>(
    attempt: impl Fn() -> F,
) -> Result<T, E> {
    let mut repeats = 0;
    loop {
        match attempt().await {
            Err(error) if error.is_repeatable() && repeats < REPEATS => repeats += 1,
            outcome => return outcome,
        }
    }
}

/// A transaction that waits for its COMMIT alone, and what it comes to.
pub type Ready<T> = (Box<dyn Transaction>, T);

/// Work of one transaction whose rows tell whether it was committed.
pub trait Recoverable: Sync {
    type Done: Send + Sync;
    type Error: From<UnitOfWorkError> + Send;

    /// Everything but the COMMIT.
    fn prepare(&self) -> impl Future<Output = Result<Ready<Self::Done>, Self::Error>> + Send;

    /// Whether it was committed, as another transaction sees it.
    fn stands(
        &self,
        transaction: &dyn Transaction,
        done: &Self::Done,
    ) -> impl Future<Output = Result<bool, StoreError>> + Send;
}

/// Commits. What surely was not committed is prepared and committed again, where that can help; nothing is done again blindly.
/// Where the answer to the COMMIT is lost, the rows are asked.
pub async fn conclude<W: Recoverable>(
    units: &dyn UnitOfWork,
    work: &W,
    mut ready: Ready<W::Done>,
) -> Result<W::Done, W::Error> {
    let (mut repeats, mut until) = (0, None);
    loop {
        let (transaction, done) = ready;
        match transaction.commit().await {
            Ok(()) => return Ok(done),
            Err(CommitError::RolledBack(StoreError::Retryable(_))) if repeats < REPEATS => repeats += 1,
            Err(CommitError::RolledBack(cause)) => return Err(UnitOfWorkError::from(cause).into()),
            Err(CommitError::Unknown(cause)) => {
                let until = *until.get_or_insert_with(|| Instant::now() + FIND_OUT_WITHIN);
                match timeout_at(until, find_out(units, work, &done)).await {
                    Ok(true) => return Ok(done),
                    Ok(false) => {}
                    Err(_) => return Err(UnitOfWorkError::Unknown(cause).into()),
                }
            }
        }
        ready = work.prepare().await?;
    }
}

/// Asks until there is an answer, each time in a transaction that changes nothing and so is never committed.
async fn find_out<W: Recoverable>(units: &dyn UnitOfWork, work: &W, done: &W::Done) -> bool {
    let mut pause = FIRST_PAUSE;
    loop {
        let answer = match units.begin().await {
            Ok(transaction) => work.stands(transaction.as_ref(), done).await,
            Err(error) => Err(error),
        };
        match answer {
            Ok(stands) => return stands,
            Err(error) => tracing::debug!(%error, "the outcome of a COMMIT is still unknown"),
        }
        sleep(pause).await;
        pause = LONGEST_PAUSE.min(pause * 2);
    }
}

/// One transaction. Up to its COMMIT it is given up at the deadline, having changed nothing; the COMMIT is waited for.
async fn attempt<L: Listener, W: Write<L>>(
    operation: &W,
    call: &Call<L>,
    claim: Option<&Claim>,
) -> Result<Reply, Error> {
    let deadline = call.deadline;
    let transaction = deadline.hold(call.state.ports().units.begin()).await??;
    let reply = deadline
        .hold(operation.apply(call, transaction.as_ref()))
        .await??;
    if let Some(claim) = claim {
        // Fails where the claim was lost to somebody else meanwhile, and with it the whole transaction.
        deadline
            .hold(transaction.complete(claim, &reply.to_remembered()))
            .await??;
    }
    transaction.commit().await?;
    Ok(reply)
}

/// Gives a claim back, also where nobody waits for it any more. A claim that cannot be given back runs out by itself.
async fn release<L: Listener>(state: &Arc<L>, claim: &Claim, deadline: Deadline) {
    let ports = state.ports();
    let (claims, claim) = (Arc::clone(ports.claims), claim.clone());
    let releasing = ports.tasks.run(async move { claims.release(&claim).await });
    let released = deadline.at_least(RELEASE_WITHIN).hold(releasing).await;
    let released = released.map(|ended| ended.map_err(StoreError::unexpected).and_then(|done| done));
    if let Ok(Err(error)) = released {
        tracing::debug!(%error, "an idempotency key was not given back");
    }
}
