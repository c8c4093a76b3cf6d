//! The gate: looks up the tokens of all requests in flight and counts the requests per application, in one
//! statement. Nothing is cached.

use std::collections::{BTreeMap, HashMap};
use std::num::NonZeroU32;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use diesel::sql_types::{
    Array, BigInt, Binary, Integer, Nullable, SmallInt, Text, Timestamptz, Uuid as SqlUuid,
};
use diesel::{QueryResult, QueryableByName};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use kernel::StoreError;
use oauth::{
    Admission, ClientId, DeadToken, FamilyKind, Gate, Limiter, Principal, Quota, ScopeSet, TokenEnd,
    TokenKey, TokenKind,
};
use uuid::Uuid;

use crate::batch::{BatchQuery, Batcher};
use crate::oauth::applications::rate_limit;
use crate::rate_limits::WINDOW;
use crate::schema::applications;
use crate::sql::column;
use crate::statement::statements;

type Admitted = Result<Admission, Option<DeadToken>>;

/// The gate of one server thread.
#[async_trait]
impl Gate for Batcher<Requests> {
    async fn admit(&self, token: TokenKey) -> Result<Admitted, StoreError> {
        self.ask((token, true)).await
    }

    async fn look_up(&self, token: TokenKey) -> Result<Result<Principal, Option<DeadToken>>, StoreError> {
        let admitted = self.ask((token, false)).await?;
        Ok(admitted.map(|admission| admission.principal))
    }
}

statements! {
    "gate.sql";
    ADMIT: (Array<SqlUuid>, Array<Binary>, Array<BigInt>, SmallInt) -> Returned;
}

/// A known token, or the count of an application.
#[derive(QueryableByName)]
struct Returned {
    /// The place of the token in the batch, from 1.
    #[diesel(sql_type = Nullable<BigInt>)]
    n: Option<i64>,
    #[diesel(embed)]
    token: Option<TokenRow>,
    #[diesel(sql_type = SqlUuid)]
    client_id: Uuid,
    #[diesel(sql_type = Nullable<BigInt>)]
    used: Option<i64>,
    #[diesel(sql_type = Timestamptz)]
    at: DateTime<Utc>,
    #[diesel(sql_type = Timestamptz)]
    window_start: DateTime<Utc>,
}

#[derive(QueryableByName)]
#[diesel(table_name = applications)]
struct TokenRow {
    #[diesel(sql_type = SqlUuid)]
    seller_id: Uuid,
    #[diesel(sql_type = Integer)]
    seller_no: i32,
    #[diesel(sql_type = Text)]
    seller_name: String,
    client_id: Uuid,
    name: String,
    scopes: i32,
    #[diesel(sql_type = Text)]
    kind: String,
    #[diesel(sql_type = Nullable<Timestamptz>)]
    expires_at: Option<DateTime<Utc>>,
    rate_limit: Option<i32>,
    /// None for a live token.
    #[diesel(sql_type = Nullable<Text>)]
    ended: Option<String>,
}

/// The caller with a known token, and its application's rate limit.
type Caller = Result<(Principal, u32), DeadToken>;

impl TokenRow {
    /// The caller with this token.
    fn caller(self, token: TokenKey, default_limit: NonZeroU32) -> Result<Caller, StoreError> {
        let family = token.family;
        let client_id = ClientId::from(self.client_id);
        if let Some(ended) = self.ended {
            return Ok(Err(DeadToken {
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
        let limit = rate_limit(client_id, self.rate_limit)?.unwrap_or(default_limit);
        let principal = Principal {
            seller: self.seller_id.into(),
            seller_no: self.seller_no,
            seller_name: self.seller_name,
            client_id,
            app_name: self.name,
            scopes,
            kind,
            expires_at: self.expires_at,
            token,
        };
        Ok(Ok((principal, limit.get())))
    }
}

/// A batch of requests of one server thread.
pub(crate) struct Requests {
    pub(crate) default_limit: NonZeroU32,
}

#[async_trait]
impl BatchQuery for Requests {
    const NAME: &'static str = "gate";
    /// A token, and whether its request is counted.
    type Question = (TokenKey, bool);
    type Answer = Admitted;

    async fn answer(
        &self,
        mut connection: &AsyncPgConnection,
        requests: &[(TokenKey, bool)],
    ) -> QueryResult<Vec<Result<Admitted, StoreError>>> {
        // Several may carry the same token, which is then looked up once.
        let mut tokens = BTreeMap::new();
        for (token, counts) in requests {
            tokens.entry(key(token)).or_insert((token, 0)).1 += i64::from(*counts);
        }
        let tokens: Vec<(&TokenKey, i64)> = tokens.into_values().collect();
        let admit = ADMIT.bind((
            column(&tokens, |(token, _)| token.family.uuid()),
            column(&tokens, |(token, _)| token.hash.bytes().as_slice()),
            column(&tokens, |(_, times)| *times),
            Limiter::Api.code(),
        ));
        let rows: Vec<Returned> = admit.get_results(&mut connection).await?;
        let (mut callers, mut windows) = (HashMap::new(), HashMap::<Uuid, Window>::new());
        for row in rows {
            let window = windows.entry(row.client_id).or_insert(Window {
                place: 0,
                start: row.window_start,
                at: row.at,
            });
            window.place += row.used.unwrap_or(0);
            let place = row.n.and_then(|n| usize::try_from(n - 1).ok());
            let known = place.and_then(|place| tokens.get(place));
            if let (Some(row_of_token), Some((token, times))) = (row.token, known) {
                let caller = row_of_token.caller(**token, self.default_limit);
                if !matches!(caller, Ok(Err(_))) {
                    window.place -= times;
                }
                callers.insert(key(token), (row.client_id, caller));
            }
        }
        // Each gets its place in its application's window, in the order of the requests.
        let admitted = requests
            .iter()
            .map(|(token, counts)| admission(callers.get(&key(token)), *counts, &mut windows));
        Ok(admitted.collect())
    }
}

fn key(token: &TokenKey) -> (Uuid, &[u8; 32]) {
    (token.family.uuid(), token.hash.bytes())
}

/// An application's count in the window before this batch, incremented as the batch's requests take their
/// places.
struct Window {
    place: i64,
    start: DateTime<Utc>,
    at: DateTime<Utc>,
}

fn admission(
    known: Option<&(Uuid, Result<Caller, StoreError>)>,
    counts: bool,
    windows: &mut HashMap<Uuid, Window>,
) -> Result<Admitted, StoreError> {
    let Some((client, caller)) = known else {
        return Ok(Err(None));
    };
    let (principal, limit) = match caller.clone()? {
        Ok(caller) => caller,
        Err(token) => return Ok(Err(Some(token))),
    };
    let Some(window) = windows.get_mut(client) else {
        return Err(StoreError::unexpected("a count is missing"));
    };
    window.place += i64::from(counts);
    let quota = Quota {
        limit,
        place: u64::try_from(window.place).map_err(StoreError::unexpected)?,
        resets_at: window.start + WINDOW,
        counted_at: window.at,
    };
    Ok(Ok(Admission { principal, quota }))
}
