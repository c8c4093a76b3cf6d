//! The gate: looks up the tokens of all requests in flight and counts the requests per application, in one statement. Nothing is cached.

use std::{collections::HashMap, num::NonZeroU32, sync::Arc};

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use diesel::QueryResult;
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use kernel::StoreError;
use oauth::{
    Admission, ClientId, DeadToken, FamilyId, FamilyKind, Gate, Limiter, Principal, Quota, ScopeSet,
    TokenEnd, TokenKey, TokenKind,
};
use uuid::Uuid;

use crate::batch::{BatchQuery, Batcher};
use crate::connection::Connector;
use crate::connection::error::SharedFailure;
use crate::oauth::applications::limit_from;
use crate::rate_limits::WINDOW;
use crate::sql::{row, sql};

type Admitted = Result<Admission, Option<DeadToken>>;

/// The gate of one server thread.
pub(crate) struct TokenGate(Batcher<Requests>);

impl TokenGate {
    pub(crate) fn new(connector: &Arc<Connector>, default_limit: NonZeroU32) -> Self {
        Self(Batcher::new(Requests { default_limit }, Arc::clone(connector)))
    }
}

#[async_trait]
impl Gate for TokenGate {
    async fn admit(&self, token: TokenKey) -> Result<Admitted, StoreError> {
        self.0.ask(token).await
    }
}

/// The columns of [`TokenRow`], from the tables `families` f, `access_tokens` t, `applications` a and `sellers` s. A
/// token may have its own, narrower scopes. `ended` is null for a live token.
macro_rules! token_columns {
    () => {
        concat!(
            "f.seller_id, s.seller_no, f.client_id, a.name, coalesce(t.scopes, f.scopes) & a.scopes as scopes, f.kind, \
             t.expires_at, a.rate_limit, case when ",
            live_condition!(),
            " then null when t.expires_at <= clock.at then 'expired' when a.status = 'suspended' then 'suspended' \
             when s.closed_at is not null or exists (select from sellers o where o.id = a.owner_id and o.closed_at is not null) \
             then 'closed' else 'revoked' end as ended"
        )
    };
}

/// Whether a token is live at the instant `clock.at`: its row, its family, its application and account must all be
/// valid, and so must the connection of a family that came from a consent. The family must have their present generations: raising
/// one revokes all tokens of an application, an account or a connection. An application ends with its owner's account. The
/// condition lists the valid states, so that a state added later is rejected by default.
macro_rules! live_condition {
    () => {
        "t.revoked_at is null and (t.expires_at is null or t.expires_at > clock.at) and f.revoked_at is null \
         and f.application_generation = a.token_generation and f.seller_generation = s.token_generation \
         and a.deleted_at is null and a.status in ('pending', 'active') and s.closed_at is null \
         and (a.owner_id = f.seller_id or exists (select from sellers o where o.id = a.owner_id and o.closed_at is null)) \
         and (f.generation is null or exists (select from connections c where c.client_id = f.client_id \
           and c.seller_id = f.seller_id and c.generation = f.generation))"
    };
}

row! {
    struct TokenRow {
        seller_id: Uuid,
        seller_no: i32,
        client_id: Uuid,
        name: String,
        scopes: i32,
        kind: String,
        expires_at: Option<DateTime<Utc>>,
        rate_limit: Option<i32>,
        ended: Option<String>,
    }
}

/// A token that was found.
#[derive(Debug, Clone)]
enum Found {
    Live(Caller),
    Dead(DeadToken),
}

/// A caller and its application's rate limit.
#[derive(Debug, Clone)]
struct Caller {
    principal: Principal,
    limit: u32,
}

