//! The announcement of a change: an item of the marketplace's change feed, an event for webhook subscribers, both or
//! neither. A store writes it in the transaction of the change.

use changes::ChangeItem;
use chrono::{DateTime, Utc};
use kernel::SellerId;
use oauth::ApplicationEvent;
use offers::OfferEvent;
use orders::OrderEvent;
use webhooks::Event;

/// The announcement of one event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Announcement {
    /// The seller that it concerns.
    pub seller: SellerId,
    /// For the marketplace's change feed.
    pub item: Option<ChangeItem>,
    /// For the seller's webhook subscribers.
    pub event: Option<Event>,
    pub at: DateTime<Utc>,
}

impl Announcement {
    pub fn of_offer(seller: SellerId, event: &OfferEvent, at: DateTime<Utc>) -> Self {
        Self {
            seller,
            item: ChangeItem::of_offer(seller, event, at),
            event: Event::of_offer(event),
            at,
        }
    }

    pub fn of_order(seller: SellerId, event: &OrderEvent, at: DateTime<Utc>) -> Self {
        Self {
            seller,
            item: ChangeItem::of_order(seller, event, at),
            event: Some(Event::of_order(event)),
            at,
        }
    }

    pub fn of_application(owner: SellerId, event: &ApplicationEvent, at: DateTime<Utc>) -> Self {
        Self {
            seller: owner,
            item: Some(ChangeItem::of_application(owner, event, at)),
            event: None,
            at,
        }
    }
}

#[cfg(test)]
mod tests {
    use kernel::OfferId;
    use offers::Stock;
    use orders::{Cause, OrderEventKind, OrderId, OrderNumber};
    use uuid::Uuid;

    use super::*;
    use crate::test_support::now;

    #[test]
    fn each_event_is_announced_to_the_marketplace_the_subscribers_or_both() {
        let seller = SellerId::from(Uuid::from_u128(1));
        let offer = OfferId::from(Uuid::from_u128(2));
        let stock = OfferEvent::StockChanged {
            offer,
            stock: Stock::new(3).unwrap(),
        };
        let order = |cause| OrderEvent {
            order: OrderId::from(Uuid::from_u128(4)),
            number: OrderNumber::new("A-1".to_owned()).unwrap(),
            kind: OrderEventKind::Shipped,
            cause,
        };
        let registered = ApplicationEvent::Registered {
            client_id: Uuid::from_u128(5).into(),
        };
        let rejected = OfferEvent::Rejected { offer };
        let of_offer = |event| Announcement::of_offer(seller, event, now());
        let of_order = |cause| Announcement::of_order(seller, &order(cause), now());
        let registered = Announcement::of_application(seller, &registered, now());
        for (announced, to_marketplace, to_subscribers) in [
            (of_offer(&stock), true, false),
            (of_offer(&rejected), false, true),
            (of_order(Cause::Seller), true, true),
            (of_order(Cause::Marketplace), false, true),
            (registered, true, false),
        ] {
            assert_eq!((announced.seller, announced.at), (seller, now()));
            let receivers = (announced.item.is_some(), announced.event.is_some());
            assert_eq!(receivers, (to_marketplace, to_subscribers), "{announced:?}");
        }
    }
}
