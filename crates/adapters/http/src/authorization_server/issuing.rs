//! Issues a token pair for a code or a refresh token.
//!
//! Before the COMMIT, the work is dropped when the client's connection breaks, so that no credential is used up in vain; a client that
//! has only closed its sending side still waits for the answer. From the COMMIT on, the work runs as a separate task. If the answer to the COMMIT is lost, the task looks the outcome up: a client that got an error would present
//! the same credential again, and that ends its family.

use std::sync::Arc;

use kernel::StoreError;
use oauth::GrantRefusal;
use tokio::time::Instant;
use usecases::token_pair::exchange_code;
use usecases::token_pair::refresh_tokens;
use usecases::token_pair::{Granted, Lifetimes, TokenPair};
use usecases::{Failure, Transaction};
use web::TraceId;
use web::deadline::Deadline;
use web::write::{PreparedTransaction, Recoverable, commit_or_resolve, repeat};

use super::Endpoint;
use super::error::OAuthError;
use super::token::{Issued, Presented};
use crate::Public;

/// A pair to issue. Its secrets are made first, so that the stored pair can be looked up by them.
struct Issue {
    public: Arc<Public>,
    presented: Presented,
    pair: TokenPair,
}

type Refused = Failure<GrantRefusal>;

/// Consumes the presented credential and issues the pair.
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
    let ready = issue.prepared(deadline).await?;
    let concluded = public.tasks.run(async move {
        let outcome = commit_or_resolve(issue.public.units.as_ref(), &issue, ready).await;
        // Logged here, because no request handler is left to log it once the client has disconnected.
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
    /// Does everything up to the COMMIT; retries if it loses to other work.
    async fn prepared(&self, deadline: Deadline) -> Result<PreparedTransaction<Granted>, Refused> {
        let attempt = || async {
            let attempt = deadline.run(self.attempt()).await;
            attempt.unwrap_or_else(|overdue| Err(StoreError::from(overdue).into()))
        };
        repeat(attempt).await
    }

    async fn attempt(&self) -> Result<PreparedTransaction<Granted>, Refused> {
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
}

impl Recoverable for Issue {
    type Done = Granted;
    type Error = Refused;

    async fn prepare(&self) -> Result<PreparedTransaction<Granted>, Refused> {
        self.prepared(Deadline::of_request(Instant::now())).await
    }

    async fn was_committed(&self, transaction: &dyn Transaction, _: &Granted) -> Result<bool, StoreError> {
        self.pair.was_stored(transaction).await
    }
}
