//! Issues client tokens: all in flight in one durable statement.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use async_trait::async_trait;
use diesel::pg::Pg;
use diesel::sql_types::{Array, BigInt, Binary, Integer, Uuid as SqlUuid};
use diesel::{QueryResult, QueryableByName};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use kernel::StoreError;
use oauth::{ClientId, ClientTokens, NewClientToken};
use uuid::Uuid;

use crate::batch::{BatchQuery, Batcher};
use crate::connection::Connector;
use crate::connection::error::{SharedFailure, is_lock_timeout, is_rolled_back, store_error};
use crate::schema::access_tokens;
use crate::sql::{column, microseconds};
use crate::statement::statements;

statements! {
    "client_tokens.sql";
    ISSUE: (
        Array<SqlUuid>, Array<SqlUuid>, Array<SqlUuid>, Array<Integer>, Array<Binary>, Array<BigInt>
    ) -> StoredRow;
}

#[derive(QueryableByName)]
#[diesel(table_name = access_tokens, check_for_backend(Pg))]
struct StoredRow {
    family_id: Uuid,
}

/// Stores a family with its token as a transaction of its own. False if the application or its owner is no longer
/// valid. Exceeding the lock timeout is a retryable error.
async fn issue_one(
    token: &NewClientToken,
    connection: &AsyncPgConnection,
) -> QueryResult<Result<bool, StoreError>> {
    match issue(std::slice::from_ref(token), connection).await {
        Ok(stored) => Ok(Ok(!stored.is_empty())),
        Err(error) if is_lock_timeout(&error) => Ok(Err(StoreError::Retryable(error.into()))),
        Err(error) => Err(error),
    }
}

/// Stores families with a token each in one transaction; returns the families that were stored.
async fn issue(tokens: &[NewClientToken], mut connection: &AsyncPgConnection) -> QueryResult<HashSet<Uuid>> {
    let issue = ISSUE.bind((
        column(tokens, |token| token.family.uuid()),
        column(tokens, |token| token.grant.seller.uuid()),
        column(tokens, |token| token.grant.client_id.uuid()),
        column(tokens, |token| token.grant.scopes.bits()),
        column(tokens, |token| token.hash.bytes().as_slice()),
        column(tokens, |token| microseconds(token.lifetime)),
    ));
    let stored = issue.get_results::<StoredRow>(&mut connection).await?;
    Ok(stored.into_iter().map(|row| row.family_id).collect())
}

/// Issues client tokens: all in flight on one server thread in one statement.
pub(crate) struct IssuedTokens(Batcher<IssueBatch>);

impl IssuedTokens {
    pub(crate) fn new(connector: &Arc<Connector>) -> Self {
        Self(Batcher::new(IssueBatch, Arc::clone(connector)))
    }
}

#[async_trait]
impl ClientTokens for IssuedTokens {
    async fn issue(&self, token: NewClientToken) -> Result<bool, StoreError> {
        self.0.ask(token).await
    }
}

/// A batch of tokens of any applications.
pub(crate) struct IssueBatch;

#[async_trait]
impl BatchQuery for IssueBatch {
    const NAME: &'static str = "client_tokens";
    type Question = NewClientToken;
    type Answer = bool;

    /// If the server rejected the batch, or the batch exceeded the lock timeout, nothing of it was stored, and each token is stored on its
    /// own, so that a failure concerns only its own caller. A batch whose response is lost fails as a whole.
    async fn answer(
        &self,
        connection: &AsyncPgConnection,
        tokens: &[NewClientToken],
    ) -> QueryResult<Vec<Result<bool, StoreError>>> {
        match issue(tokens, connection).await {
            Ok(stored) => {
                let each = |token: &NewClientToken| Ok(stored.contains(&token.family.uuid()));
                Ok(tokens.iter().map(each).collect())
            }
            Err(error) if is_rolled_back(&error) || is_lock_timeout(&error) => {
                Ok(one_by_one(connection, tokens).await)
            }
            Err(error) => Err(error),
        }
    }
}

/// Stores each on its own. After one exceeded the lock timeout, the remaining tokens of its application are not tried
/// and fail as retryable, too.
async fn one_by_one(
    connection: &AsyncPgConnection,
    tokens: &[NewClientToken],
) -> Vec<Result<bool, StoreError>> {
    let mut outcomes = Vec::with_capacity(tokens.len());
    let mut blocked = HashMap::<ClientId, SharedFailure>::new();
    for token in tokens {
        let client_id = token.grant.client_id;
        if let Some(failure) = blocked.get(&client_id) {
            outcomes.push(Err(failure.for_one()));
            continue;
        }
        let stored = issue_one(token, connection).await;
        let outcome = stored.unwrap_or_else(|error| Err(store_error(error)));
        outcomes.push(match outcome {
            Err(failure @ StoreError::Retryable(_)) => {
                let failure = blocked.entry(client_id).or_insert(SharedFailure::new(failure));
                Err(failure.for_one())
            }
            outcome => outcome,
        });
    }
    outcomes
}
