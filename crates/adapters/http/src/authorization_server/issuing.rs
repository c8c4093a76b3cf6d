//! Issues a token pair for a code or a refresh token.
//!
//! Concurrent exchanges are batched. An exchange that the batch did not store gets its own transaction. Until
//! the statement is sent or the COMMIT begins, the work is dropped when the client's connection breaks, so
//! that no credential is used up in vain; a client that has only closed its sending side still waits for the
//! response. From the COMMIT on, the work runs as a separate task. If the database's response is lost, the
//! outcome is looked up: a client that got an error would present the same credential again, which revokes
//! its family.

use std::{iter, sync::Arc, time::Duration};

use chrono::{DateTime, TimeDelta, Utc};
use kernel::{IdempotencyKey, StoreError, TransactionError};
use oauth::{Credential, Exchange, Grant, GrantRefusal, Presented};
use tokio::time::Instant;
use usecases::issue_tokens::{Granted, TokenPair, exchange};
use usecases::{Failure, LockSet, Row, Transaction, retry};
use web::TraceId;
use web::deadline::Deadline;
use web::write::{PreparedTransaction, RESOLVE_TIMEOUT, Recoverable, commit_or_resolve, resolve};

use super::error::OAuthError;
use super::token::Issued;
use super::{Endpoint, PresentedKey};
use crate::Public;

/// A pair to issue. Its secrets are made first, so that the stored pair can be looked up by them.
struct Issue {
    public: Arc<Public>,
    exchange: Exchange,
    /// That of the exchange's credential.
    key: Arc<PresentedKey>,
    pair: TokenPair,
    /// Of a call that its client may repeat: its pairs under the other keys of the server.
    others: Option<Vec<TokenPair>>,
}

type Refused = Failure<GrantRefusal>;

/// How far the pair has come while the request could still be dropped.
enum Begun {
    /// It is stored, with this grant.
    Stored(Grant),
    /// It is stored by the COMMIT.
    Prepared(PreparedTransaction<Granted>),
}

/// Consumes the presented credential and issues the pair. The store's clock counted the request at
/// `asked_at`. `repeatable` is the refresh token with the `Idempotency-Key`, if it came with one.
pub(super) async fn issue(
    public: &Arc<Public>,
    presented: Presented,
    key: Arc<PresentedKey>,
    repeatable: Option<(&Credential, &IdempotencyKey)>,
    asked_at: DateTime<Utc>,
    deadline: Deadline,
    trace_id: TraceId,
) -> Result<Issued, OAuthError> {
    let (pair, others) = match repeatable {
        None => {
            let family = presented.key().family;
            (TokenPair::new(public.ports.randomness.as_ref(), family), None)
        }
        Some((used, key)) => {
            let (pair, others) = TokenPair::repeatable(public.sealer.as_ref(), used, key.as_str());
            (pair, Some(others))
        }
    };
    let issue = Issue {
        exchange: Exchange {
            presented,
            access: pair.access.key().hash,
            access_lifetime: public.settings.access_token_ttl,
            refresh: pair.refresh.key().hash,
            refresh_lifetime: public.settings.refresh_token_ttl,
            asked_at,
        },
        key,
        public: Arc::clone(public),
        pair,
        others,
    };
    let ready = match issue.begin(deadline).await? {
        Begun::Stored(grant) => return Ok(issued(issue.pair, grant, None)),
        Begun::Prepared(ready) => ready,
    };
    let concluded = public.ports.tasks.run(async move {
        let outcome = commit_or_resolve(issue.public.ports.units.as_ref(), &issue, ready).await;
        // Logged here, because no request handler is left to log it once the client has disconnected.
        outcome
            .map(|granted| (issue.pair, issue.others, granted))
            .map_err(|refused| OAuthError::from(refused).logged(&trace_id, Endpoint::Token.as_str()))
    });
    match concluded.await?? {
        (pair, _, Granted::Pair(grant)) => Ok(issued(pair, grant, None)),
        (pair, others, Granted::Repeated(repeated)) => {
            let pairs = iter::once(pair).chain(others.into_iter().flatten());
            let pair = pairs.into_iter().nth(repeated.place);
            let pair = pair.ok_or_else(|| StoreError::unexpected("a repeated request without its pair"))?;
            Ok(issued(pair, repeated.grant, Some(repeated.lifetime)))
        }
        (.., Granted::Replayed) => Err(GrantRefusal::Used.into()),
    }
}

