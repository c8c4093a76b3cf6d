//! Pairs of tokens for what clients present.
//!
//! Up to its COMMIT the work is dropped when the client goes away, so that nobody's credential is used up for nothing. From
//! then on it is a task of its own. Where the answer to the COMMIT is lost, it finds out what became of it: a client that
//! was told of a failure would present the same credential again, and that ends its family.

use std::sync::Arc;
use std::time::Duration;

use kernel::{CommitError, StoreError};
use oauth::GrantRefusal;
use tokio::time::{Instant, sleep, timeout_at};
use usecases::exchange_code::exchange_code;
use usecases::refresh_tokens::refresh_tokens;
use usecases::token_pair::{Granted, Lifetimes, TokenPair};
use usecases::{Failure, Transaction, UnitOfWorkError};
use web::TraceId;
use web::deadline::Deadline;
use web::write::{REPEATS, repeat};

use super::Endpoint;
use super::error::OAuthError;
use super::token::{Issued, Presented};
use crate::Public;

/// How long the outcome of a lost COMMIT is asked for, from the first one on (D132).
const FIND_OUT_WITHIN: Duration = Duration::from_secs(30);
/// The pause after a first question that was not answered; it doubles with each further one.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// A pair in the making. Its secrets are made first, so that it can be asked for by them.
struct Issue {
    public: Arc<Public>,
    presented: Presented,
    pair: TokenPair,
}

/// Work that waits for its COMMIT alone, and what it comes to.
type Ready = (Box<dyn Transaction>, Granted);

type Refused = Failure<GrantRefusal>;

/// Uses up what is presented and issues the pair.
pub(super) async fn issue(
    public: &Arc<Public>,
    presented: Presented,
    deadline: Deadline,
    trace_id: TraceId,
) -> Result<Issued, OAuthError> {
    let issue = Issue {
        pair: TokenPair::new(public.randomness.as_ref(), presented.family()),
        public: Arc::clone(public),
        presented,
    };
    let ready = issue.prepare(deadline).await?;
    let concluded = public.tasks.run(async move {
        let outcome = issue.conclude(ready).await;
        // Logged here, since a client that has gone away leaves nobody behind who would.
        outcome
            .map(|granted| (issue.pair, granted))
            .map_err(|refused| OAuthError::from(refused).logged(&trace_id, Endpoint::Token.path()))
    });
    match concluded.await?? {
        (pair, Granted::Pair(scopes)) => Ok(Issued {
            access: pair.access,
            refresh: Some(pair.refresh),
            scopes,
        }),
        (_, Granted::FamilyEnded) => Err(GrantRefusal::Used.into()),
    }
}

impl Issue {
    /// Does everything but the COMMIT, again where it loses against other work.
    async fn prepare(&self, deadline: Deadline) -> Result<Ready, Refused> {
        let attempt = || async {
            let attempt = deadline.hold(self.attempt()).await;
            attempt.unwrap_or_else(|overdue| Err(StoreError::from(overdue).into()))
        };
        repeat(attempt).await
    }

    async fn attempt(&self) -> Result<Ready, Refused> {
        let transaction = self.public.units.begin().await?;
        let (grants, now) = (transaction.as_ref(), transaction.now());
        let lifetimes = Lifetimes {
            access: self.public.settings.access_token_ttl,
            refresh: self.public.settings.refresh_token_ttl,
        };
        let granted = match &self.presented {
            Presented::Code(key, presented) => {
                exchange_code(grants, *key, presented, &self.pair, lifetimes, now).await
            }
            Presented::RefreshToken(key, client) => {
                refresh_tokens(grants, *key, *client, &self.pair, lifetimes, now).await
            }
        };
        granted.map(|granted| (transaction, granted))
    }

    /// Commits. What surely was not committed is done again where that can help; nothing is done again blindly.
    async fn conclude(&self, (mut transaction, mut granted): Ready) -> Result<Granted, Refused> {
        let (mut repeats, mut until) = (0, None);
        loop {
            match transaction.commit().await {
                Ok(()) => return Ok(granted),
                Err(CommitError::RolledBack(StoreError::Retryable(_))) if repeats < REPEATS => repeats += 1,
                Err(CommitError::RolledBack(cause)) => return Err(cause.into()),
                Err(CommitError::Unknown(cause)) => {
                    let until = *until.get_or_insert_with(|| Instant::now() + FIND_OUT_WITHIN);
                    match self.find_out(until).await {
                        Some(true) => return Ok(granted),
                        Some(false) => {}
                        None => return Err(UnitOfWorkError::Unknown(cause).into()),
                    }
                }
            }
            (transaction, granted) = self.prepare(Deadline::of_request(Instant::now())).await?;
        }
    }

    /// Whether the pair stands although the answer to its COMMIT was lost; nothing where that cannot be found out in time.
    async fn find_out(&self, until: Instant) -> Option<bool> {
        let mut pause = FIRST_PAUSE;
        let answered = async {
            loop {
                match self.ask().await {
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
    async fn ask(&self) -> Result<bool, StoreError> {
        let transaction = self.public.units.begin().await?;
        self.pair.stands(transaction.as_ref()).await
    }
}