impl TokenRow {
    /// The family's token, with its principal if it is live.
    fn found(self, family: FamilyId, default_limit: NonZeroU32) -> Result<Found, StoreError> {
        let client_id = ClientId::from(self.client_id);
        if let Some(ended) = self.ended {
            return Ok(Found::Dead(DeadToken {
                seller: self.seller_id.into(),
                client_id,
                end: TokenEnd::parse(&ended).unwrap_or(TokenEnd::Revoked),
            }));
        }
        let corrupt = |reason: String| StoreError::corrupt("families", family, reason);
        let kind = match FamilyKind::parse(&self.kind) {
            Some(FamilyKind::ClientCredentials | FamilyKind::AuthorizationCode) => TokenKind::Access,
            Some(FamilyKind::Personal) => TokenKind::Personal,
            None => return Err(corrupt(format!("kind {:?}", self.kind))),
        };
        if kind == TokenKind::Access && self.expires_at.is_none() {
            return Err(StoreError::corrupt(
                "access_tokens",
                family,
                "an access token without an end",
            ));
        }
        let scopes = ScopeSet::from_bits(self.scopes).map_err(|unknown| corrupt(unknown.to_string()))?;
        let limit = match self.rate_limit {
            None => default_limit,
            Some(limit) => limit_from(limit).ok_or_else(|| {
                StoreError::corrupt("applications", client_id, format!("rate_limit {limit}"))
            })?,
        };
        let principal = Principal {
            seller: self.seller_id.into(),
            seller_no: self.seller_no,
            client_id,
            app_name: self.name,
            scopes,
            kind,
            expires_at: self.expires_at,
        };
        Ok(Found::Live(Caller {
            principal,
            limit: limit.get(),
        }))
    }
}

type Returned = (
    Option<i64>,
    Option<TokenRow>,
    Uuid,
    Option<i64>,
    DateTime<Utc>,
    DateTime<Utc>,
);

/// A batch of requests of one server thread.
struct Requests {
    default_limit: NonZeroU32,
}

#[async_trait]
impl BatchQuery for Requests {
    const NAME: &'static str = "gate";
    type Question = TokenKey;
    type Answer = Admitted;

    /// Looks up all tokens and counts the requests of the live ones; of a dead one it tells whose it was and why it is dead.
    ///
    /// - It reads the clock once, so all counts fall into the same window.
    /// - Subqueries pass the keys, so that one plan serves lists of any length. Each key is looked up on its own: `offset 0` prevents the
    ///   planner from joining whole tables, which it prefers at the list length that it estimates.
    /// - Each application has one row, and the rows are locked in order. Otherwise two batches with the same applications in different
    ///   orders could deadlock.
    /// - Its commit is asynchronous. The setting stands beside the clock, which is always read: PostgreSQL does not execute a table
    ///   expression that is never read.
    /// - It returns one row per known token and one per application with the place of its last request. They are joined here, since the
    ///   server's join of two results of unknown size costs the product of their sizes.
    async fn answer(
        &self,
        mut connection: &AsyncPgConnection,
        tokens: &[TokenKey],
    ) -> QueryResult<Vec<Result<Admitted, StoreError>>> {
        let batch = Batch::of(tokens);
        let tokens = || batch.distinct.iter().map(|(token, _)| token);
        let admit = sql!(Returned:
            "with clock as materialized (select at, date_trunc('minute', at, 'UTC') as window_start, mode \
               from (select api_now() as at, set_config('synchronous_commit', 'off', true) as mode) present), \
             known as materialized (select k.n, k.times, caller.* from clock cross join unnest((select ",
            tokens().map(|token| token.family.uuid()).collect::<Vec<_>>(), "::uuid[]), (select ",
            tokens().map(|token| token.hash.bytes().as_slice()).collect::<Vec<_>>(), "::bytea[]), (select ",
            batch.distinct.iter().map(|(_, times)| *times).collect::<Vec<_>>(),
            concat!("::bigint[])) with ordinality as k (family, hash, times, n) cross join lateral (select ", token_columns!(),
             " from access_tokens t join families f on f.id = t.family_id join applications a on a.client_id = f.client_id \
               join sellers s on s.id = f.seller_id where t.family_id = k.family and t.hash = k.hash offset 0) caller), \
             counted as (insert into rate_windows as w (window_start, kind, subject, used) select clock.window_start, "),
            Limiter::Api.code(), ", g.client_id, g.times \
               from (select client_id, sum(times)::bigint as times from known where ended is null group by client_id) g cross join clock \
               order by g.client_id \
               on conflict (window_start, kind, subject) do update set used = w.used + excluded.used returning subject, used) \
             select n, seller_id, seller_no, client_id, name, scopes, kind, expires_at, rate_limit, ended, client_id, null::bigint, at, \
               window_start from known cross join clock \
             union all select null, null, null, null, null, null, null, null, null, null, subject, used, at, window_start \
               from counted cross join clock");
        let rows = admit.get_results::<Returned>(&mut connection).await?;
        Ok(batch.admissions(rows, self.default_limit))
    }
}