fn issued(pair: TokenPair, grant: Grant, left: Option<TimeDelta>) -> Issued {
    Issued {
        access: pair.access,
        refresh: Some(pair.refresh),
        grant,
        left,
    }
}

impl Issue {
    /// Exchanges the credential together with others; prepares a transaction for one that dropped out.
    async fn begin(&self, deadline: Deadline) -> Result<Begun, Refused> {
        let tokens = &self.public.tokens;
        match tokens.exchange(self.exchange.clone(), deadline.remaining()).await {
            Ok(Some(grant)) => Ok(Begun::Stored(grant)),
            Err(TransactionError::Unknown(cause)) => self.look_up(cause).await,
            Ok(None) | Err(TransactionError::Store(_)) => self.prepared(deadline).await.map(Begun::Prepared),
        }
    }

    /// Finds the outcome of an exchange. If it is not stored, the transaction that has locked the family
    /// makes it; the batch's statement, if it still arrives, then skips the family.
    async fn look_up(&self, cause: StoreError) -> Result<Begun, Refused> {
        let look = || async {
            let Some(transaction) = self.transaction(Duration::MAX).await? else {
                return Ok(None);
            };
            let stored = self.pair.stored_grant(transaction.as_ref()).await?;
            Ok(Some((transaction, stored)))
        };
        match resolve(Instant::now() + RESOLVE_TIMEOUT, look).await {
            Some(Some((_, Some(grant)))) => Ok(Begun::Stored(grant)),
            Some(Some((transaction, None))) => self.granted(transaction).await.map(Begun::Prepared),
            Some(None) => Err(Failure::Refused(GrantRefusal::Unknown)),
            None => Err(TransactionError::Unknown(cause).into()),
        }
    }

    /// A transaction that locks the family, in the shares of its application and seller; none for a credential
    /// that is unknown.
    async fn transaction(&self, turn_limit: Duration) -> Result<Option<Box<dyn Transaction>>, StoreError> {
        let Some(holder) = self.key.holder(&self.public).await? else {
            return Ok(None);
        };
        let locks = LockSet::of_row(Row::Family(self.key.token.family));
        let locks = locks.by_application(holder.seller, holder.client_id);
        let units = &self.public.ports.units;
        units.begin_within(&locks, turn_limit).await.map(Some)
    }

    /// Does everything up to the COMMIT; retries after a transaction conflict.
    async fn prepared(&self, deadline: Deadline) -> Result<PreparedTransaction<Granted>, Refused> {
        let attempt = || async {
            let attempt = deadline.run(self.attempt(deadline.for_turn())).await;
            attempt.unwrap_or_else(|overdue| Err(overdue.into()))
        };
        retry(attempt).await
    }

    async fn attempt(&self, turn_limit: Duration) -> Result<PreparedTransaction<Granted>, Refused> {
        match self.transaction(turn_limit).await? {
            Some(transaction) => self.granted(transaction).await,
            None => Err(Failure::Refused(GrantRefusal::Unknown)),
        }
    }

    /// Uses the credential in this transaction.
    async fn granted(&self, tx: Box<dyn Transaction>) -> Result<PreparedTransaction<Granted>, Refused> {
        let others = self.others.iter();
        let repeats = others.flat_map(|others| iter::once(&self.pair).chain(others));
        let repeats: Vec<_> = repeats.collect();
        let granted = exchange(tx.as_ref(), &self.exchange, &repeats, tx.now()).await?;
        Ok((tx, granted))
    }
}

impl Recoverable for Issue {
    type Done = Granted;
    type Error = Refused;

    async fn prepare(&self) -> Result<PreparedTransaction<Granted>, Refused> {
        self.prepared(Deadline::of_request(Instant::now())).await
    }

    async fn was_committed(&self, tx: &dyn Transaction, granted: &Granted) -> Result<bool, StoreError> {
        // A repeat has changed nothing.
        Ok(matches!(granted, Granted::Repeated(_)) || self.pair.stored_grant(tx).await?.is_some())
    }
}
