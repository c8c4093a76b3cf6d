//! Changes of offers without a lock before the decision: all that wait are read in one statement, and saved
//! in another.
//!
//! The caller has its turn at the offer, reads it with its key, decides, and saves. A member that drops out
//! of a batch keeps the turn and starts again with a claim of its key, as every change on Citus does.

use std::{collections::HashSet, sync::Arc, time::Duration};

use async_trait::async_trait;
use changes::ChangeItem;
use chrono::{DateTime, Utc};
use diesel::deserialize;
use diesel::pg::Pg;
use diesel::prelude::*;
use diesel::row::{Field as _, NamedRow, Row};
use diesel::sql_types::{
    Array, BigInt, Binary, Integer, Nullable, SmallInt, Text, Timestamptz, Uuid as SqlUuid,
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use kernel::{Claim, Claimed, KeySpace, OfferId, SellerId, StoreError, StoredResponse, TransactionError};
use offers::{Offer, OfferChanges, OfferToChange, OptimisticChange, Stock};
use tokio::time::Instant;
use usecases::Announcement;

use super::{OfferRow, amount, source};
use crate::ANSWER_TIMEOUT;
use crate::batch::{BatchQuery, Batcher, Withdrawable};
use crate::connection::Connector;
use crate::connection::error::{is_lock_timeout, is_rolled_back};
use crate::idempotency::ClaimRow;
use crate::outbox::columns;
use crate::sealing::Sealing;
use crate::sql::column;
use crate::statement::{Only, TableRow as _, statements};

statements! {
    "changes.sql";
    OFFERS_TO_CHANGE: (
        Array<SqlUuid>, Array<SqlUuid>, Array<SqlUuid>, Array<Text>, Array<Binary>
    ) -> ReadRow = "at, fence, fingerprint, answer_status, body, etag", OfferRow;
    SAVE_CHANGES: (
        Array<BigInt>, Array<SqlUuid>, Array<SqlUuid>, Array<Timestamptz>, Array<Timestamptz>, Array<Nullable<Text>>,
        Array<Timestamptz>, Array<Nullable<BigInt>>, Array<Nullable<Text>>, Array<Nullable<Integer>>, Array<Text>,
        Array<Nullable<Text>>, Array<Text>, Array<SqlUuid>, Array<Binary>, Array<SmallInt>, Array<Binary>,
        Array<Nullable<Text>>, Array<BigInt>, Array<Timestamptz>, Array<Text>, Array<Nullable<BigInt>>, Array<Nullable<Integer>>, Array<Nullable<Text>>
    ) -> Saved;
}

/// Where the offer's columns begin in a [`ReadRow`].
const OFFER_AT: usize = 6;

/// An offer with the row of a key, as of one moment.
struct ReadRow {
    at: DateTime<Utc>,
    key: Option<ClaimRow>,
    offer: Option<OfferRow>,
}

impl QueryableByName<Pg> for ReadRow {
    fn build<'a>(row: &impl NamedRow<'a, Pg>) -> deserialize::Result<Self> {
        let is_there = Row::get(row, OFFER_AT).is_some_and(|offer| !offer.is_null());
        Ok(Self {
            at: row.get_value::<Timestamptz, _, _>(0)?,
            key: <Option<ClaimRow> as QueryableByName<Pg>>::build(row)?,
            offer: is_there.then(|| OfferRow::at(OFFER_AT, row)).transpose()?,
        })
    }
}

/// A saved member's place in its batch.
type Saved = Only<BigInt, i64>;

/// The most bytes of stored answers in one batch.
const BATCH_BYTES: usize = 1 << 20;

/// The changes of one process.
pub(crate) struct BatchedChanges {
    reads: Batcher<Reads>,
    batches: Batcher<Saves>,
    sealing: Sealing,
}

impl BatchedChanges {
    pub(crate) fn new(connector: &Arc<Connector>, sealing: Sealing) -> Self {
        Self {
            reads: Batcher::new(Reads, Arc::clone(connector)),
            batches: Batcher::new(Saves, Arc::clone(connector)),
            sealing,
        }
    }
}

#[async_trait]
impl OfferChanges<Announcement> for BatchedChanges {
    async fn read(
        &self,
        seller: SellerId,
        id: OfferId,
        claim: &Claim,
        turn_limit: Duration,
    ) -> Result<OfferToChange, StoreError> {
        let question = (seller, id, claim.clone());
        let _turn = self
            .reads
            .turn(seller.into(), turn_limit.min(ANSWER_TIMEOUT))
            .await?;
        let ReadRow { at, key, offer } = self.reads.ask(question).await?;
        let key = key.map_or(Ok(Claimed::Run), |row| row.claimed(claim, &self.sealing))?;
        let offer = offer.map(Offer::try_from).transpose()?;
        if offer
            .as_ref()
            .is_some_and(|offer| (offer.seller, offer.id) != (seller, id))
        {
            return Err(StoreError::unexpected(
                "a row came back for another question than its own",
            ));
        }
        Ok(OfferToChange { offer, key, at })
    }

    async fn save(
        &self,
        change: OptimisticChange<Announcement>,
        claim: &Claim,
        answer: &StoredResponse,
        time_left: Duration,
    ) -> Result<bool, TransactionError> {
        let ends = Instant::now() + time_left;
        let _turn = self
            .batches
            .turn(change.change.after.seller.into(), time_left)
            .await?;
        let Some(member) = Member::new(change, claim, answer, &self.sealing)? else {
            return Ok(false);
        };
        let left = ends.saturating_duration_since(Instant::now());
        self.batches.send_once(member, left).await
    }
}

/// Offers with the rows of their keys.
struct Reads;

