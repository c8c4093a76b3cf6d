//! Changes of offers without a lock before the decision: all that wait are read in one statement, and saved in another.
//!
//! The caller has its turn at the offer, reads it with its key, decides, and saves. A member that drops out of a batch keeps the turn and
//! starts again with a claim of its key, as every change on Citus does.

use std::{collections::HashSet, sync::Arc, time::Duration};

use async_trait::async_trait;
use changes::ChangeItem;
use chrono::{DateTime, Utc};
use diesel::QueryResult;
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use kernel::{Claim, Claimed, KeySpace, OfferId, SellerId, StoreError, StoredResponse, TransactionError};
use offers::{Offer, OfferChanges, OfferToChange, OptimisticChange, Stock};
use tokio::time::Instant;
use usecases::Announcement;
use uuid::Uuid;

use super::{OfferRow, amount, source};
use crate::batch::{BatchQuery, Batcher, Withdrawable};
use crate::connection::Connector;
use crate::connection::error::{is_lock_timeout, is_rolled_back};
use crate::idempotency::ClaimRow;
use crate::outbox::columns;
use crate::sealing::Sealing;
use crate::sql::{column, sql};

/// The most bytes of stored answers in one batch.
const BATCH_BYTES: usize = 1 << 20;
/// A change is saved only within this time after its read, which is longer than its request waits. A batch that reaches the server later
/// changes nothing.
const FRESH: &str = "5s";
/// How long a batch waits for a key's row before all its members go alone.
const LOCK_TIMEOUT: &str = "50ms";

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
impl OfferChanges for BatchedChanges {
    async fn read(&self, seller: SellerId, id: OfferId, claim: &Claim) -> Result<OfferToChange, StoreError> {
        let question = (seller, id.uuid(), claim.space, claim.key.as_str().to_owned());
        let (at, key, offer) = self.reads.ask(question).await?;
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
        change: OptimisticChange,
        claim: &Claim,
        answer: &StoredResponse,
        time_left: Duration,
    ) -> Result<bool, TransactionError> {
        let ends = Instant::now() + time_left;
        let _turn = self.batches.turn(change.change.after.seller, time_left).await?;
        let Some(member) = Member::new(change, claim, answer, &self.sealing)? else {
            return Ok(false);
        };
        let left = ends.saturating_duration_since(Instant::now());
        self.batches.send_once(member, left).await
    }
}

/// Offers with the rows of their keys, as of one moment. An expired key counts as absent.
struct Reads;

#[async_trait]
impl BatchQuery for Reads {
    const NAME: &'static str = "offers_to_change";
    type Question = (SellerId, Uuid, KeySpace, String);
    type Answer = (DateTime<Utc>, Option<ClaimRow>, Option<OfferRow>);

    async fn answer(
        &self,
        mut connection: &AsyncPgConnection,
        questions: &[Self::Question],
    ) -> QueryResult<Vec<Result<Self::Answer, StoreError>>> {
        // Ordered by the question, each of which has exactly one row: a seller has an offer or a key once.
        let rows = sql!((DateTime<Utc>, Option<ClaimRow>, Option<OfferRow>):
            "with clock as materialized (select api_now() as at) \
             select clock.at, i.fence, i.fingerprint, i.status, i.body, offers.* from clock cross join unnest((select ",
            column(questions, |(seller, ..)| seller.uuid()), "::uuid[]), (select ",
            column(questions, |(_, id, ..)| *id), "::uuid[]), (select ",
            column(questions, |(_, _, space, _)| space.uuid()), "::uuid[]), (select ",
            column(questions, |(.., key)| key.as_str()), concat!(
            "::text[])) with ordinality as k (seller_id, id, space, key, n) \
             left join lateral (select i.fence, i.fingerprint, i.status, i.body from idempotency i \
               where i.seller_id = k.space and i.key = k.key and i.expires_at > clock.at offset 0) i on true \
             left join lateral (select ", offer_columns!(), " from offers \
               where offers.seller_id = k.seller_id and offers.id = k.id offset 0) offers on true order by k.n"));
        let rows = rows.get_results(&mut connection).await?;
        Ok(rows.into_iter().map(Ok).collect())
    }
}

/// A change that waits for its batch.
struct Member {
    change: OptimisticChange,
    claim: Claim,
    status: i16,
    /// The sealed body of the answer.
    body: Vec<u8>,
    items: Vec<ChangeItem>,
}

