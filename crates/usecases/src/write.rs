//! How a write is carried out, the same for every listener: once per idempotency key, with the answer remembered in the
//! transaction of the effect.

use std::{any::Any, panic::AssertUnwindSafe, sync::Arc, time::Duration};

use async_trait::async_trait;
use futures_util::FutureExt;
use kernel::{Claim, Claimed, IdempotencyClaims, Remembered, StoreError};

use crate::{Answer, Repeatable, Transaction, UnitOfWork, UnitOfWorkError, Work, transact_within};

/// How long a write waits for the store.
#[async_trait]
pub trait Deadline: Send + Sync {
    /// Waits for a step that has committed nothing. At the deadline the step is dropped.
    async fn hold<T: Send>(&self, step: impl Future<Output = T> + Send) -> Result<T, StoreError>;

    /// Waits for the release of a claim, at least for a moment. A release that takes longer goes on in the background.
    async fn hold_release(&self, release: impl Future<Output = ()> + Send + 'static);
}

/// Waits as long as the store takes.
#[derive(Debug, Clone, Copy)]
pub struct NoDeadline;

#[async_trait]
impl Deadline for NoDeadline {
    async fn hold<T: Send>(&self, step: impl Future<Output = T> + Send) -> Result<T, StoreError> {
        Ok(step.await)
    }

    async fn hold_release(&self, release: impl Future<Output = ()> + Send + 'static) {
        release.await;
    }
}

/// What became of an idempotency key, for the metric `idempotency_claims_total`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClaimOutcome {
    /// The claim was granted. A run that is not counted again below did its work.
    Run,
    /// The first request with the key is still running.
    InProgress,
    /// The key belongs to another request.
    Reused,
    /// The remembered answer was sent.
    Replayed,
    /// The run failed without a change, and the key was released.
    Released,
    /// The answer to COMMIT was lost, and the row says that the work was done.
    Recovered,
    /// The answer to COMMIT was lost, and the row does not say that the work was done.
    Unanswered,
    /// The run outlived its lease and changed nothing: another request took the key over.
    Lost,
}

impl ClaimOutcome {
    /// Its label.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::InProgress => "in_progress",
            Self::Reused => "reused",
            Self::Replayed => "replayed",
            Self::Released => "released",
            Self::Recovered => "recovered",
            Self::Unanswered => "unanswered",
            Self::Lost => "lost",
        }
    }
}

/// How a write ended that did not fail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Written<T> {
    /// It did its work.
    Done(T),
    /// Its COMMIT was not answered, and the row says that the work was done: this is its answer.
    Recovered(Remembered),
    /// An earlier request with the key has done the work: this was its answer.
    Replayed(Remembered),
    /// An earlier request with the key is still running.
    InProgress,
    /// The key belongs to another request.
    Reused,
}

/// What every write of a listener works with.
pub struct Writer<'a> {
    /// Opens transactions.
    pub units: &'a dyn UnitOfWork,
    /// Keeps idempotency keys.
    pub claims: &'a Arc<dyn IdempotencyClaims>,
    /// How long a claim stands while its request runs.
    pub lease: Duration,
    /// Counts what becomes of keys.
    pub count: fn(ClaimOutcome),
}

impl Writer<'_> {
    /// Carries out a write, the same for every operation:
    ///
    /// 1. its idempotency key is claimed, if it has one;
    /// 2. `prepare` makes the work, with no transaction open, and may put the deadline off;
    /// 3. one transaction does the work and remembers the answer;
    /// 4. a failure that changed nothing releases the key before it is reported. If the answer to COMMIT was lost, the row
    ///    tells the outcome; if the row cannot be read, the claim stays until its lease ends.
    ///
    /// A panic is a failure like any other. The caller has to run all this to its end, whatever becomes of the client.
    pub async fn write<W, D>(
        &self,
        claim: Option<&Claim>,
        deadline: D,
        prepare: impl Future<Output = Result<(W, D), W::Error>> + Send,
    ) -> Result<Written<W::Done>, W::Error>
    where
        W: Work<Done: Answer, Error: From<Panicked>>,
        D: Deadline,
    {
        if let Some(claim) = claim {
            let claimed = deadline.hold(self.claims.claim(claim, self.lease)).await;
            match claimed.and_then(|claimed| claimed) {
                Ok(Claimed::Run) => (self.count)(ClaimOutcome::Run),
                Ok(Claimed::InProgress) => {
                    (self.count)(ClaimOutcome::InProgress);
                    return Ok(Written::InProgress);
                }
                Ok(Claimed::Reused) => {
                    (self.count)(ClaimOutcome::Reused);
                    return Ok(Written::Reused);
                }
                Ok(Claimed::Completed(remembered)) => {
                    (self.count)(ClaimOutcome::Replayed);
                    return Ok(Written::Replayed(remembered));
                }
                Err(error) => {
                    // The claim may stand although its answer was lost, and nobody runs it.
                    self.release(claim, &deadline).await;
                    return Err(UnitOfWorkError::from(error).into());
                }
            }
        }

        let run = async {
            let (work, deadline) = prepare.await?;
            let work = Completing { work, claim };
            transact_within(self.units, &work, &deadline).await
        };
        let error = match AssertUnwindSafe(run).catch_unwind().await {
            Ok(Ok(done)) => return Ok(Written::Done(done)),
            Ok(Err(error)) => error,
            Err(panic) => Panicked::of(panic.as_ref()).into(),
        };

        let Some(claim) = claim else { return Err(error) };
        if error.is_unknown() {
            match self.claims.outcome(claim).await {
                Ok(Some(remembered)) => {
                    (self.count)(ClaimOutcome::Recovered);
                    return Ok(Written::Recovered(remembered));
                }
                Ok(None) => self.release(claim, &deadline).await,
                Err(_) => {}
            }
            (self.count)(ClaimOutcome::Unanswered);
            return Err(error);
        }
        self.release(claim, &deadline).await;
        (self.count)(if error.has_lost_claim() {
            ClaimOutcome::Lost
        } else {
            ClaimOutcome::Released
        });
        Err(error)
    }

    /// A claim that cannot be released ends with its lease.
    async fn release(&self, claim: &Claim, deadline: &impl Deadline) {
        let (claims, claim) = (Arc::clone(self.claims), claim.clone());
        let release = async move { drop(claims.release(&claim).await) };
        deadline.hold_release(release).await;
    }
}

/// Work that completes its claim as the last step before the commit. If another request took the claim over, that fails, and with
/// it the whole transaction.
struct Completing<'a, W> {
    work: W,
    claim: Option<&'a Claim>,
}

#[async_trait]
impl<W: Work<Done: Answer>> Work for Completing<'_, W> {
    type Done = W::Done;
    type Error = W::Error;

    async fn run(&self, transaction: &dyn Transaction) -> Result<W::Done, W::Error> {
        let done = self.work.run(transaction).await?;
        if let Some(claim) = self.claim {
            let completed = transaction.complete(claim, &done.remembered()).await;
            completed.map_err(UnitOfWorkError::from)?;
        }
        Ok(done)
    }
}

/// The work panicked before its commit, with this message.
#[derive(Debug, thiserror::Error)]
#[error("the handler panicked: {0}")]
pub struct Panicked(String);

impl Panicked {
    fn of(panic: &(dyn Any + Send)) -> Self {
        let literal = panic.downcast_ref::<&'static str>().copied();
        let message = literal.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        Self(message.unwrap_or("no message").to_owned())
    }
}

#[cfg(test)]
mod tests;
