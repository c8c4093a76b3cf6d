//! The events that an integrator can subscribe to, and the body of a delivery (contract: Events).

use chrono::{DateTime, SecondsFormat, Utc};
use kernel::SellerId;
use offers::OfferEvent;
use orders::{OrderEvent, OrderEventKind};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

kernel::uuid_id! {
    /// A delivery: one event for one subscription, the same on every attempt.
    DeliveryId
}

kernel::words! {
    /// The events that can be subscribed to.
    pub enum WebhookEvent {
        /// A buyer placed an order with the seller's item.
        OrderCreated = "order.created",
        /// The payment was booked.
        OrderPaid = "order.paid",
        /// The order was shipped.
        OrderShipped = "order.shipped",
        /// The order was delivered.
        OrderDelivered = "order.delivered",
        /// The order was cancelled.
        OrderCancelled = "order.cancelled",
        /// Moderation rejected an offer.
        OfferRejected = "offer.rejected",
    }
}

/// The beginning of every body.
const BEFORE_ID: &[u8] = br#"{"id":""#;
/// The order number of a sample.
const SAMPLE_NUMBER: &str = "TEST";

/// An event for subscribers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    pub name: WebhookEvent,
    data: Data,
}

/// The thin body of an event: only ids, never personal data.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Data {
    #[serde(flatten)]
    about: Thing,
    seller_id: Uuid,
    /// True in a sample alone, absent otherwise.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    test: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
enum Thing {
    Order { order_id: String, order_number: String },
    Offer { offer_id: String },
}

/// What an event is about: an order or an offer.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
pub struct About {
    pub order_id: Option<String>,
    pub offer_id: Option<String>,
}

impl About {
    /// Reads it from the body of a delivery.
    pub(crate) fn of(body: &[u8]) -> Self {
        #[derive(Deserialize)]
        struct Body {
            data: About,
        }
        serde_json::from_slice(body).map_or_else(|_| Self::default(), |Body { data }| data)
    }
}

#[derive(Serialize)]
struct Rest<'a> {
    event: &'static str,
    occurred_at: String,
    data: &'a Data,
}

impl Event {
    /// The subscribers' event of an order's transition; a correction has none.
    pub fn of_order(seller: SellerId, event: &OrderEvent) -> Option<Self> {
        let name = match event.kind {
            OrderEventKind::Created => WebhookEvent::OrderCreated,
            OrderEventKind::Paid => WebhookEvent::OrderPaid,
            OrderEventKind::Shipped => WebhookEvent::OrderShipped,
            OrderEventKind::Delivered => WebhookEvent::OrderDelivered,
            OrderEventKind::Cancelled => WebhookEvent::OrderCancelled,
            OrderEventKind::ShipmentCorrected => return None,
        };
        let about = Thing::Order {
            order_id: event.order.to_string(),
            order_number: event.number.as_str().to_owned(),
        };
        let data = Data {
            about,
            seller_id: seller.uuid(),
            test: false,
        };
        Some(Self { name, data })
    }

    /// The subscribers' event of an offer's change; only a rejection has one.
    pub fn of_offer(seller: SellerId, event: &OfferEvent) -> Option<Self> {
        match event {
            OfferEvent::Rejected { offer } => Some(Self {
                name: WebhookEvent::OfferRejected,
                data: Data {
                    about: Thing::Offer {
                        offer_id: offer.to_string(),
                    },
                    seller_id: seller.uuid(),
                    test: false,
                },
            }),
            OfferEvent::PriceChanged { .. }
            | OfferEvent::StockChanged { .. }
            | OfferEvent::StatusChanged { .. } => None,
        }
    }

