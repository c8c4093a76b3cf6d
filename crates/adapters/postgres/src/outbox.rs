//! The announcements of a transaction: to the marketplace by the change feed, to the seller's programs by the
//! journal, to subscribers by deliveries. All are rows of the same transaction, so that they are announced
//! exactly if the change is committed.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use changes::{ChangeItem, Detail, Topic};
use chrono::{DateTime, Utc};
use diesel::sql_types::{Array, BigInt, Binary, Integer, Nullable, Text, Timestamptz, Uuid as SqlUuid};
use diesel_async::RunQueryDsl;
use kernel::{SellerId, StoreError};
use usecases::Announcement;
use webhooks::Event;

use crate::connection::error::store_error;
use crate::journal;
use crate::sql::column;
use crate::statement::statements;
use crate::unit_of_work::{Write, changing};

statements! {
    "outbox.sql";
    ADD_TO_FEED: (
        Array<SqlUuid>, Array<Timestamptz>, Array<Text>, Array<Nullable<SqlUuid>>, Array<Nullable<SqlUuid>>,
        Array<Nullable<SqlUuid>>, Array<Nullable<BigInt>>, Array<Nullable<Integer>>, Array<Nullable<Text>>
    );
    ANNOUNCE: (
        SqlUuid, Array<Text>, Array<Binary>, Array<Timestamptz>, Array<Timestamptz>, Array<Nullable<SqlUuid>>,
        Array<Nullable<Text>>, Array<Nullable<SqlUuid>>
    );
}

/// What a transaction announces at its end.
#[derive(Default)]
pub(crate) struct Outbox {
    feed: Vec<ChangeItem>,
    /// By seller: journals and delivery queues are locked in this order.
    events: BTreeMap<SellerId, Vec<Announced>>,
}

/// An event, when it was caused, and when it occurred.
struct Announced {
    event: Event,
    at: DateTime<Utc>,
    occurred_at: DateTime<Utc>,
}

impl Outbox {
    pub(crate) fn extend(&mut self, announcements: impl IntoIterator<Item = Announcement>) {
        for announced in announcements {
            self.feed.extend(announced.item);
            if let Some(event) = announced.event {
                let events = self.events.entry(announced.seller).or_default();
                events.push(Announced {
                    event,
                    at: announced.at,
                    occurred_at: announced.occurred_at,
                });
            }
        }
    }

    /// The statements that write the announcements, those of journals last. Those that wake a delivery queue set
    /// `woken`.
    pub(crate) fn into_writes(self, woken: &Arc<AtomicBool>) -> Vec<Write> {
        let feed = (!self.feed.is_empty()).then(|| add_to_feed(&self.feed));
        let events = self.events.into_iter();
        let events = events.map(|(seller, events)| announce(seller, events, Arc::clone(woken)));
        feed.into_iter().chain(events).collect()
    }
}

/// Adds items to the feed; their ids rise in this order.
fn add_to_feed(items: &[ChangeItem]) -> Write {
    let topics = items.iter().map(|item| match item.topic {
        Topic::Offer(id) => (Some(id.uuid()), None, None),
        Topic::Order(id) => (None, Some(id.uuid()), None),
        Topic::Application(id) => (None, None, Some(id.uuid())),
    });
    let (offers, orders, applications): (Vec<_>, Vec<_>, Vec<_>) = topics.collect();
    let (amounts, pieces, statuses) = columns(items.iter().map(|item| item.detail));
    let insert = ADD_TO_FEED.bind((
        column(items, |item| item.seller.uuid()),
        column(items, |item| item.at),
        column(items, |item| item.kind.as_str()),
        offers,
        orders,
        applications,
        amounts,
        pieces,
        statuses,
    ));
    changing("changes", items.len(), insert)
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

/// Announces a seller's events; sets `woken` if a delivery queue was woken.
fn announce(seller: SellerId, events: Vec<Announced>, woken: Arc<AtomicBool>) -> Write {
    Box::new(move |mut connection| {
        Box::pin(async move {
            let bodies = events
                .iter()
                .map(|announced| announced.event.body_without_ids(announced.occurred_at));
            let bodies = bodies
                .collect::<Result<Vec<_>, _>>()
                .map_err(StoreError::unexpected)?;
            let subjects = column(&events, |announced| journal::subject(&announced.event));
            let announce = ANNOUNCE.bind((
                seller.uuid(),
                column(&events, |announced| announced.event.name.as_str()),
                bodies,
                column(&events, |announced| announced.at),
                column(&events, |announced| announced.occurred_at),
                column(&subjects, |(order, _, _)| *order),
                column(&subjects, |(_, number, _)| *number),
                column(&subjects, |(_, _, offer)| *offer),
            ));
            // The number of woken queues says nothing about the number of deliveries: both may be zero.
            let queues = announce.execute(&mut connection).await.map_err(store_error)?;
            woken.fetch_or(queues > 0, Ordering::Relaxed);
            Ok(())
        })
    })
}
