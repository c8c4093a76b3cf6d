//! Exchanges codes and refresh tokens for token pairs: all of a kind that wait in one statement.

use std::{collections::HashMap, sync::Arc, time::Duration};

use async_trait::async_trait;
use diesel::pg::Pg;
use diesel::sql_types::{Array, BigInt, Binary, Integer, Nullable, Text, Timestamptz, Uuid as SqlUuid};
use diesel::{QueryResult, QueryableByName};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use futures_util::join;
use kernel::{StoreError, TransactionError};
use oauth::{CodeExchange, Exchange, Exchanges, Presented, ScopeSet, UnknownScope};

use crate::batch::{BatchQuery, Batcher, Withdrawable};
use crate::connection::Connector;
use crate::connection::error::{is_lock_timeout, is_rolled_back};
use crate::sql::{column, microseconds};
use crate::statement::statements;

statements! {
    "exchanges.sql";
    EXCHANGE_CODES: (
        Array<BigInt>, Array<SqlUuid>, Array<Binary>, Array<SqlUuid>, Array<Nullable<Text>>,
        Array<Nullable<Text>>, Array<Binary>, Array<BigInt>, Array<Binary>, Array<BigInt>, Array<Timestamptz>,
        Integer
    ) -> PairRow;
    EXCHANGE_REFRESH_TOKENS: (
        Array<BigInt>, Array<SqlUuid>, Array<Binary>, Array<SqlUuid>, Array<Nullable<Text>>,
        Array<Nullable<Text>>, Array<Binary>, Array<BigInt>, Array<Binary>, Array<BigInt>, Array<Timestamptz>,
        Integer
    ) -> PairRow;
}

#[derive(QueryableByName)]
#[diesel(check_for_backend(Pg))]
struct PairRow {
    #[diesel(sql_type = BigInt)]
    n: i64,
    #[diesel(sql_type = Integer)]
    scopes: i32,
}

/// Exchanges credentials of one kind.
async fn exchange(
    batch: &[(i64, &Exchange)],
    mut connection: &AsyncPgConnection,
) -> QueryResult<Vec<PairRow>> {
    let statement = match batch.first().map(|(_, one)| &one.presented) {
        None => return Ok(Vec::new()),
        Some(Presented::Code(..)) => EXCHANGE_CODES,
        Some(Presented::RefreshToken(..)) => EXCHANGE_REFRESH_TOKENS,
    };
    let exchange = statement.bind((
        column(batch, |(n, _)| *n),
        column(batch, |(_, one)| one.presented.key().family.uuid()),
        column(batch, |(_, one)| one.presented.key().hash.bytes().to_vec()),
        column(batch, |(_, one)| one.presented.client_id().uuid()),
        column(batch, |(_, one)| code(one).map(|code| code.redirect_uri.as_str())),
        column(batch, |(_, one)| {
            code(one).map(|code| code.verifier.challenge().as_str().to_owned())
        }),
        column(batch, |(_, one)| one.access.bytes().as_slice()),
        column(batch, |(_, one)| microseconds(one.access_lifetime)),
        column(batch, |(_, one)| one.refresh.bytes().as_slice()),
        column(batch, |(_, one)| microseconds(one.refresh_lifetime)),
        column(batch, |(_, one)| one.asked_at),
        ScopeSet::all().bits(),
    ));
    exchange.get_results(&mut connection).await
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
        let (of_codes, of_tokens) = join!(exchange(&codes, connection), exchange(&tokens, connection));
        let mut issued = HashMap::new();
        for rows in [of_codes, of_tokens] {
            match rows {
                Ok(rows) => issued.extend(rows.into_iter().map(|row| (row.n, row.scopes))),
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
