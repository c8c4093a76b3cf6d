//! Issues client tokens: all in flight in one durable statement.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use async_trait::async_trait;
use diesel::{OptionalExtension, QueryResult};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use kernel::StoreError;
use oauth::{ClientId, ClientTokens, FamilyKind, NewClientToken};
use uuid::Uuid;

use crate::batch::{BatchQuery, Batcher};
use crate::connection::Connector;
use crate::connection::error::{SharedFailure, is_lock_timeout, is_rolled_back, store_error};
use crate::sql::{column, microseconds, sql};

/// First part of both statements, over `given`: locks the applications and then their owners, each in the order of
/// their keys, which is the same for all batches. Their state is read from the locked rows.
///
/// A transaction that changes one of the rows holds it until its commit, and the whole batch would wait for it. So the
/// lock timeout is short, and a batch that exceeds it is split.
///
/// The owners are passed as an array: for a list, the planner's estimate is so high that it scans the whole table while
/// there are only a few thousand sellers.
macro_rules! lock_valid {
    () => {
        "), setting as materialized (select set_config('lock_timeout', '100ms', true) as lock_timeout), \
         application as materialized (select a.client_id, a.owner_id, a.scopes, a.token_generation from setting cross join applications a \
           where setting.lock_timeout <> '' and a.client_id in (select client from given) and a.status <> 'suspended' \
             and a.deleted_at is null order by a.client_id for share of a), \
         owner as materialized (select s.id, s.token_generation from sellers s where s.id = any(array(select owner_id from application)) \
           and s.closed_at is null order by s.id for share of s), \
         valid as materialized (select g.*, a.token_generation as application_generation, owner.token_generation as seller_generation \
           from given g join application a on a.client_id = g.client \
             and a.owner_id = g.seller and g.scopes & ~a.scopes = 0 join owner on owner.id = g.seller), \
         family as (insert into families (id, seller_id, client_id, application_generation, seller_generation, kind, scopes) \
           select family, seller, client, application_generation, seller_generation, "
    };
}

/// The second part, after the kind of the families.
macro_rules! insert_tokens {
    () => {
        ", scopes from valid order by client, family) \
         insert into access_tokens (family_id, hash, expires_at) \
           select family, hash, clock.at + lifetime * interval '1 microsecond' \
           from valid, (select api_now() as at) clock order by family returning family_id"
    };
}

const KIND: &str = FamilyKind::ClientCredentials.as_str();

/// Stores a family with its token as a transaction of its own. False if the application or its owner is no longer
/// valid. Exceeding the lock timeout is a retryable error.
async fn issue_one(
    token: &NewClientToken,
    mut connection: &AsyncPgConnection,
) -> QueryResult<Result<bool, StoreError>> {
    let issue = sql!(Uuid:
        "with given as materialized (select ", token.family.uuid(), "::uuid as family, ",
        token.grant.seller.uuid(), "::uuid as seller, ", token.grant.client_id.uuid(), "::uuid as client, ",
        token.grant.scopes.bits(), "::integer as scopes, ", token.hash.bytes().as_slice(), "::bytea as hash, ",
        microseconds(token.lifetime), concat!("::bigint as lifetime", lock_valid!()), KIND, insert_tokens!());
    match issue.get_result::<Uuid>(&mut connection).await.optional() {
        Ok(stored) => Ok(Ok(stored.is_some())),
        Err(error) if is_lock_timeout(&error) => Ok(Err(StoreError::Retryable(error.into()))),
        Err(error) => Err(error),
    }
}

/// Stores families with a token each in one transaction; returns the families that were stored.
async fn issue_many(tokens: &[NewClientToken], mut connection: &AsyncPgConnection) -> QueryResult<Vec<Uuid>> {
    sql!(Uuid:
        "with given as materialized (select * from unnest(", column(tokens, |token| token.family.uuid()),
        "::uuid[], ", column(tokens, |token| token.grant.seller.uuid()), "::uuid[], ",
        column(tokens, |token| token.grant.client_id.uuid()), "::uuid[], ",
        column(tokens, |token| token.grant.scopes.bits()), "::integer[], ",
        column(tokens, |token| token.hash.bytes().as_slice()), "::bytea[], ",
        column(tokens, |token| microseconds(token.lifetime)),
        concat!("::bigint[]) as k (family, seller, client, scopes, hash, lifetime)", lock_valid!()), KIND, insert_tokens!())
    .get_results(&mut connection)
    .await
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
        match issue_many(tokens, connection).await {
            Ok(stored) => {
                let stored: HashSet<Uuid> = stored.into_iter().collect();
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
