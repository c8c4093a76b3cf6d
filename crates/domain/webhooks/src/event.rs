//! The events that an integrator can subscribe to, and the body of a delivery (contract: Events).

use chrono::{DateTime, SecondsFormat, Utc};
use kernel::SellerId;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

kernel::uuid_id! {
    /// A delivery: one event for one subscription, the same on every attempt.
    DeliveryId
}

kernel::uuid_id! {
    /// An event, the same for all its subscribers and in the journal.
    EventId
}

kernel::words! {
    /// The events that can be subscribed to.
    pub enum WebhookEvent {
        /// A buyer placed an order with the seller's item.
        OrderCreated = "order.created",
        /// The payment was booked.
        OrderPaid = "order.paid",
        OrderShipped = "order.shipped",
        OrderDelivered = "order.delivered",
        OrderCancelled = "order.cancelled",
        /// Moderation rejected an offer.
        OfferRejected = "offer.rejected",
        /// The seller's connection with the application ended, and so did the subscription: this is its last delivery.
        ConnectionEnded = "connection.ended",
    }
}

/// The order number of a sample.
const SAMPLE_NUMBER: &str = "TEST";
/// A connection has ended: the seller disconnected the application, or the seller's account was closed.
const DISCONNECTED: Subject = Subject::Connection {
    reason: "disconnected",
};

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
    about: Subject,
    seller_id: Uuid,
    /// True in a sample alone, absent otherwise.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    test: bool,
}

/// What an event is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Subject {
    Order {
        order_id: Uuid,
        order_number: String,
    },
    Offer {
        offer_id: Uuid,
    },
    /// No journal has it: nobody could read it there.
    Connection {
        reason: &'static str,
    },
}

/// The subject of a stored delivery, as read from its body: an order, an offer, or neither.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
pub struct About {
    pub order_id: Option<String>,
    pub order_number: Option<String>,
    pub offer_id: Option<String>,
    /// Whether it is a sample.
    #[serde(default)]
    pub test: bool,
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

/// The body of a delivery.
#[derive(Serialize)]
struct Body<D> {
    /// First: see [`Event::body_without_id`].
    id: Uuid,
    event: &'static str,
    occurred_at: String,
    data: D,
}

impl Event {
    /// The last event of a subscription that ended with the seller's connection.
    pub const fn of_ended_connection(seller: SellerId) -> Self {
        Self::recorded(seller, WebhookEvent::ConnectionEnded, DISCONNECTED)
    }

    /// A sample event about a nonexistent thing, for testing a receiver. `id` is used as the order's or
    /// offer's id.
    pub fn sample(seller: SellerId, name: WebhookEvent, id: Uuid) -> Self {
        let about = match name {
            WebhookEvent::OrderCreated
            | WebhookEvent::OrderPaid
            | WebhookEvent::OrderShipped
            | WebhookEvent::OrderDelivered
            | WebhookEvent::OrderCancelled => Subject::Order {
                order_id: id,
                order_number: SAMPLE_NUMBER.to_owned(),
            },
            WebhookEvent::OfferRejected => Subject::Offer { offer_id: id },
            WebhookEvent::ConnectionEnded => DISCONNECTED,
        };
        let mut sample = Self::recorded(seller, name, about);
        sample.data.test = true;
        sample
    }

    /// The event of this name and subject.
    pub const fn recorded(seller: SellerId, name: WebhookEvent, about: Subject) -> Self {
        let data = Data {
            about,
            seller_id: seller.uuid(),
            test: false,
        };
        Self { name, data }
    }

    pub const fn subject(&self) -> &Subject {
        &self.data.about
    }

    /// The body of a delivery: built once, so that every attempt sends the same bytes with the same
    /// signature.
    pub fn body(
        &self,
        id: DeliveryId,
        event: EventId,
        occurred_at: DateTime<Utc>,
    ) -> Result<Vec<u8>, serde_json::Error> {
        serde_json::to_vec(&Body {
            id: id.uuid(),
            event: self.name.as_str(),
            occurred_at: occurred_at.to_rfc3339_opts(SecondsFormat::Micros, true),
            data: self.data(event),
        })
    }

    /// A body with a nil id, for statements that make the delivery's and put it there, from the 8th byte on.
    pub fn body_without_id(
        &self,
        event: EventId,
        occurred_at: DateTime<Utc>,
    ) -> Result<Vec<u8>, serde_json::Error> {
        self.body(Uuid::nil().into(), event, occurred_at)
    }

    /// The event's `data`, as in the body of a delivery.
    pub fn data(&self, id: EventId) -> impl Serialize + use<'_> {
        #[derive(Serialize)]
        struct WithId<'a> {
            #[serde(flatten)]
            data: &'a Data,
            event_id: Uuid,
        }
        WithId {
            data: &self.data,
            event_id: id.uuid(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_match_the_contract() {
        let about = Subject::Order {
            order_id: Uuid::nil(),
            order_number: "A-1".to_owned(),
        };
        let (nil, max, at) = (Uuid::nil(), Uuid::max(), DateTime::<Utc>::UNIX_EPOCH);
        let event = Event::recorded(max.into(), WebhookEvent::OrderPaid, about);
        let body = event.body(nil.into(), max.into(), at).unwrap();
        let expected = format!(
            r#"{{"id":"{nil}","event":"order.paid","occurred_at":"1970-01-01T00:00:00.000000Z","data":{{"order_id":"{nil}","order_number":"A-1","seller_id":"{max}","event_id":"{max}"}}}}"#
        );
        assert!(!About::of(&body).test);
        assert_eq!(String::from_utf8(body).unwrap(), expected);
        let without = event.body_without_id(max.into(), at).unwrap();
        assert_eq!(without.get(7..7 + 36), Some(nil.to_string().as_bytes()));
    }

    #[test]
    fn a_sample_of_any_kind_says_that_it_is_one() {
        for name in WebhookEvent::ALL {
            let (delivery, id) = (Uuid::nil().into(), Uuid::max().into());
            let event = Event::sample(Uuid::nil().into(), name, Uuid::max());
            let body = event.body(delivery, id, DateTime::<Utc>::UNIX_EPOCH);
            let about = About::of(body.as_ref().unwrap());
            let body: serde_json::Value = serde_json::from_slice(&body.unwrap()).unwrap();
            assert_eq!(body["data"]["test"], true, "{body}");
            assert_eq!(body["data"], serde_json::to_value(event.data(id)).unwrap());
            let (id, number) = (Some(Uuid::max().to_string()), Some("TEST".to_owned()));
            let (order_id, order_number, offer_id) = match name {
                WebhookEvent::OfferRejected => (None, None, id),
                WebhookEvent::ConnectionEnded => (None, None, None),
                _ => (id, number, None),
            };
            let expected = About {
                order_id,
                order_number,
                offer_id,
                test: true,
            };
            assert_eq!(about, expected);
        }
        assert_eq!(About::of(b"x"), About::default());
    }
}