impl Member {
    /// `None` if a batch cannot save the change: it concerns webhook subscribers, or its key is not the seller's.
    fn new(
        change: OptimisticChange,
        claim: &Claim,
        answer: &StoredResponse,
        sealing: &Sealing,
    ) -> Result<Option<Self>, StoreError> {
        let seller = change.change.after.seller;
        let events = change.change.events.iter();
        let announced = events.map(|event| Announcement::of_offer(seller, event, change.at));
        let announced: Vec<_> = announced.collect();
        if claim.space != KeySpace::Seller(seller) || announced.iter().any(|one| one.event.is_some()) {
            return Ok(None);
        }
        Ok(Some(Self {
            status: i16::try_from(answer.status).map_err(StoreError::unexpected)?,
            body: sealing.seal(claim, &answer.body)?,
            claim: claim.clone(),
            items: announced.into_iter().filter_map(|one| one.item).collect(),
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
    type Question = Withdrawable<Member>;
    type Answer = bool;

    /// False for each member that dropped out. A batch that the server rejected changed nothing: all its members dropped out.
    async fn answer(
        &self,
        connection: &AsyncPgConnection,
        members: &[Withdrawable<Member>],
    ) -> QueryResult<Vec<Result<bool, StoreError>>> {
        let batch = admitted(members);
        let saved: HashSet<i64> = match save(&batch, connection).await {
            Ok(saved) => saved.into_iter().collect(),
            Err(error) if is_rolled_back(&error) || is_lock_timeout(&error) => HashSet::new(),
            Err(error) => return Err(error),
        };
        Ok((0..).zip(members).map(|(n, _)| Ok(saved.contains(&n))).collect())
    }
}

/// The members that one statement can save, each with its place: within the limits, one for an offer and one for a key.
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

/// Saves the members of which the row is free and as expected, and the key unused; returns their places.
///
/// - Each step joins what the step before returned, so a member is saved whole or drops out.
/// - Locks are taken in the order of all transactions: offers, then keys, each sorted. A locked offer is skipped. A locked key is waited
///   for, but not for long, since the whole batch waits.
/// - A row that another transaction has changed since the statement began is compared again after it was locked.
async fn save(batch: &[(i64, &Member)], mut connection: &AsyncPgConnection) -> QueryResult<Vec<i64>> {
    let items: Vec<_> = batch
        .iter()
        .flat_map(|(n, member)| member.items.iter().map(|item| (*n, item)))
        .collect();
    let (amounts, pieces, statuses) = columns(items.iter().map(|(_, item)| item.detail));
    sql!(i64:
        "with clock as materialized (select api_now() as at, set_config('lock_timeout', ", LOCK_TIMEOUT,
        ", true) as lock_timeout), \
         locked as materialized (select w.*, clock.at from clock cross join unnest((select ",
        column(batch, |(n, _)| *n), "::bigint[]), (select ",
        column(batch, |(_, member)| member.after().seller.uuid()), "::uuid[]), (select ",
        column(batch, |(_, member)| member.after().id.uuid()), "::uuid[]), (select ",
        column(batch, |(_, member)| member.change.at), "::timestamptz[]), (select ",
        column(batch, |(_, member)| member.change.before.updated_at), "::timestamptz[]), (select ",
        column(batch, |(_, member)| source(&member.change.before)), "::text[]), (select ",
        column(batch, |(_, member)| member.after().updated_at), "::timestamptz[]), (select ",
        column(batch, |(_, member)| amount(member.after())), "::bigint[]), (select ",
        column(batch, |(_, member)| source(member.after())), "::text[]), (select ",
        column(batch, |(_, member)| member.after().stock.map(Stock::get)), "::integer[]), (select ",
        column(batch, |(_, member)| member.after().status.as_str()), "::text[]), (select ",
        column(batch, |(_, member)| member.claim.key.as_str()), "::text[]), (select ",
        column(batch, |(_, member)| member.claim.fence), "::uuid[]), (select ",
        column(batch, |(_, member)| member.claim.fingerprint.bytes().as_slice()), "::bytea[]), (select ",
        column(batch, |(_, member)| member.status), "::smallint[]), (select ",
        column(batch, |(_, member)| member.body.as_slice()),
        "::bytea[])) as w (n, seller_id, offer_id, read_at, old_updated_at, old_source, updated_at, amount, source, stock, status, \
           key, fence, fingerprint, answer_status, answer) \
           join offers o on o.seller_id = w.seller_id and o.id = w.offer_id \
           where o.updated_at = w.old_updated_at and o.price_source is not distinct from w.old_source \
             and clock.at < w.read_at + ", FRESH, "::text::interval \
           order by o.seller_id, o.id for no key update of o skip locked), \
         keyed as (insert into idempotency as t (seller_id, key, fence, fingerprint, created_at, expires_at, status, body) \
           select seller_id, key, fence, fingerprint, at, at + interval '24 hours', answer_status, answer from locked \
           order by seller_id, key on conflict (seller_id, key) do update set fence = excluded.fence, \
             fingerprint = excluded.fingerprint, created_at = excluded.created_at, expires_at = excluded.expires_at, \
             status = excluded.status, body = excluded.body where t.expires_at <= excluded.created_at \
           returning seller_id, key), \
         changed as (update offers o set updated_at = w.updated_at, price_amount = w.amount, price_source = w.source, \
             stock = w.stock, status = w.status from locked w join keyed on keyed.seller_id = w.seller_id and keyed.key = w.key \
           where o.seller_id = w.seller_id and o.id = w.offer_id returning w.n, w.seller_id, w.offer_id), \
         fed as (insert into changes (seller_id, at, kind, offer_id, price_amount, stock, status) \
           select c.seller_id, e.at, e.kind, c.offer_id, e.amount, e.stock, e.status from changed c join unnest((select ",
        column(&items, |(n, _)| *n), "::bigint[]), (select ",
        column(&items, |(_, item)| item.at), "::timestamptz[]), (select ",
        column(&items, |(_, item)| item.kind.as_str()), "::text[]), (select ",
        amounts, "::bigint[]), (select ", pieces, "::integer[]), (select ", statuses,
        "::text[])) with ordinality as e (n, at, kind, amount, stock, status, place) on e.n = c.n order by e.place) \
         select n from changed")
    .get_results(&mut connection)
    .await
}
