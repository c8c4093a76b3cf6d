//! The announcements of a transaction: to the marketplace by the change feed, to subscribers by deliveries. Both are
//! rows of the same transaction, so that they are announced exactly if the change is committed.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use changes::{ChangeItem, Detail, Topic};
use chrono::{DateTime, Utc};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use kernel::{SellerId, StoreError};
use usecases::Announcement;
use webhooks::Event;

use crate::connection::error::store_error;
use crate::sql::{column, sql};
use crate::unit_of_work::{Write, expect_rows};
use crate::webhooks::queue_state;

/// Announcements by seller. Delivery queues are locked in this order of sellers.
#[derive(Default)]
pub(crate) struct Outbox(BTreeMap<SellerId, SellerAnnouncements>);

#[derive(Default)]
struct SellerAnnouncements {
    feed: Vec<ChangeItem>,
    events: Vec<(Event, DateTime<Utc>)>,
}

impl Outbox {
    pub(crate) fn add(&mut self, announced: Announcement) {
        let Announcement {
            seller,
            item,
            event,
            at,
        } = announced;
        let pending = self.0.entry(seller).or_default();
        pending.feed.extend(item);
        pending.events.extend(event.map(|event| (event, at)));
    }

    /// The statements that write the announcements. Those that wake a delivery queue set `woken`.
    pub(crate) fn into_writes(self, woken: &Arc<AtomicBool>) -> Vec<Box<dyn Write>> {
        let mut writes = Vec::<Box<dyn Write>>::new();
        for (seller, pending) in self.0 {
            if !pending.feed.is_empty() {
                writes.push(Box::new(FeedItems(pending.feed)));
            }
            if !pending.events.is_empty() {
                writes.push(Box::new(FanOut {
                    seller,
                    events: pending.events,
                    woken: Arc::clone(woken),
                }));
            }
        }
        writes
    }
}

/// Feed items of one seller; their ids rise in this order.
struct FeedItems(Vec<ChangeItem>);

#[async_trait]
impl Write for FeedItems {
    async fn send(&self, mut connection: &AsyncPgConnection) -> Result<(), StoreError> {
        let items = &self.0;
        let topic = |pick: fn(Topic) -> Option<uuid::Uuid>| column(items, |item| pick(item.topic));
        let (amounts, pieces, statuses) = columns(items.iter().map(|item| item.detail));
        let insert = sql!(():
            "insert into changes (seller_id, at, kind, offer_id, order_id, client_id, price_amount, stock, status) \
             select * from unnest(", column(items, |item| item.seller.uuid()), ", ", column(items, |item| item.at),
            ", ", column(items, |item| item.kind.as_str()), ", ",
            topic(|topic| match topic { Topic::Offer(id) => Some(id.uuid()), _ => None }), ", ",
            topic(|topic| match topic { Topic::Order(id) => Some(id.uuid()), _ => None }), ", ",
            topic(|topic| match topic { Topic::Application(id) => Some(id.uuid()), _ => None }), ", ",
            amounts, ", ", pieces, ", ", statuses, ")");
        let rows = insert.execute(&mut connection).await.map_err(store_error)?;
        expect_rows("changes", rows, items.len())
    }
}

/// Amounts of prices, pieces in stock, statuses.
type DetailColumns = (Vec<Option<i64>>, Vec<Option<i32>>, Vec<Option<&'static str>>);

/// The details of feed items in their columns.
pub(crate) fn columns(details: impl Iterator<Item = Detail>) -> DetailColumns {
    let columns = details.map(|detail| match detail {
        Detail::Nothing => (None, None, None),
        Detail::Price(price) => (Some(price.amount()), None, None),
        Detail::Stock(stock) => (None, Some(stock.get()), None),
        Detail::Status(status) => (None, None, Some(status.as_str())),
    });
    columns.collect()
}

/// A seller's events, each with its time.
struct FanOut {
    seller: SellerId,
    events: Vec<(Event, DateTime<Utc>)>,
    /// Set if a delivery queue was woken.
    woken: Arc<AtomicBool>,
}

#[async_trait]
impl Write for FanOut {
    /// Queues one delivery per event and subscription, and wakes sleeping delivery queues.
    ///
    /// - A subscription receives the event if its queue is live: application, accounts and connection are checked, since the rows of those
    ///   that have ended follow in batches.
    /// - Its row is locked `for key share`, so fan-outs do not wait for each other, nor for a worker. A leased queue is left to its worker,
    ///   which looks for deliveries once more after it has put the queue to sleep and this lock is gone.
    ///   Only the queues of a suspended application sleep with work in them, until reinstatement wakes them.
    /// - It wakes at the time of this statement, soon before the commit: workers look for queues from where they last saw one.
    /// - Whether to wake a queue is decided by its locked row. The statement's snapshot may be older, and a queue
    ///   judged by it could sleep forever with work in it.
    async fn send(&self, mut connection: &AsyncPgConnection) -> Result<(), StoreError> {
        let Some(latest) = self.events.iter().map(|(_, at)| *at).max() else {
            return Ok(());
        };
        let bodies = self.events.iter().map(|(event, at)| event.around_id(*at));
        let bodies = bodies
            .collect::<Result<Vec<_>, _>>()
            .map_err(StoreError::unexpected)?;
        let names = column(&self.events, |(event, _)| event.name.as_str());
        let before = column(&bodies, |(before, _)| before.as_slice());
        let after = column(&bodies, |(_, after)| after.as_slice());
        let at = column(&self.events, |(_, at)| *at);
        let insert = sql!(():
            "with live as materialized (select s.seller_id, s.id, s.events, s.leased, s.wake_at from subscriptions s \
               where s.seller_id = ", self.seller.uuid(), " and s.active and s.events && ", names.as_slice(),
            concat!(" and ", queue_state!(), " = 'live' order by s.id for key share of s), \
             queued as (insert into deliveries (seller_id, subscription_id, id, created_at, due_at, event, body) \
               select d.seller_id, d.subscription_id, d.id, d.at, d.at, d.event, d.before || convert_to(d.id::text, 'UTF8') || d.after \
               from (select l.seller_id, l.id as subscription_id, api_uuid(e.at) as id, e.event, e.before, e.after, e.at \
                 from live l join unnest("), names.as_slice(), ", ", before, ", ", after, ", ", at,
            ") with ordinality as e (event, before, after, at, n) on l.events @> array[e.event] order by l.id, e.n) d), \
             asleep as materialized (select s.seller_id, s.id, s.leased, s.wake_at from live l \
               join subscriptions s on s.seller_id = l.seller_id and s.id = l.id \
               where not l.leased and (l.wake_at is null or l.wake_at > ", latest,
            ") order by s.id for no key update of s) \
             update subscriptions s set wake_at = (select api_now()) from asleep w where s.seller_id = w.seller_id and s.id = w.id and not w.leased \
               and (w.wake_at is null or w.wake_at > ", latest, ")");
        // The number of woken queues says nothing about the number of deliveries: both may be zero.
        let queues = insert.execute(&mut connection).await.map_err(store_error)?;
        self.woken.fetch_or(queues > 0, Ordering::Relaxed);
        Ok(())
    }
}
