//! The webhooks: what receivers get (contract: Events).

use chrono::{DateTime, Utc};
use kernel::OfferId;
use offers::OfferEvent;
use orders::{Cause, OrderEvent, OrderEventKind, OrderId, OrderNumber};
use web::schema::{Map, Node, date_time, object, string, uuid};
use webhooks::{DeliveryId, Event, WebhookEvent};

use super::errors::capitalised;
use super::{example, examples, json};
use crate::declared::Tag;

/// Each event as a request to the receiver.
pub(super) fn webhooks() -> Node {
    let webhooks: Map = WebhookEvent::ALL
        .into_iter()
        .map(|event| (event.as_str().to_owned(), Node::of([("post", delivery(event))])))
        .collect();
    Node::Object(webhooks)
}

fn delivery(event: WebhookEvent) -> Node {
    let name = words(event);
    let body = Node::of([
        ("required", true.into()),
        ("content", json(payload(event, &name), example(sample(event)))),
    ]);
    let said = |description: &str| Node::of([("description", description.into())]);
    Node::of([
        ("operationId", format!("on{name}").into()),
        ("tags", vec![Tag::Events.name().into()].into()),
        ("summary", summary(event).into()),
        (
            "description",
            "Sent to every subscription to the event. Compute the signature over the bytes of the body as they came, compare it \
             in constant time, and answer with any 2xx: anything else, redirects among it, is tried again, six times in all \
             over about 14.5 hours, with the same body, signature and `X-Delivery-Id`. Events may come out of order and more \
             than once."
                .into(),
        ),
        ("security", Vec::new().into()),
        ("parameters", headers(event)),
        ("requestBody", body),
        (
            "responses",
            Node::of([
                ("2XX", said("Delivered.")),
                ("401", said("The signature is missing or wrong. Tried again.")),
                ("default", said("Tried again.")),
            ]),
        ),
    ])
}

fn headers(event: WebhookEvent) -> Node {
    let header = |name: &str, description: &str, schema: Node| {
        Node::of([
            ("name", name.into()),
            ("in", "header".into()),
            ("required", true.into()),
            ("description", description.into()),
            ("schema", schema),
        ])
    };
    let signature = string().with("pattern", "^sha256=[0-9a-f]{64}$");
    let agent = string().with("pattern", r"^[^ ]+-webhooks/1\.0 \(\+[^)]+\)$");
    vec![
        header(
            "X-Signature",
            "`sha256=` and the HMAC-SHA256 of the body's bytes in lowercase hexadecimal. The key is the subscription's secret, \
             prefix included.",
            signature,
        ),
        header("X-Event", "The event's name.", string().one_of([event.as_str()])),
        header("X-Delivery-Id", "The same on every attempt.", uuid()),
        header("User-Agent", "Who sends.", agent),
    ]
    .into()
}

fn payload(event: WebhookEvent, name: &str) -> Node {
    object(&[
        ("id", uuid().said("What `X-Delivery-Id` says.")),
        ("event", string().with("const", event.as_str())),
        ("occurred_at", date_time()),
        (
            "data",
            data(event).said("Ids alone, never personal data. More may be added."),
        ),
    ])
    .named(format!("{name}Event"))
}

fn data(event: WebhookEvent) -> Node {
    match event {
        WebhookEvent::OrderCreated
        | WebhookEvent::OrderPaid
        | WebhookEvent::OrderShipped
        | WebhookEvent::OrderDelivered
        | WebhookEvent::OrderCancelled => {
            object(&[("order_id", uuid()), ("order_number", string())]).named("OrderEventData")
        }
        WebhookEvent::OfferRejected => object(&[("offer_id", uuid())]).named("OfferEventData"),
    }
}

fn summary(event: WebhookEvent) -> &'static str {
    match event {
        WebhookEvent::OrderCreated => "A buyer placed an order; it is not paid yet",
        WebhookEvent::OrderPaid => "The payment was booked; buyer data can be read",
        WebhookEvent::OrderShipped => "The order is on its way",
        WebhookEvent::OrderDelivered => "The order has arrived",
        WebhookEvent::OrderCancelled => "The order was cancelled",
        WebhookEvent::OfferRejected => "Moderation rejected an offer",
    }
}

/// `order.created` as `OrderCreated`.
fn words(event: WebhookEvent) -> String {
    event.as_str().split('.').map(capitalised).collect()
}

/// A body as it is sent, of the order or the offer that all examples are about.
fn sample(event: WebhookEvent) -> Node {
    let (event, occurred_at) = happened(event);
    let occurred_at = occurred_at.parse::<DateTime<Utc>>().unwrap_or_default();
    let body = event.and_then(|event| event.body(DeliveryId::from(examples::DELIVERY), occurred_at).ok());
    Node::parse(&String::from_utf8_lossy(&body.unwrap_or_default()))
}

/// An event, and when it was: the order and its shipment have the same instants.
fn happened(event: WebhookEvent) -> (Option<Event>, &'static str) {
    let order = |kind| {
        Some(Event::of_order(&OrderEvent {
            kind,
            order: OrderId::from(examples::ORDER),
            number: OrderNumber::from_trusted(examples::ORDER_NUMBER.to_owned()),
            cause: Cause::Marketplace,
        }))
    };
    match event {
        WebhookEvent::OrderCreated => (order(OrderEventKind::Created), "2026-11-19T08:02:11.402917Z"),
        WebhookEvent::OrderPaid => (order(OrderEventKind::Paid), "2026-11-19T08:03:54.120008Z"),
        WebhookEvent::OrderShipped => (order(OrderEventKind::Shipped), "2026-11-19T10:15:30.000000Z"),
        WebhookEvent::OrderDelivered => (order(OrderEventKind::Delivered), "2026-11-21T13:47:02.551730Z"),
        WebhookEvent::OrderCancelled => (order(OrderEventKind::Cancelled), "2026-11-19T08:31:20.077345Z"),
        WebhookEvent::OfferRejected => {
            let rejected = OfferEvent::Rejected {
                offer: OfferId::from(examples::OFFER),
            };
            (Event::of_offer(&rejected), "2026-11-18T16:20:08.914226Z")
        }
    }
}
