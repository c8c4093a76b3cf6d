//! Exchanges codes and refresh tokens for token pairs: all of a kind that wait in one statement.

use std::{collections::HashMap, sync::Arc, time::Duration};

use async_trait::async_trait;
use diesel::QueryResult;
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use futures_util::join;
use kernel::{StoreError, TransactionError};
use oauth::{CodeExchange, Exchange, Exchanges, Presented, ScopeSet, UnknownScope};

use crate::batch::{BatchQuery, Batcher, Withdrawable};
use crate::connection::Connector;
use crate::connection::error::{is_lock_timeout, is_rolled_back};
use crate::sql::{column, microseconds, sql};

/// An exchange takes place only within this time after its request was counted, which is before its body is read: one with a slow body goes
/// alone.
const FRESH: &str = "5s";
/// How long a batch waits for a lock. Locked families and connections are skipped, not waited for.
const LOCK_TIMEOUT: &str = "50ms";

/// Exchanges those of a table's credentials that are valid and whose rows are free; returns their places with the scopes of their pairs.
/// `$scopes` are those that the seller has consented to, of the token `t` or the family's, and `$presented` is what else the client has to
/// present.
///
/// - Locks are those of [`GrantStore`](oauth::GrantStore), in its order: families, then connections. A locked row is skipped: nothing is
///   waited for, so application and seller are read as of about the same moment.
/// - A row that another transaction has changed since the statement began is compared again after it was locked. So of two uses of one
///   credential the second drops out.
macro_rules! exchange {
    ($batch:expr, $connection:expr, $table:literal, $scopes:literal, $presented:literal) => { async {
        let (batch, mut connection): (&[(i64, &Exchange)], _) = (&$batch, $connection);
        if batch.is_empty() {
            return Ok(Vec::new());
        }
        sql!((i64, i32):
            "with clock as materialized (select api_now() as at, set_config('lock_timeout', ", LOCK_TIMEOUT,
            ", true) as lock_timeout), \
             given as materialized (select k.*, clock.at from clock cross join unnest((select ",
            column(batch, |(n, _)| *n), "::bigint[]), (select ",
            column(batch, |(_, one)| one.presented.key().family.uuid()), "::uuid[]), (select ",
            column(batch, |(_, one)| one.presented.key().hash.bytes().to_vec()), "::bytea[]), (select ",
            column(batch, |(_, one)| one.presented.client_id().uuid()), "::uuid[]), (select ",
            column(batch, |(_, one)| code(one).map(|code| code.redirect_uri.as_str())), "::text[]), (select ",
            column(batch, |(_, one)| code(one).map(|code| code.verifier.challenge().as_str().to_owned())),
            "::text[]), (select ",
            column(batch, |(_, one)| one.access.bytes().as_slice()), "::bytea[]), (select ",
            column(batch, |(_, one)| microseconds(one.access_lifetime)), "::bigint[]), (select ",
            column(batch, |(_, one)| one.refresh.bytes().as_slice()), "::bytea[]), (select ",
            column(batch, |(_, one)| microseconds(one.refresh_lifetime)), "::bigint[]), (select ",
            column(batch, |(_, one)| one.asked_at),
            "::timestamptz[])) as k (n, family, hash, client, redirect_uri, challenge, access, access_lifetime, refresh, \
               refresh_lifetime, asked_at) where clock.at < k.asked_at + ", FRESH,
            concat!("::text::interval), \
             family as materialized (select g.n, f.seller_id, f.client_id, f.generation, f.scopes, f.application_generation, f.seller_generation \
               from given g join families f on f.id = g.family where f.client_id = g.client and f.revoked_at is null \
               order by f.id for no key update of f skip locked), \
             connection as materialized (select f.n, f.scopes, f.application_generation, f.seller_generation, c.seller_id from family f join connections c \
               on c.client_id = f.client_id and c.seller_id = f.seller_id where c.generation = f.generation \
               order by c.client_id, c.seller_id for share of c skip locked), \
             used as (update ", $table, " t set used_at = g.at, expires_at = g.at + interval '90 days' \
               from connection c join given g on g.n = c.n \
                 join applications a on a.client_id = g.client and a.status <> 'suspended' and a.deleted_at is null \
                   and a.token_generation = c.application_generation \
                 join sellers s on s.id = c.seller_id and s.closed_at is null and s.token_generation = c.seller_generation \
               where t.family_id = g.family and t.hash = g.hash and t.used_at is null and t.expires_at > g.at", $presented,
             " and ", $scopes, " & a.scopes <> 0 and ", $scopes, " & a.scopes & ~"), ScopeSet::all().bits(),
            concat!("::integer = 0 returning g.n, ", $scopes, " & a.scopes as scopes), \
             pair as materialized (select g.*, u.scopes from used u join given g on g.n = u.n order by g.family), \
             refreshed as (insert into refresh_tokens (family_id, hash, scopes, expires_at) \
               select family, refresh, scopes, at + refresh_lifetime * interval '1 microsecond' from pair), \
             issued as (insert into access_tokens (family_id, hash, scopes, expires_at) \
               select family, access, scopes, at + access_lifetime * interval '1 microsecond' from pair) \
             select n, scopes from pair"))
        .get_results::<(i64, i32)>(&mut connection)
        .await
    } };
}

