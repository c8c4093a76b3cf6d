//! What a transaction tells others: the marketplace by the change feed, subscribers by deliveries. Both are rows of the
//! transaction itself, so that nobody hears of what did not happen and nothing that happened is kept back.

mod fan_out;
mod feed_row;

use std::{
    collections::BTreeMap,
    sync::{Arc, atomic::AtomicBool},
};

use changes::ChangeItem;
use chrono::{DateTime, Utc};
use kernel::SellerId;
use oauth::ApplicationEvent;
use offers::OfferEvent;
use orders::OrderEvent;
use webhooks::Event;

use self::{fan_out::FanOut, feed_row::FeedRows};
use crate::pending::Write;

pub(crate) use feed_row::{FeedColumns, FeedRow, feed_columns};

/// What is told, by the seller whom it concerns. The order of sellers is the order in which their lanes are locked.
#[derive(Default)]
pub(crate) struct Outbox(BTreeMap<SellerId, News>);

#[derive(Default)]
struct News {
    feed: Vec<ChangeItem>,
    events: Vec<(Event, DateTime<Utc>)>,
}

impl Outbox {
    /// What an offer's change announces.
    pub(crate) fn offer(&mut self, seller: SellerId, event: &OfferEvent, at: DateTime<Utc>) {
        self.note(
            seller,
            ChangeItem::of_offer(seller, event, at),
            Event::of_offer(event),
            at,
        );
    }

    /// What an order's move announces.
    pub(crate) fn order(&mut self, seller: SellerId, event: &OrderEvent, at: DateTime<Utc>) {
        let told = Some(Event::of_order(event));
        self.note(seller, ChangeItem::of_order(seller, event, at), told, at);
    }

    /// What an application's change announces.
    pub(crate) fn application(&mut self, owner: SellerId, event: &ApplicationEvent, at: DateTime<Utc>) {
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

    /// The statements that tell it: none where there is nothing to tell. `woken` is set by those that wake a lane.
    pub(crate) fn into_writes(self, woken: &Arc<AtomicBool>) -> Vec<Box<dyn Write>> {
        let mut writes = Vec::<Box<dyn Write>>::new();
        for (seller, news) in self.0 {
            if !news.feed.is_empty() {
                writes.push(Box::new(FeedRows(news.feed)));
            }
            if !news.events.is_empty() {
                writes.push(Box::new(FanOut::new(seller, news.events, Arc::clone(woken))));
            }
        }
        writes
    }
}