    /// A sample event about a nonexistent thing, for testing a receiver. `id` is used as the order's or
    /// offer's id.
    pub fn sample(seller: SellerId, name: WebhookEvent, id: Uuid) -> Self {
        let about = match name {
            WebhookEvent::OrderCreated
            | WebhookEvent::OrderPaid
            | WebhookEvent::OrderShipped
            | WebhookEvent::OrderDelivered
            | WebhookEvent::OrderCancelled => Thing::Order {
                order_id: id.to_string(),
                order_number: SAMPLE_NUMBER.to_owned(),
            },
            WebhookEvent::OfferRejected => Thing::Offer {
                offer_id: id.to_string(),
            },
        };
        let data = Data {
            about,
            seller_id: seller.uuid(),
            test: true,
        };
        Self { name, data }
    }

    /// The body of a delivery: built once, so that every attempt sends the same bytes with the same
    /// signature.
    pub fn body(&self, id: DeliveryId, occurred_at: DateTime<Utc>) -> Result<Vec<u8>, serde_json::Error> {
        let (before, after) = self.around_id(occurred_at)?;
        Ok([before, id.to_string().into_bytes(), after].concat())
    }

    /// A body without its delivery's id: the bytes before and after the id. Used when many subscriptions'
    /// deliveries get their ids, and so their bodies, in one statement.
    pub fn around_id(&self, occurred_at: DateTime<Utc>) -> Result<(Vec<u8>, Vec<u8>), serde_json::Error> {
        let rest = serde_json::to_vec(&Rest {
            event: self.name.as_str(),
            occurred_at: occurred_at.to_rfc3339_opts(SecondsFormat::Micros, true),
            data: &self.data,
        })?;
        let members = rest.get(1..).unwrap_or_default();
        Ok((BEFORE_ID.to_vec(), [br#"","#, members].concat()))
    }
}

#[cfg(test)]
mod tests {
    use orders::{Cause, OrderNumber};

    use super::*;

    #[test]
    fn bodies_match_the_contract() {
        let number = OrderNumber::new("A-1".to_owned()).unwrap();
        let paid = OrderEvent {
            kind: OrderEventKind::Paid,
            order: Uuid::nil().into(),
            number,
            cause: Cause::Marketplace,
        };
        let body = Event::of_order(Uuid::max().into(), &paid)
            .unwrap()
            .body(Uuid::nil().into(), DateTime::<Utc>::UNIX_EPOCH)
            .unwrap();
        let (nil, max) = (Uuid::nil(), Uuid::max());
        let expected = format!(
            r#"{{"id":"{nil}","event":"order.paid","occurred_at":"1970-01-01T00:00:00.000000Z","data":{{"order_id":"{nil}","order_number":"A-1","seller_id":"{max}"}}}}"#
        );
        assert_eq!(String::from_utf8(body).unwrap(), expected);
    }

    #[test]
    fn a_sample_of_any_kind_says_that_it_is_one() {
        for name in WebhookEvent::ALL {
            let sample = Event::sample(Uuid::nil().into(), name, Uuid::max());
            let body = sample.body(Uuid::nil().into(), DateTime::<Utc>::UNIX_EPOCH);
            let about = About::of(body.as_ref().unwrap());
            let body: serde_json::Value = serde_json::from_slice(&body.unwrap()).unwrap();
            assert_eq!(body["data"]["test"], true, "{body}");
            let id = Some(Uuid::max().to_string());
            let (order_id, offer_id) = match name {
                WebhookEvent::OfferRejected => (None, id),
                _ => (id, None),
            };
            assert_eq!(about, About { order_id, offer_id });
        }
        assert_eq!(About::of(b"x"), About::default());
    }

    #[test]
    fn of_an_offers_events_only_a_rejection_is_announced() {
        let offer = Uuid::nil().into();
        let rejected = Event::of_offer(Uuid::nil().into(), &OfferEvent::Rejected { offer }).unwrap();
        assert_eq!(rejected.name, WebhookEvent::OfferRejected);
        let status = offers::OfferStatus::Draft;
        let changed = OfferEvent::StatusChanged { offer, status };
        assert_eq!(Event::of_offer(Uuid::nil().into(), &changed), None);
    }

    #[test]
    fn names_are_parsed_back() {
        for event in WebhookEvent::ALL {
            assert_eq!(WebhookEvent::parse(event.as_str()), Some(event));
        }
    }
}