/// What came with a code; None for a refresh token.
const fn code(exchange: &Exchange) -> Option<&CodeExchange> {
    match &exchange.presented {
        Presented::Code(_, code) => Some(code),
        Presented::RefreshToken(..) => None,
    }
}

/// The exchanges of one server thread.
pub(crate) struct BatchedExchanges(Batcher<Pairs>);

impl BatchedExchanges {
    pub(crate) fn new(connector: &Arc<Connector>) -> Self {
        Self(Batcher::new(Pairs, Arc::clone(connector)))
    }
}

#[async_trait]
impl Exchanges for BatchedExchanges {
    async fn exchange(
        &self,
        exchange: Exchange,
        time_left: Duration,
    ) -> Result<Option<ScopeSet>, TransactionError> {
        self.0.send_once(exchange, time_left).await
    }
}

struct Pairs;

#[async_trait]
impl BatchQuery for Pairs {
    const NAME: &'static str = "exchanges";
    const MAX_MEMBERS: usize = 64;
    type Question = Withdrawable<Exchange>;
    type Answer = Option<ScopeSet>;

    /// None for each that dropped out. A statement that the server rejected changed nothing: all its exchanges dropped out.
    async fn answer(
        &self,
        connection: &AsyncPgConnection,
        members: &[Withdrawable<Exchange>],
    ) -> QueryResult<Vec<Result<Option<ScopeSet>, StoreError>>> {
        let places = (0..).zip(members);
        let batch = places.filter_map(|(n, member)| member.take().then_some((n, &member.change)));
        let (codes, tokens): (Vec<_>, Vec<_>) =
            batch.partition(|(_, one)| matches!(one.presented, Presented::Code(..)));
        let (of_codes, of_tokens) = join!(
            exchange!(
                codes,
                connection,
                "authorization_codes",
                "c.scopes",
                " and t.redirect_uri = g.redirect_uri and t.code_challenge = g.challenge"
            ),
            exchange!(tokens, connection, "refresh_tokens", "t.scopes", ""),
        );
        let mut issued = HashMap::new();
        for rows in [of_codes, of_tokens] {
            match rows {
                Ok(rows) => issued.extend(rows),
                Err(error) if is_rolled_back(&error) || is_lock_timeout(&error) => {}
                Err(error) => return Err(error),
            }
        }
        let outcome = |(n, member): (i64, &Withdrawable<Exchange>)| {
            let corrupt = |unknown: UnknownScope| {
                StoreError::corrupt(
                    "access_tokens",
                    member.change.presented.key().family,
                    unknown.to_string(),
                )
            };
            let scopes = issued.get(&n).map(|bits| ScopeSet::from_bits(*bits));
            scopes.transpose().map_err(corrupt)
        };
        Ok((0..).zip(members).map(outcome).collect())
    }
}
