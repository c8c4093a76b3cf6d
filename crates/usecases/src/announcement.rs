//! The announcement of a change: an item of the marketplace's change feed, an event for webhook subscribers,
//! both or neither. A store writes it in the transaction of the change: it takes changes with their
//! announcements, as one value.

use changes::ChangeItem;
use chrono::{DateTime, Utc};
use kernel::{Change, SellerId};
use oauth::{Application, ApplicationEvent};
use offers::{Offer, OfferEvent};
use orders::{OrderEvent, OrderEventKind, SellerOrder};
use webhooks::{Event, Subject, WebhookEvent};

/// The announcement of one event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Announcement {
    /// The seller that it concerns.
    pub seller: SellerId,
    /// For the marketplace's change feed.
    pub item: Option<ChangeItem>,
    /// For the seller's journal and webhook subscribers.
    pub event: Option<Event>,
    pub at: DateTime<Utc>,
    /// When the event occurred: a carrier may report a delivery later.
    pub occurred_at: DateTime<Utc>,
}

impl Announcement {
    /// The change of an offer with its announcements.
    pub fn of_offer(change: Change<Offer, OfferEvent>, at: DateTime<Utc>) -> Change<Offer, Self> {
        let (seller, offer) = (change.after.seller, change.after.id);
        let rejected = || {
            let offer_id = offer.uuid();
            Event::recorded(seller, WebhookEvent::OfferRejected, Subject::Offer { offer_id })
        };
        change.map_events(|event| Self {
            seller,
            item: ChangeItem::of_offer(seller, offer, event, at),
            event: (event == OfferEvent::Rejected).then(rejected),
            at,
            occurred_at: at,
        })
    }

    /// The change of a part with its announcements. Subscribers have the events that they know by the same name.
    pub fn of_order(change: Change<SellerOrder, OrderEvent>, at: DateTime<Utc>) -> Change<SellerOrder, Self> {
        let (seller, order) = (change.after.seller, change.after.id);
        let (shipped_at, delivered_at) = (change.after.shipped_at(), change.after.delivered_at());
        let about = Subject::Order {
            order_id: order.uuid(),
            order_number: change.after.number.as_str().to_owned(),
        };
        change.map_events(|event| Self {
            seller,
            item: ChangeItem::of_order(seller, order, event, at),
            occurred_at: match event.kind {
                OrderEventKind::Shipped => shipped_at,
                OrderEventKind::Delivered => delivered_at,
                _ => None,
            }
            .unwrap_or(at),
            event: WebhookEvent::parse(event.kind.as_str())
                .map(|name| Event::recorded(seller, name, about.clone())),
            at,
        })
    }

    /// The change of an application with its announcements.
    pub fn of_application(
        change: Change<Application, ApplicationEvent>,
        at: DateTime<Utc>,
    ) -> Change<Application, Self> {
        let (seller, client_id) = (change.after.owner, change.after.client_id);
        change.map_events(|event| Self {
            seller,
            item: ChangeItem::of_application(seller, client_id, event, at),
            event: None,
            at,
            occurred_at: at,
        })
    }
}

#[cfg(test)]
mod tests {
    use offers::OfferStatus;
    use orders::Cause;
    use uuid::Uuid;

    use super::*;
    use crate::test_support::{self, application, by, now};

    /// To the marketplace, to the subscribers.
    fn receivers<A>(change: &Change<A, Announcement>) -> (bool, bool) {
        let [announced] = change.events.as_slice() else {
            panic!("{:?}", change.events)
        };
        assert_eq!((announced.seller, announced.at), (by().seller, now()));
        (announced.item.is_some(), announced.event.is_some())
    }

    #[test]
    fn each_event_is_announced_to_the_marketplace_the_subscribers_or_both() {
        let offer = Uuid::from_u128(2).into();
        let of_offer = |event| {
            let offer = test_support::offer(by().seller, offer);
            Announcement::of_offer(Change::of_existing(offer, vec![event]), now())
        };
        let of_order = |kind, cause| {
            let part = test_support::part(1, 1);
            let event = OrderEvent { kind, cause };
            Announcement::of_order(Change::of_existing(part, vec![event]), now())
        };
        let names = OrderEventKind::ALL.map(|kind| {
            let announced = of_order(kind, Cause::Marketplace).events.pop().unwrap();
            announced.event.map(|event| event.name)
        });
        let of_orders = [
            Some(WebhookEvent::OrderCreated),
            Some(WebhookEvent::OrderPaid),
            Some(WebhookEvent::OrderShipped),
            Some(WebhookEvent::OrderDelivered),
            Some(WebhookEvent::OrderCancelled),
            None,
        ];
        assert_eq!(names, of_orders);
        let registered = Change::created(application(), vec![ApplicationEvent::Registered]);
        let status = OfferStatus::Draft;
        for (found, expected) in [
            (
                receivers(&of_offer(OfferEvent::StatusChanged(status))),
                (true, false),
            ),
            (receivers(&of_offer(OfferEvent::Rejected)), (false, true)),
            (
                receivers(&of_order(OrderEventKind::Shipped, Cause::Seller)),
                (true, true),
            ),
            (
                receivers(&of_order(OrderEventKind::Shipped, Cause::Marketplace)),
                (false, true),
            ),
            (
                receivers(&of_order(OrderEventKind::ShipmentCorrected, Cause::Seller)),
                (true, false),
            ),
            (
                receivers(&Announcement::of_application(registered, now())),
                (true, false),
            ),
        ] {
            assert_eq!(found, expected);
        }
    }
}
