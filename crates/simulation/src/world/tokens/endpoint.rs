//! The token endpoint of a process: what it does around the use cases, COMMIT by COMMIT as it does it.

use chrono::TimeDelta;
use kernel::{CommitError, StoreError};
use oauth::{ClientId, CodePresented, GrantRefusal, TokenKey};
use usecases::{
    Failure, Repeatable, Transaction, UnitOfWork, UnitOfWorkError,
    exchange_code::exchange_code,
    refresh_tokens::refresh_tokens,
    token_pair::{Granted, Lifetimes, TokenPair},
};

use crate::{Chance, Link, Met, Simulator};

/// How often work that lost against other work is done again.
const REPEATS: usize = 3;
/// How long the outcome of a lost COMMIT is asked for.
const FIND_OUT_WITHIN: TimeDelta = TimeDelta::seconds(30);

/// What a client presents.
#[derive(Clone)]
pub(super) enum Presented {
    Code(TokenKey, CodePresented),
    Refresh(TokenKey, ClientId),
}

impl Presented {
    pub(super) const fn key(&self) -> TokenKey {
        match self {
            Self::Code(key, _) | Self::Refresh(key, _) => *key,
        }
    }
}

/// How it was answered.
#[derive(Debug)]
pub(super) enum Issued {
    Pair(TokenPair),
    Refused,
    FamilyEnded,
    Failed,
}

/// The endpoint.
#[derive(Clone)]
pub(super) struct Endpoint {
    pub(super) simulator: Simulator,
    pub(super) link: Link,
    pub(super) lifetimes: Lifetimes,
}

type Refused = Failure<GrantRefusal>;
type Ready = (Box<dyn Transaction>, Granted);

impl Endpoint {
    /// Uses up what is presented and issues the pair.
    pub(super) async fn issue(self, presented: Presented) -> Issued {
        let pair = TokenPair::new(&Chance(self.simulator.clone()), presented.key().family);
        match self.granted(&presented, &pair).await {
            Ok(Granted::Pair(_)) => Issued::Pair(pair),
            Ok(Granted::FamilyEnded) => Issued::FamilyEnded,
            Err(Failure::Refused(_)) => Issued::Refused,
            Err(Failure::Store(_)) => Issued::Failed,
        }
    }

    async fn granted(&self, presented: &Presented, pair: &TokenPair) -> Result<Granted, Refused> {
        let (mut repeats, mut until) = (0, None);
        loop {
            let (transaction, granted) = self.prepared(presented, pair).await?;
            match transaction.commit().await {
                Ok(()) => return Ok(granted),
                Err(CommitError::RolledBack(StoreError::Retryable(_))) if repeats < REPEATS => repeats += 1,
                Err(CommitError::RolledBack(cause)) => return Err(cause.into()),
                Err(CommitError::Unknown(cause)) => {
                    let until = *until.get_or_insert_with(|| self.simulator.now() + FIND_OUT_WITHIN);
                    let left = until - self.simulator.now();
                    match self.simulator.within(left, self.found_out(pair)).await {
                        Some(true) => {
                            self.simulator.count(Met::PairStands);
                            return Ok(granted);
                        }
                        Some(false) => self.simulator.count(Met::PairUndone),
                        None => return Err(UnitOfWorkError::Unknown(cause).into()),
                    }
                }
            }
        }
    }

    async fn prepared(&self, presented: &Presented, pair: &TokenPair) -> Result<Ready, Refused> {
        let mut repeats = 0;
        loop {
            match self.attempt(presented, pair).await {
                Err(error) if error.is_repeatable() && repeats < REPEATS => repeats += 1,
                outcome => return outcome,
            }
        }
    }

    async fn attempt(&self, presented: &Presented, pair: &TokenPair) -> Result<Ready, Refused> {
        let tx = self.link.begin().await?;
        let now = tx.now();
        let granted = match presented {
            Presented::Code(key, presented) => {
                exchange_code(tx.as_ref(), *key, presented, pair, self.lifetimes, now).await
            }
            Presented::Refresh(key, client_id) => {
                refresh_tokens(tx.as_ref(), *key, *client_id, pair, self.lifetimes, now).await
            }
        };
        granted.map(|granted| (tx, granted))
    }

    /// Whether the pair stands although the answer to its COMMIT was lost.
    async fn found_out(&self, pair: &TokenPair) -> bool {
        loop {
            if let Ok(tx) = self.link.begin().await
                && let Ok(stands) = pair.stands(tx.as_ref()).await
            {
                return stands;
            }
            self.simulator.sleep(TimeDelta::milliseconds(50)).await;
        }
    }
}