/// Requests of which several may carry the same token, which is then looked up once.
struct Batch<'a> {
    /// Each token with the number of its requests.
    distinct: Vec<(&'a TokenKey, i64)>,
    /// For each request, in order, the index of its token in `distinct`.
    requests: Vec<usize>,
}

impl<'a> Batch<'a> {
    fn of(tokens: &'a [TokenKey]) -> Self {
        let mut batch = Self {
            distinct: Vec::new(),
            requests: Vec::with_capacity(tokens.len()),
        };
        let mut places = HashMap::new();
        for token in tokens {
            let next = batch.distinct.len();
            let place = *places
                .entry((token.family.uuid(), token.hash.bytes()))
                .or_insert(next);
            if let Some((_, times)) = batch.distinct.get_mut(place) {
                *times += 1;
            } else {
                batch.distinct.push((token, 1));
            }
            batch.requests.push(place);
        }
        batch
    }

    /// Assigns each request its place in its application's window, in the order of the requests.
    fn admissions(
        &self,
        rows: Vec<Returned>,
        default_limit: NonZeroU32,
    ) -> Vec<Result<Admitted, StoreError>> {
        let (mut callers, mut windows) = (HashMap::new(), HashMap::<Uuid, Window>::new());
        for (n, row, client, used, at, window_start) in rows {
            let window = windows.entry(client).or_insert(Window {
                place: 0,
                start: window_start,
                at,
            });
            window.place += used.unwrap_or(0);
            let token = n.and_then(|n| usize::try_from(n - 1).ok());
            let known = token.and_then(|token| Some((token, self.distinct.get(token)?)));
            if let (Some(row), Some((token, (key, times)))) = (row, known) {
                let found = row.found(key.family, default_limit).map_err(SharedFailure::new);
                if !matches!(found, Ok(Found::Dead(_))) {
                    window.place -= times;
                }
                callers.insert(token, (client, found));
            }
        }
        self.requests
            .iter()
            .map(|token| admission(callers.get(token), &mut windows))
            .collect()
    }
}

/// An application's count in the window before this batch, incremented as the batch's requests take their places.
struct Window {
    place: i64,
    start: DateTime<Utc>,
    at: DateTime<Utc>,
}

fn admission(
    found: Option<&(Uuid, Result<Found, SharedFailure>)>,
    windows: &mut HashMap<Uuid, Window>,
) -> Result<Admitted, StoreError> {
    let Some((client, found)) = found else {
        return Ok(Err(None));
    };
    let caller = match found.as_ref().map_err(SharedFailure::for_one)? {
        Found::Live(caller) => caller,
        Found::Dead(token) => return Ok(Err(Some(*token))),
    };
    let Some(window) = windows.get_mut(client) else {
        return Err(StoreError::unexpected("a count is missing"));
    };
    window.place += 1;
    let quota = Quota {
        limit: caller.limit,
        place: u64::try_from(window.place).map_err(StoreError::unexpected)?,
        resets_at: window.start + WINDOW,
        counted_at: window.at,
    };
    Ok(Ok(Admission {
        principal: caller.principal.clone(),
        quota,
    }))
}
