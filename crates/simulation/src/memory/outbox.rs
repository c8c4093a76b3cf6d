//! What a transaction tells others: the marketplace by the feed, subscribers by deliveries.

use std::collections::BTreeMap;

use ::offers::OfferEvent;
use ::orders::OrderEvent;
use changes::ChangeItem;
use chrono::{DateTime, Utc};
use kernel::{SellerId, StoreError};
use oauth::ApplicationEvent;
use webhooks::Event;

use super::{Database, TxId, fan_out::fan_out};

/// What is told, by the seller whom it concerns: the order in which lanes are locked.
#[derive(Debug, Default)]
pub(super) struct Outbox(BTreeMap<SellerId, News>);

#[derive(Debug, Default)]
struct News {
    feed: Vec<ChangeItem>,
    events: Vec<(Event, DateTime<Utc>)>,
}

impl Outbox {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn offer(&mut self, seller: SellerId, event: &OfferEvent, at: DateTime<Utc>) {
        self.note(
            seller,
            ChangeItem::of_offer(seller, event, at),
            Event::of_offer(event),
            at,
        );
    }

    pub(super) fn order(&mut self, seller: SellerId, event: &OrderEvent, at: DateTime<Utc>) {
        let told = Some(Event::of_order(event));
        self.note(seller, ChangeItem::of_order(seller, event, at), told, at);
    }

    pub(super) fn application(&mut self, owner: SellerId, event: &ApplicationEvent, at: DateTime<Utc>) {
        self.note(
            owner,
            Some(ChangeItem::of_application(owner, event, at)),
            None,
            at,
        );
    }

    fn note(&mut self, seller: SellerId, item: Option<ChangeItem>, event: Option<Event>, at: DateTime<Utc>) {
        if item.is_none() && event.is_none() {
            return;
        }
        let news = self.0.entry(seller).or_default();
        news.feed.extend(item);
        news.events.extend(event.map(|event| (event, at)));
    }
}

/// Tells it.
pub(super) async fn tell(database: &Database, tx: TxId, outbox: Outbox) -> Result<(), StoreError> {
    for (seller, news) in outbox.0 {
        database.at_once(|stored| {
            let xid = stored.writes_as(tx);
            for item in news.feed {
                let number = database.simulator().number();
                stored.tables.feed.put(tx, (xid, number), item);
            }
        });
        if !news.events.is_empty() {
            fan_out(database, tx, seller, &news.events).await?;
        }
    }
    Ok(())
}
