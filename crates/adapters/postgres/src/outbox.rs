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
use uuid::{NoContext, Timestamp, Uuid};
use webhooks::{Event, EventId};

use crate::connection::error::store_error;
use crate::journal;
use crate::sql::column;
use crate::statement::statements;
use crate::unit_of_work::{Write, changing, checked};

statements! {
    "outbox.sql";
    ADD_TO_FEED: (
        Array<SqlUuid>, Array<Timestamptz>, Array<Text>, Array<Nullable<SqlUuid>>, Array<Nullable<SqlUuid>>,
        Array<Nullable<SqlUuid>>, Array<Nullable<BigInt>>, Array<Nullable<Integer>>, Array<Nullable<Text>>
    );
    FAN_OUT: (SqlUuid, Array<Text>, Array<Binary>, Array<Timestamptz>);
    ANNOUNCE: (
        Array<SqlUuid>, Array<BigInt>, Array<SqlUuid>, Array<SqlUuid>, Array<Text>, Array<Timestamptz>,
        Array<Nullable<SqlUuid>>, Array<Nullable<Text>>, Array<Nullable<SqlUuid>>, Array<BigInt>, Timestamptz, Timestamptz
    );
}

/// What a transaction announces at its end.
#[derive(Default)]
pub(crate) struct Outbox {
    feed: Vec<ChangeItem>,
    /// By seller: delivery queues are locked in this order.
    events: BTreeMap<SellerId, Vec<Announced>>,
}

/// An event, when it was caused, and when it occurred.
struct Announced {
    id: EventId,
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
                    id: event_id(announced.at),
                    event,
                    at: announced.at,
                    occurred_at: announced.occurred_at,
                });
            }
        }
    }

    /// The statements that write the announcements. The last sets `woken` if it wakes a delivery queue.
    ///
    /// It also locks the journals, for which all orders of their sellers wait: by then all deliveries are written,
    /// however many subscriptions one of the sellers has.
    pub(crate) fn into_writes(self, woken: &Arc<AtomicBool>) -> Vec<Write> {
        let mut writes = Vec::with_capacity(self.events.len() + 2);
        if !self.feed.is_empty() {
            writes.push(add_to_feed(&self.feed));
        }
        writes.extend(
            self.events
                .iter()
                .map(|(seller, events)| fan_out(*seller, events)),
        );
        if !self.events.is_empty() {
            writes.push(announce(&self.events, Arc::clone(woken)));
        }
        writes
    }
}

/// A new id of an event that was caused at this time: a UUIDv7.
#[expect(
    clippy::disallowed_methods,
    reason = "the transaction's time is given; `api_uuid` makes those of deliveries likewise"
)]
pub(crate) fn event_id(at: DateTime<Utc>) -> EventId {
    let seconds = u64::try_from(at.timestamp()).unwrap_or_default();
    let time = Timestamp::from_unix(NoContext, seconds, at.timestamp_subsec_nanos());
    Uuid::new_v7(time).into()
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

/// Queues the deliveries of a seller's events.
fn fan_out(seller: SellerId, events: &[Announced]) -> Write {
    let bodies = events.iter();
    let bodies = bodies.map(|announced| {
        announced
            .event
            .body_without_id(announced.id, announced.occurred_at)
    });
    let bodies = bodies.collect::<Result<Vec<_>, _>>();
    let names = column(events, |announced| announced.event.name.as_str());
    let times = column(events, |announced| announced.at);
    Box::new(move |mut connection| {
        Box::pin(async move {
            let bodies = bodies.map_err(StoreError::unexpected)?;
            let fan_out = FAN_OUT.bind((seller.uuid(), names, bodies, times));
            fan_out
                .execute(&mut connection)
                .await
                .map_err(store_error)
                .map(drop)
        })
    })
}

/// Announces the events to their sellers and to the workers; sets `woken` if a delivery queue was woken.
fn announce(by_seller: &BTreeMap<SellerId, Vec<Announced>>, woken: Arc<AtomicBool>) -> Write {
    let counts = by_seller
        .values()
        .map(|events| i64::try_from(events.len()).unwrap_or(i64::MAX));
    let events = by_seller.iter().flat_map(|(seller, events)| {
        let events = events.iter().rev().zip(0_i64..);
        events.map(|(announced, following)| (seller.uuid(), announced, following))
    });
    let events: Vec<_> = events.collect();
    let times = events.iter().map(|(_, announced, _)| announced.at);
    let subjects = column(&events, |(_, announced, _)| journal::subject(&announced.event));
    let announce = ANNOUNCE.bind((
        by_seller.keys().map(|seller| seller.uuid()).collect::<Vec<_>>(),
        counts.collect::<Vec<_>>(),
        column(&events, |(seller, _, _)| *seller),
        column(&events, |(_, announced, _)| announced.id.uuid()),
        column(&events, |(_, announced, _)| announced.event.name.as_str()),
        column(&events, |(_, announced, _)| announced.occurred_at),
        column(&subjects, |(order, _, _)| *order),
        column(&subjects, |(_, number, _)| number.map(str::to_owned)),
        column(&subjects, |(_, _, offer)| *offer),
        column(&events, |(_, _, following)| *following),
        times.clone().min().unwrap_or_default(),
        times.max().unwrap_or_default(),
    ));
    checked(announce, move |queues| {
        woken.fetch_or(queues > 0, Ordering::Relaxed);
        Ok(())
    })
}
