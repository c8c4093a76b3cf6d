//! Issues tokens outside a transaction of the caller: client tokens, and pairs for codes and refresh tokens.
//! All in flight on one server thread are stored together.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use diesel::QueryResult;
use diesel::sql_types::{Array, BigInt, Binary, Integer, Nullable, Text, Timestamptz, Uuid as SqlUuid};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use kernel::{StoreError, TransactionError};
use oauth::{Exchange, Grant, NewClientToken, NewPair, TokenIssuer, Verdict};
use uuid::Uuid;

use super::{CREDENTIALS, CredentialRow, credentials};
use crate::batch::{BatchQuery, Batcher, Withdrawable};
use crate::connection::Connector;
use crate::connection::error::{is_lock_timeout, is_rolled_back};
use crate::sql::{column, microseconds};
use crate::statement::{Only, statements};

statements! {
    "issuing.sql";
    ISSUE: (
        Array<SqlUuid>, Array<SqlUuid>, Array<SqlUuid>, Array<Integer>, Array<Binary>, Array<BigInt>
    ) -> Stored;
    pub(super) EXCHANGE: (
        Array<BigInt>, Array<SqlUuid>, Array<Binary>, Array<Nullable<Text>>, Array<Integer>, Array<Binary>,
        Array<Timestamptz>, Array<Binary>, Array<Timestamptz>, Array<Nullable<Timestamptz>>
    ) -> Exchanged;
}

/// A family that was stored.
type Stored = Only<SqlUuid, Uuid>;

/// A place from 1 in a batch whose credential was used.
type Exchanged = Only<BigInt, i64>;

/// The tokens of one server thread.
pub(crate) struct BatchedTokens {
    clients: Batcher<IssueBatch>,
    pairs: Batcher<ExchangeBatch>,
}

impl BatchedTokens {
    pub(crate) fn new(connector: &Arc<Connector>) -> Self {
        Self {
            clients: Batcher::new(IssueBatch, Arc::clone(connector)),
            pairs: Batcher::new(ExchangeBatch, Arc::clone(connector)),
        }
    }
}

#[async_trait]
impl TokenIssuer for BatchedTokens {
    async fn issue(&self, token: NewClientToken) -> Result<bool, StoreError> {
        self.clients.ask(token).await
    }

    async fn exchange(
        &self,
        exchange: Exchange,
        time_left: Duration,
    ) -> Result<Option<Grant>, TransactionError> {
        self.pairs.send_once(exchange, time_left).await
    }
}

/// A batch of tokens of any applications.
struct IssueBatch;

#[async_trait]
impl BatchQuery for IssueBatch {
    const NAME: &'static str = "client_tokens";
    type Question = NewClientToken;
    type Answer = bool;

    async fn answer(
        &self,
        mut connection: &AsyncPgConnection,
        tokens: &[NewClientToken],
    ) -> QueryResult<Vec<Result<bool, StoreError>>> {
        let issue = ISSUE.bind((
            column(tokens, |token| token.family.uuid()),
            column(tokens, |token| token.grant.seller.uuid()),
            column(tokens, |token| token.grant.client_id.uuid()),
            column(tokens, |token| token.grant.scopes.bits()),
            column(tokens, |token| token.hash.bytes().as_slice()),
            column(tokens, |token| microseconds(token.lifetime)),
        ));
        let stored = issue.get_results::<Stored>(&mut connection).await?;
        let stored: HashSet<_> = stored.into_iter().map(|family| family.0).collect();
        let each = |token: &NewClientToken| Ok(stored.contains(&token.family.uuid()));
        Ok(tokens.iter().map(each).collect())
    }
}

/// An exchange whose verdict is a pair.
struct Judged<'m> {
    n: i64,
    exchange: &'m Exchange,
    grant: Grant,
    pair: NewPair,
    versions: String,
}

impl<'m> Judged<'m> {
    /// Judges what was read, and takes the exchange if its verdict is a pair: from then on its outcome is
    /// unknown until EXCHANGE has answered. None for other verdicts and invalid rows, which the exchange on its
    /// own reports, and if its request has withdrawn it.
    fn judge_and_take(row: CredentialRow, members: &'m [Withdrawable<Exchange>]) -> Option<Self> {
        let CredentialRow { n, at, .. } = row;
        let versions = row.versions.clone();
        let member = members.get(usize::try_from(n - 1).ok()?)?;
        let (family, stored) = row.read().ok()?;
        let exchange = &member.change;
        match exchange.presented.judge(&family, &stored?, at) {
            Ok(Verdict::Issue(scopes)) if member.take() => Some(Self {
                n,
                exchange,
                grant: family.grant(scopes),
                pair: exchange.pair(scopes, at),
                versions,
            }),
            _ => None,
        }
    }
}

/// Uses the credentials whose rows are free and unchanged, and stores their pairs; returns these pairs'
/// grants by place.
async fn exchange(
    batch: &[Judged<'_>],
    mut connection: &AsyncPgConnection,
) -> QueryResult<HashMap<i64, Grant>> {
    if batch.is_empty() {
        return Ok(HashMap::new());
    }
    let exchange = EXCHANGE.bind((
        column(batch, |one| one.n),
        column(batch, |one| one.exchange.presented.key().family.uuid()),
        column(batch, |one| one.exchange.presented.key().hash.bytes().to_vec()),
        column(batch, |one| Some(one.versions.as_str())),
        column(batch, |one| one.pair.scopes.bits()),
        column(batch, |one| one.pair.access.bytes().as_slice()),
        column(batch, |one| one.pair.access_expires_at),
        column(batch, |one| one.pair.refresh.bytes().as_slice()),
        column(batch, |one| one.pair.refresh_expires_at),
        column(batch, |one| Some(one.exchange.asked_at)),
    ));
    let rows = exchange.get_results::<Exchanged>(&mut connection).await?;
    let exchanged: HashSet<_> = rows.into_iter().map(|n| n.0).collect();
    let stored = batch.iter().filter(|one| exchanged.contains(&one.n));
    Ok(stored.map(|one| (one.n, one.grant)).collect())
}

/// Exchanges of any families: read in one statement, judged, and stored in another one if what was read still
/// holds.
struct ExchangeBatch;

#[async_trait]
impl BatchQuery for ExchangeBatch {
    const NAME: &'static str = "exchanges";
    const MAX_MEMBERS: usize = 64;
    const CANCELS: bool = false;
    type Question = Withdrawable<Exchange>;
    type Answer = Option<Grant>;

    /// None for each that dropped out. A statement that the server rejected changed nothing: all its
    /// exchanges dropped out.
    async fn answer(
        &self,
        mut connection: &AsyncPgConnection,
        members: &[Withdrawable<Exchange>],
    ) -> QueryResult<Vec<Result<Option<Grant>, StoreError>>> {
        let keys = column(members, |member| member.change.presented.key());
        let rows = CREDENTIALS.bind(credentials(&keys));
        let rows = rows.get_results(&mut connection).await?;
        let judged = rows
            .into_iter()
            .filter_map(|row| Judged::judge_and_take(row, members));
        let judged: Vec<_> = judged.collect();
        let exchanged = match exchange(&judged, connection).await {
            Ok(exchanged) => exchanged,
            Err(error) if is_rolled_back(&error) || is_lock_timeout(&error) => HashMap::new(),
            Err(error) => return Err(error),
        };
        let outcomes = (1..).zip(members);
        Ok(outcomes.map(|(n, _)| Ok(exchanged.get(&n).copied())).collect())
    }
}