#[async_trait]
impl BatchQuery for Reads {
    const NAME: &'static str = "offers_to_change";
    type Question = (SellerId, OfferId, Claim);
    type Answer = ReadRow;

    async fn answer(
        &self,
        connection: &AsyncPgConnection,
        questions: &[Self::Question],
    ) -> QueryResult<Vec<Result<ReadRow, StoreError>>> {
        let read = OFFERS_TO_CHANGE.bind((
            column(questions, |(seller, ..)| seller.uuid()),
            column(questions, |(_, id, _)| id.uuid()),
            column(questions, |(.., claim)| claim.space.uuid()),
            column(questions, |(.., claim)| claim.key.as_str()),
            column(questions, |(.., claim)| claim.fingerprint.bytes().as_slice()),
        ));
        let rows: Vec<ReadRow> = read.get_results(&mut { connection }).await?;
        Ok(rows.into_iter().map(Ok).collect())
    }
}

/// A change that waits for its batch.
struct Member {
    change: OptimisticChange<Announcement>,
    claim: Claim,
    status: i16,
    /// The sealed body of the answer.
    body: Vec<u8>,
    etag: Option<String>,
    items: Vec<ChangeItem>,
}

impl Member {
    /// `None` if a batch cannot save the change: it concerns webhook subscribers, or its key is not the
    /// seller's.
    fn new(
        change: OptimisticChange<Announcement>,
        claim: &Claim,
        answer: &StoredResponse,
        sealing: &Sealing,
    ) -> Result<Option<Self>, StoreError> {
        let announced = &change.change.events;
        let is_sellers = claim.space == KeySpace::Seller(change.change.after.seller);
        if !is_sellers || announced.iter().any(|one| one.event.is_some()) {
            return Ok(None);
        }
        Ok(Some(Self {
            status: i16::try_from(answer.status).map_err(StoreError::unexpected)?,
            body: sealing.seal(claim, &answer.body)?,
            etag: answer.etag.clone(),
            claim: claim.clone(),
            items: announced.iter().filter_map(|one| one.item).collect(),
            change,
        }))
    }

    fn after(&self) -> &Offer {
        &self.change.change.after
    }
}

/// Changes with their keys and feed items, each batch in one statement.
struct Saves;

#[async_trait]
impl BatchQuery for Saves {
    const NAME: &'static str = "offer_changes";
    const MAX_MEMBERS: usize = 64;
    const CANCELS: bool = false;
    type Question = Withdrawable<Member>;
    type Answer = bool;

    /// False for each member that dropped out. A batch that the server rejected changed nothing: all its
    /// members dropped out.
    async fn answer(
        &self,
        connection: &AsyncPgConnection,
        members: &[Withdrawable<Member>],
    ) -> QueryResult<Vec<Result<bool, StoreError>>> {
        let batch = admitted(members);
        let saved: HashSet<i64> = match save(&batch, connection).await {
            Ok(saved) => saved.into_iter().map(|n| n.0).collect(),
            Err(error) if is_rolled_back(&error) || is_lock_timeout(&error) => HashSet::new(),
            Err(error) => return Err(error),
        };
        Ok((0..).zip(members).map(|(n, _)| Ok(saved.contains(&n))).collect())
    }
}

/// The members that one statement can save, each with its place: within the limits, one for an offer and one
/// for a key.
fn admitted(members: &[Withdrawable<Member>]) -> Vec<(i64, &Member)> {
    let (mut offers, mut keys, mut bytes) = (HashSet::new(), HashSet::new(), 0);
    let places = (0..).zip(members);
    let admitted = places.filter_map(|(n, withdrawable)| {
        let member = &withdrawable.change;
        let offer = member.after();
        bytes += member.body.len();
        let is_first =
            offers.insert((offer.seller, offer.id)) & keys.insert((offer.seller, &member.claim.key));
        let is_sent = is_first && bytes <= BATCH_BYTES && withdrawable.take();
        is_sent.then_some((n, member))
    });
    admitted.collect()
}

/// Saves members, or leaves them out.
async fn save(batch: &[(i64, &Member)], connection: &AsyncPgConnection) -> QueryResult<Vec<Saved>> {
    let items = batch
        .iter()
        .flat_map(|(n, member)| member.items.iter().map(|item| (*n, item)));
    let items: Vec<_> = items.collect();
    let (amounts, pieces, statuses) = columns(items.iter().map(|(_, item)| item.detail));
    let save = SAVE_CHANGES.bind((
        column(batch, |(n, _)| *n),
        column(batch, |(_, member)| member.after().seller.uuid()),
        column(batch, |(_, member)| member.after().id.uuid()),
        column(batch, |(_, member)| member.change.at),
        column(batch, |(_, member)| member.change.before.updated_at),
        column(batch, |(_, member)| source(&member.change.before)),
        column(batch, |(_, member)| member.after().updated_at),
        column(batch, |(_, member)| amount(member.after())),
        column(batch, |(_, member)| source(member.after())),
        column(batch, |(_, member)| member.after().stock.map(Stock::get)),
        column(batch, |(_, member)| member.after().status.as_str()),
        column(batch, |(_, member)| member.after().external_id.as_deref()),
        column(batch, |(_, member)| member.claim.key.as_str()),
        column(batch, |(_, member)| member.claim.fence),
        column(batch, |(_, member)| member.claim.fingerprint.bytes().as_slice()),
        column(batch, |(_, member)| member.status),
        column(batch, |(_, member)| member.body.as_slice()),
        column(batch, |(_, member)| member.etag.as_deref()),
        column(&items, |(n, _)| *n),
        column(&items, |(_, item)| item.at),
        column(&items, |(_, item)| item.kind.as_str()),
        amounts,
        pieces,
        statuses,
    ));
    save.get_results(&mut { connection }).await
}
