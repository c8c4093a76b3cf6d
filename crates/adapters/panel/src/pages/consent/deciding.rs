//! A decision about consent, and finding out what became of it where the answer to its COMMIT is lost: a code is given to the
//! browser if and only if it was stored.

use std::sync::Arc;
use std::time::Duration;

use kernel::{CommitError, StoreError};
use oauth::{ConsentRefusal, ConsentTicket, Decision, Viewer};
use tokio::time::{Instant, sleep, timeout_at};
use usecases::consent::{Made, decide, stands};
use usecases::{ActingSeller, Failure, Repeatable, Transaction, UnitOfWorkError};

use crate::Panel;
use crate::refusal::Refusal;

/// How often work that lost against other work is done again.
const REPEATS: usize = 3;
/// How long the outcome of a lost COMMIT is asked for, from the first one on (D132).
const FIND_OUT_WITHIN: Duration = Duration::from_secs(30);
/// The pause after a first question that was not answered; it doubles with each further one.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// Who decides what about which request.
pub(super) struct Deciding {
    pub(super) panel: Arc<Panel>,
    pub(super) ticket: ConsentTicket,
    pub(super) viewer: Viewer,
    pub(super) decision: Decision,
    pub(super) by: ActingSeller,
}

type Refused = Failure<ConsentRefusal>;

impl Deciding {
    /// Decides, as a task that goes on to its end whether or not the browser waits.
    pub(super) async fn run(self) -> Result<Made, Refusal> {
        let tasks = self.panel.tasks.clone();
        match tasks.run(async move { self.conclude().await }).await? {
            Ok(made) => Ok(made),
            Err(Failure::Refused(refusal)) => Err(refusal.into()),
            Err(Failure::Store(error)) => Err(error.into()),
        }
    }

    /// Does again what surely was not committed, where that can help; nothing is done again blindly.
    async fn conclude(&self) -> Result<Made, Refused> {
        let (mut repeats, mut until) = (0, None);
        loop {
            let (transaction, made) = match self.attempt().await {
                Ok(ready) => ready,
                Err(error) if error.is_repeatable() && repeats < REPEATS => {
                    repeats += 1;
                    continue;
                }
                Err(error) => return Err(error),
            };
            match transaction.commit().await {
                Ok(()) => return Ok(made),
                Err(CommitError::RolledBack(StoreError::Retryable(_))) if repeats < REPEATS => repeats += 1,
                Err(CommitError::RolledBack(cause)) => return Err(cause.into()),
                Err(CommitError::Unknown(cause)) => {
                    let until = *until.get_or_insert_with(|| Instant::now() + FIND_OUT_WITHIN);
                    match self.find_out(&made, until).await {
                        Some(true) => return Ok(made),
                        Some(false) => {}
                        None => return Err(UnitOfWorkError::Unknown(cause).into()),
                    }
                }
            }
        }
    }

    /// Everything but the COMMIT.
    async fn attempt(&self) -> Result<(Box<dyn Transaction>, Made), Refused> {
        let transaction = self.panel.units.begin().await?;
        let (within, now) = (transaction.as_ref(), transaction.now());
        let made = decide(
            (within, within, within),
            self.panel.randomness.as_ref(),
            (&self.ticket, self.viewer),
            self.decision,
            (self.by, self.panel.settings.code_ttl),
            now,
        )
        .await?;
        Ok((transaction, made))
    }

    /// Whether the decision stands although the answer to its COMMIT was lost; nothing where that cannot be found out in time.
    async fn find_out(&self, made: &Made, until: Instant) -> Option<bool> {
        let mut pause = FIRST_PAUSE;
        let answered = async {
            loop {
                match self.ask(made).await {
                    Ok(stands) => return stands,
                    Err(error) => tracing::debug!(%error, "the outcome of a COMMIT is still unknown"),
                }
                sleep(pause).await;
                pause = LONGEST_PAUSE.min(pause * 2);
            }
        };
        timeout_at(until, answered).await.ok()
    }

    /// Asks in a transaction that changes nothing and so is never committed.
    async fn ask(&self, made: &Made) -> Result<bool, StoreError> {
        let transaction = self.panel.units.begin().await?;
        stands(transaction.as_ref(), (&self.ticket, self.viewer), made).await
    }
}
