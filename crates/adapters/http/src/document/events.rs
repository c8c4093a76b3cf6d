//! The webhooks: what receivers get (contract: Events).

use chrono::{DateTime, Utc};
use uuid::Uuid;
use web::schema::{Map, Node, date_time, object, string, uuid};
use webhooks::{DeliveryId, Event, WebhookEvent};

use super::errors::capitalised;
use super::{example, json};
use crate::declared::Tag;

/// An id, in examples.
const EXAMPLE_ID: u128 = 0x0193_6d22_1f2e_7d3c_8b4a_5968_7786_9504;
/// An instant, in examples: seconds.
const EXAMPLE_INSTANT: i64 = 1_795_161_600;

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

/// A body as it is sent.
fn sample(event: WebhookEvent) -> Node {
    let id = Uuid::from_u128(EXAMPLE_ID);
    let at = DateTime::<Utc>::from_timestamp(EXAMPLE_INSTANT, 0).unwrap_or_default();
    let body = Event::sample(event, id)
        .body(DeliveryId::from(id), at)
        .unwrap_or_default();
    Node::parse(&String::from_utf8_lossy(&body))
}
