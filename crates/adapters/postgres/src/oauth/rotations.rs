//! Rotates refresh tokens: all that wait in one statement.

use std::{collections::HashMap, sync::Arc, time::Duration};

use async_trait::async_trait;
use diesel::QueryResult;
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use kernel::{StoreError, TransactionError};
use oauth::{Rotation, Rotations, ScopeSet, UnknownScope};

use crate::{
    batch::{BatchQuery, Batcher, Withdrawable},
    connection::{
        Connector,
        error::{is_lock_timeout, is_rolled_back},
    },
    sql::{column, microseconds, sql},
};

/// A rotation takes place only within this time after its request was counted, which is before its body is read: one with a slow body goes
/// alone.
const FRESH: &str = "5s";
/// How long a batch waits for a lock. Locked families and connections are skipped, not waited for.
const LOCK_TIMEOUT: &str = "50ms";

/// The rotations of one server thread.
pub(crate) struct BatchedRotations(Batcher<Refreshes>);

impl BatchedRotations {
    pub(crate) fn new(connector: &Arc<Connector>) -> Self {
        Self(Batcher::new(Refreshes, Arc::clone(connector)))
    }
}

#[async_trait]
impl Rotations for BatchedRotations {
    async fn rotate(
        &self,
        rotation: Rotation,
        time_left: Duration,
    ) -> Result<Option<ScopeSet>, TransactionError> {
        self.0.send_once(rotation, time_left).await
    }
}

struct Refreshes;

#[async_trait]
impl BatchQuery for Refreshes {
    const NAME: &'static str = "rotations";
    const MAX_MEMBERS: usize = 64;
    type Question = Withdrawable<Rotation>;
    type Answer = Option<ScopeSet>;

    /// None for each that dropped out. A batch that the server rejected changed nothing: all its rotations dropped out.
    async fn answer(
        &self,
        connection: &AsyncPgConnection,
        members: &[Withdrawable<Rotation>],
    ) -> QueryResult<Vec<Result<Option<ScopeSet>, StoreError>>> {
        let places = (0..).zip(members);
        let batch = places.filter_map(|(n, member)| member.take().then_some((n, &member.change)));
        let issued: HashMap<i64, i32> = match rotate(&batch.collect::<Vec<_>>(), connection).await {
            Ok(issued) => issued.into_iter().collect(),
            Err(error) if is_rolled_back(&error) || is_lock_timeout(&error) => HashMap::new(),
            Err(error) => return Err(error),
        };
        let outcome = |(n, member): (i64, &Withdrawable<Rotation>)| {
            let corrupt = |unknown: UnknownScope| {
                StoreError::corrupt("refresh_tokens", member.change.token.family, unknown.to_string())
            };
            let scopes = issued.get(&n).map(|bits| ScopeSet::from_bits(*bits));
            scopes.transpose().map_err(corrupt)
        };
        Ok((0..).zip(members).map(outcome).collect())
    }
}

/// Rotates the tokens that are valid and whose rows are free; returns their places with the scopes of their pairs.
///
/// - Locks are those of [`GrantStore`](oauth::GrantStore), in its order: families, then connections. A locked row is skipped: nothing is
///   waited for, so application and seller are read as of about the same moment.
/// - A row that another transaction has changed since the statement began is compared again after it was locked. So of two uses of one token
///   the second drops out.
async fn rotate(
    batch: &[(i64, &Rotation)],
    mut connection: &AsyncPgConnection,
) -> QueryResult<Vec<(i64, i32)>> {
    sql!((i64, i32):
        "with clock as materialized (select api_now() as at, set_config('lock_timeout', ", LOCK_TIMEOUT,
        ", true) as lock_timeout), \
         given as materialized (select k.*, clock.at from clock cross join unnest((select ",
        column(batch, |(n, _)| *n), "::bigint[]), (select ",
        column(batch, |(_, one)| one.token.family.uuid()), "::uuid[]), (select ",
        column(batch, |(_, one)| one.token.hash.bytes().as_slice()), "::bytea[]), (select ",
        column(batch, |(_, one)| one.client_id.uuid()), "::uuid[]), (select ",
        column(batch, |(_, one)| one.access.bytes().as_slice()), "::bytea[]), (select ",
        column(batch, |(_, one)| microseconds(one.access_lifetime)), "::bigint[]), (select ",
        column(batch, |(_, one)| one.refresh.bytes().as_slice()), "::bytea[]), (select ",
        column(batch, |(_, one)| microseconds(one.refresh_lifetime)), "::bigint[]), (select ",
        column(batch, |(_, one)| one.asked_at),
        "::timestamptz[])) as k (n, family, hash, client, access, access_lifetime, refresh, refresh_lifetime, asked_at) \
           where clock.at < k.asked_at + ", FRESH, "::text::interval), \
         family as materialized (select g.n, f.seller_id, f.client_id, f.generation \
           from given g join families f on f.id = g.family where f.client_id = g.client and f.revoked_at is null \
           order by f.id for no key update of f skip locked), \
         connection as materialized (select f.n, c.seller_id from family f join connections c \
           on c.client_id = f.client_id and c.seller_id = f.seller_id where c.generation = f.generation \
           order by c.client_id, c.seller_id for share of c skip locked), \
         used as (update refresh_tokens t set used_at = g.at, expires_at = g.at + interval '90 days' \
           from connection c join given g on g.n = c.n \
             join applications a on a.client_id = g.client and a.status <> 'suspended' and a.deleted_at is null \
             join sellers s on s.id = c.seller_id and s.closed_at is null \
           where t.family_id = g.family and t.hash = g.hash and t.used_at is null and t.expires_at > g.at \
             and t.scopes & a.scopes <> 0 and t.scopes & a.scopes & ~", ScopeSet::all().bits(), "::integer = 0 returning g.n, t.scopes & a.scopes as scopes), \
         pair as materialized (select g.*, u.scopes from used u join given g on g.n = u.n order by g.family), \
         refreshed as (insert into refresh_tokens (family_id, hash, scopes, expires_at) \
           select family, refresh, scopes, at + refresh_lifetime * interval '1 microsecond' from pair), \
         issued as (insert into access_tokens (family_id, hash, scopes, expires_at) \
           select family, access, scopes, at + access_lifetime * interval '1 microsecond' from pair) \
         select n, scopes from pair")
    .get_results(&mut connection)
    .await
}
