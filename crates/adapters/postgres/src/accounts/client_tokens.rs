//! Issuing the tokens of applications, those in flight in one durable statement.

use std::sync::Arc;

use async_trait::async_trait;
use diesel::{
    QueryResult,
    sql_types::{Array, BigInt, Binary, Integer, Text, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use kernel::StoreError;
use oauth::{ClientTokens, FamilyKind, NewClientToken};
use uuid::Uuid;

use crate::{
    connector::Connector,
    error::{SharedFailure, is_surely_undone, store_error},
    gather::{Gatherer, Grouped},
    line::Line,
    pending::expect_rows,
    settings::Gathering,
    statement::statement,
};

/// A family with its token, as a transaction of its own.
struct IssueOne<'a> {
    family: Uuid,
    seller: Uuid,
    client: Uuid,
    kind: &'static str,
    scopes: i32,
    hash: &'a [u8],
    lifetime: i64,
}

statement!(IssueOne<'_> => ():
    "with family as (insert into families (id, seller_id, client_id, kind, scopes) values (", family: SqlUuid,
    ", ", seller: SqlUuid,
    ", ", client: SqlUuid,
    ", ", kind: Text,
    ", ", scopes: Integer,
    ") returning id) insert into access_tokens (family_id, hash, expires_at) select family.id, ", hash: Binary,
    ", clock.at + ", lifetime: BigInt, " * interval '1 microsecond' from family, (select api_now() as at) clock");

/// Families with a token each, as one transaction. The foreign keys hold the applications and their owners against removal,
/// one after another in the order of the rows, which is the same for all groups.
struct IssueMany<'a> {
    families: Vec<Uuid>,
    sellers: Vec<Uuid>,
    clients: Vec<Uuid>,
    kind: &'static str,
    scopes: Vec<i32>,
    hashes: Vec<&'a [u8]>,
    lifetimes: Vec<i64>,
}

statement!(IssueMany<'_> => ():
    "with given as materialized (select * from unnest(", families: Array<SqlUuid>, "::uuid[], ",
    sellers: Array<SqlUuid>, "::uuid[], ", clients: Array<SqlUuid>, "::uuid[], ", scopes: Array<Integer>,
    "::integer[], ", hashes: Array<Binary>, "::bytea[], ", lifetimes: Array<BigInt>,
    "::bigint[]) as k (family, seller, client, scopes, hash, lifetime)), \
     kept as (insert into families (id, seller_id, client_id, kind, scopes) \
       select family, seller, client, ", kind: Text, ", scopes from given order by client, family) \
     insert into access_tokens (family_id, hash, expires_at) \
       select family, hash, clock.at + lifetime * interval '1 microsecond' \
       from given, (select api_now() as at) clock order by family");

impl<'a> IssueOne<'a> {
    fn of(token: &'a NewClientToken) -> Self {
        Self {
            family: token.family.uuid(),
            seller: token.grant.seller.uuid(),
            client: token.grant.client_id.uuid(),
            kind: FamilyKind::ClientCredentials.as_str(),
            scopes: token.grant.scopes.bits(),
            hash: token.hash.bytes(),
            lifetime: microseconds(token),
        }
    }

    async fn store(self, mut connection: &AsyncPgConnection) -> QueryResult<Result<(), StoreError>> {
        let stored = self.execute(&mut connection).await?;
        Ok(expect_rows("access_tokens", stored, 1))
    }
}

impl<'a> IssueMany<'a> {
    fn of(tokens: &'a [NewClientToken]) -> Self {
        Self {
            families: tokens.iter().map(|token| token.family.uuid()).collect(),
            sellers: tokens.iter().map(|token| token.grant.seller.uuid()).collect(),
            clients: tokens.iter().map(|token| token.grant.client_id.uuid()).collect(),
            kind: FamilyKind::ClientCredentials.as_str(),
            scopes: tokens.iter().map(|token| token.grant.scopes.bits()).collect(),
            hashes: tokens.iter().map(|token| token.hash.bytes().as_slice()).collect(),
            lifetimes: tokens.iter().map(microseconds).collect(),
        }
    }
}

/// A lifetime that cannot be told in microseconds is one of 292 000 years.
fn microseconds(token: &NewClientToken) -> i64 {
    token.lifetime.num_microseconds().unwrap_or(i64::MAX)
}

/// Issues the tokens of applications.
pub(crate) enum IssuedTokens {
    /// All that are in flight on one server thread in one statement.
    Gathered(Gatherer<Issues>),
    /// One family per statement.
    OneByOne(Line),
}

impl IssuedTokens {
    pub(crate) fn new(connector: &Arc<Connector>, gathering: Gathering) -> Self {
        let connector = Arc::clone(connector);
        match gathering {
            Gathering::Grouped => Self::Gathered(Gatherer::new(Issues, connector)),
            Gathering::Router => Self::OneByOne(Line::new(connector, Issues::NAME)),
        }
    }
}

#[async_trait]
impl ClientTokens for IssuedTokens {
    async fn issue(&self, token: NewClientToken) -> Result<(), StoreError> {
        match self {
            Self::Gathered(gatherer) => gatherer.ask(token).await,
            Self::OneByOne(line) => {
                let ask = line.ask(|link| async move { IssueOne::of(&token).store(link.connection()).await });
                ask.await?
            }
        }
    }
}

/// Tokens of any applications in one statement.
pub(crate) struct Issues;

#[async_trait]
impl Grouped for Issues {
    const NAME: &'static str = "client_tokens";
    type Question = NewClientToken;
    type Answer = ();

    /// Where the server refused the group, nothing of it stands, and each is stored by itself: what cannot be is its own
    /// trouble. A group whose answer is lost is told so and stays as it is.
    async fn answer(
        &self,
        mut connection: &AsyncPgConnection,
        tokens: &[NewClientToken],
    ) -> QueryResult<Vec<Result<(), StoreError>>> {
        match IssueMany::of(tokens).execute(&mut connection).await {
            Ok(stored) => {
                let outcome = expect_rows("access_tokens", stored, tokens.len()).map_err(SharedFailure::new);
                let each = |_| outcome.as_ref().map_err(SharedFailure::for_one).copied();
                Ok(tokens.iter().map(each).collect())
            }
            Err(error) if is_surely_undone(&error) && tokens.len() > 1 => {
                let mut outcomes = Vec::with_capacity(tokens.len());
                for token in tokens {
                    let stored = IssueOne::of(token).store(connection).await;
                    outcomes.push(stored.unwrap_or_else(|error| Err(store_error(error))));
                }
                Ok(outcomes)
            }
            Err(error) => Err(error),
        }
    }
}
