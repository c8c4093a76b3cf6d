//! The deliveries of a webhook subscription, and deliveries that its application asks for.

use actix_web::http::StatusCode;
use oauth::Scope;
use usecases::Transaction;
use usecases::redeliver::{RedeliveryRefusal, Requester, redeliver, send_test_event};
use web::decode::{Shape, object};
use web::openapi::{Docs, JsonBody};
use web::operation::{Call, Incoming, Read, Write};
use web::query::Selection;
use web::reply::Reply;
use web::schema::{Node, array, date_time, integer, string, uuid};
use web::timestamps::Timestamp;
use web::view::View;
use web::{Code, Entry, Error, MapRefusal, Problem, Violations};
use webhooks::{
    Attempted, Delivery, DeliveryId, FailureKind, MAX_ATTEMPTS, Outcome, SubscriptionId, WebhookEvent,
};

use crate::Public;
use crate::documents::{docs, example, examples};
use crate::webhooks::{event, inactive, one_event};

/// Declares a view of deliveries: with the fields that all of them have, and more.
macro_rules! delivery_view {
    ($(#[$doc:meta])* $view:ident of $delivery:ident, named $title:literal, $description:literal { $($more:tt)* }) => {
        web::view! {
            $(#[$doc])*
            $view<'a> of $delivery: &'a Delivery, named $title, $description {
                "id": uuid().describe("The id of the delivery, as in `X-Delivery-Id`.") => $delivery.id.uuid(),
                "event": event() => $delivery.event.as_str(),
                "attempt": integer(0, MAX_ATTEMPTS.into()).describe("Attempts made; 0 before the first.")
                    => $delivery.state.attempt(),
                "response_status": integer(100, 999).or_null().describe("The HTTP status of the last attempt's response, if there was one.")
                    => $delivery.last().and_then(Attempted::response_status),
                "duration_ms": integer(0, i32::MAX.into()).or_null().describe("Duration of the last attempt in milliseconds.")
                    => $delivery.last().map(Attempted::duration_ms),
                "delivered_at": date_time().or_null() => $delivery.state.delivered_at().map(Timestamp::new),
                "next_retry_at": date_time().or_null()
                    .describe("`null` while the first attempt is queued (`attempt` is 0), once it is delivered, once it is given up (`attempt` is 6), \
                        and once it is stopped, since the seller disconnected the application.")
                    => $delivery.state.next_retry_at().map(Timestamp::new),
                "created_at": date_time() => Timestamp::new($delivery.created_at),
                "failure": failure().or_null() => $delivery.outcome().and_then(Outcome::failure).map(FailureKind::as_str),
                "order_id": uuid().or_null().describe("The order that the event is about.") => $delivery.about().order_id,
                "offer_id": uuid().or_null().describe("The offer that the event is about.") => $delivery.about().offer_id,
                $($more)*
            }
        }
    };
}

delivery_view! {
    /// A delivery with the selected fields.
    DeliveryView of delivery, named "WebhookDelivery", "The delivery of an event to a subscription." {}
}

delivery_view! {
    /// The same with its body.
    DeliveryWithBodyView of delivery, named "WebhookDeliveryWithBody", "The delivery of an event to a subscription, with its body." {
        "body": string().describe("The body as sent, the same at every attempt.") => String::from_utf8_lossy(&delivery.body),
    }
}

/// Contract: `failure` of `WebhookDelivery`.
fn failure() -> Node {
    string()
        .one_of(FailureKind::ALL.map(FailureKind::as_str))
        .describe(
            "Why the last attempt failed; `null` if it did not, or there was none. `address`: the host does not resolve, or not to public \
             addresses only; `protocol`: no valid HTTP, or closed early; `status`: another status than 2xx; `sender_lost`: the sender was \
             lost, also where that attempt does not count. Further values may be added.",
        )
        .extensible()
        .named("WebhookDeliveryFailure")
}

/// Lists the latest deliveries of one of the application's subscriptions, newest first (D58).
pub(crate) struct ListDeliveries(SubscriptionId);

impl Read<Public> for ListDeliveries {
    const SCOPE: &'static [Scope] = &[Scope::SettingsRead];
    const FIELDS: &'static [&'static str] = DeliveryView::FIELDS;
    const DOCS: Option<&'static Docs> = Some(&Docs {
        response: Some(JsonBody::new(DeliveryList::schema, || {
            Node::of([("items", vec![example!("delivery")()].into())])
        })),
        ..docs!("listWebhookDeliveries", "Webhooks")
    });

    fn decode(incoming: &Incoming<'_>, _: &Call<Public>) -> Result<Option<Self>, Violations> {
        Ok(incoming.id(0).map(Self))
    }

    async fn execute(self, call: Call<Public>) -> Result<Reply, Error> {
        let (subscriptions, caller) = (&call.state.subscriptions, &call.caller);
        let history = subscriptions.history(caller.seller, caller.client_id, self.0);
        let history = history.await?.ok_or_else(Problem::not_found)?;
        Reply::ok(&DeliveryList::whole((&history, call.fields)))
    }
}

web::view! {
    DeliveryList<'a> of (history, fields): (&'a [Delivery], Selection), named "WebhookDeliveryList" {
        "items": array(DeliveryView::schema())
            => history.iter().map(|delivery| DeliveryView::new(delivery, *fields)).collect::<Vec<_>>(),
    }
}

/// Reads a delivery of one of the application's subscriptions, with its body.
pub(crate) struct ReadDelivery {
    id: SubscriptionId,
    delivery: DeliveryId,
}

impl Read<Public> for ReadDelivery {
    const SCOPE: &'static [Scope] = &[Scope::SettingsRead];
    const FIELDS: &'static [&'static str] = DeliveryWithBodyView::FIELDS;
    const DOCS: Option<&'static Docs> = Some(&Docs {
        response: Some(JsonBody::new(DeliveryWithBodyView::schema, || {
            example!("delivery")().with("body", examples::DELIVERY_BODY)
        })),
        ..docs!("getWebhookDelivery", "Webhooks")
    });

    fn decode(incoming: &Incoming<'_>, _: &Call<Public>) -> Result<Option<Self>, Violations> {
        let ids = incoming.id(0).zip(incoming.id(1));
        Ok(ids.map(|(id, delivery)| Self { id, delivery }))
    }

    async fn execute(self, call: Call<Public>) -> Result<Reply, Error> {
        let (subscriptions, caller) = (&call.state.subscriptions, &call.caller);
        let found = subscriptions.delivery(caller.seller, caller.client_id, self.id, self.delivery);
        let found = found.await?.ok_or_else(Problem::not_found)?;
        Reply::ok(&DeliveryWithBodyView::new(&found, call.fields))
    }
}

/// Queues a sample event for one of the application's subscriptions.
pub(crate) struct TestWebhook {
    id: SubscriptionId,
    event: Option<WebhookEvent>,
}

impl Write<Public> for TestWebhook {
    const SCOPE: &'static [Scope] = &[Scope::SettingsWrite];
    const FIELDS: &'static [&'static str] = DeliveryView::FIELDS;
    const DOCS: Option<&'static Docs> = Some(&Docs {
        body: Some(JsonBody::new(
            || new_test_event().schema(),
            example!("new_test_event"),
        )),
        is_body_optional: true,
        status: StatusCode::CREATED,
        response: Some(JsonBody::new(DeliveryView::schema, example!("queued_delivery"))),
        refusals: &[inactive],
        ..docs!("testWebhook", "Webhooks")
    });

    fn decode(incoming: &Incoming<'_>, _: &Call<Public>) -> Result<Option<Self>, Violations> {
        let event = incoming.optional_json(&new_test_event())?.flatten();
        Ok(incoming.id(0).map(|id| Self { id, event }))
    }

    async fn apply(&self, call: &Call<Public>, tx: &dyn Transaction) -> Result<Reply, Error> {
        let (by, randomness) = (requester(call), call.state.ports.randomness.as_ref());
        let queued = send_test_event(tx, tx, randomness, by, self.id, self.event, tx.now()).await;
        Reply::created(&DeliveryView::new(&queued.map_refusal(problem)?, call.fields))
    }
}

fn new_test_event() -> impl Shape<Value = Option<WebhookEvent>> {
    object!(event: optional(one_event(true)) => event).named("NewTestEvent")
}

/// Queues a delivery of one of the application's subscriptions again. The body is empty, or `{}`.
pub(crate) struct Redeliver {
    id: SubscriptionId,
    delivery: DeliveryId,
}

impl Write<Public> for Redeliver {
    const SCOPE: &'static [Scope] = &[Scope::SettingsWrite];
    const FIELDS: &'static [&'static str] = DeliveryView::FIELDS;
    const DOCS: Option<&'static Docs> = Some(&Docs {
        response: Some(JsonBody::new(DeliveryView::schema, example!("queued_delivery"))),
        refusals: &[under_way, inactive],
        ..docs!("redeliverWebhookDelivery", "Webhooks")
    });

    fn decode(incoming: &Incoming<'_>, _: &Call<Public>) -> Result<Option<Self>, Violations> {
        incoming.no_body()?;
        let ids = incoming.id(0).zip(incoming.id(1));
        Ok(ids.map(|(id, delivery)| Self { id, delivery }))
    }

    async fn apply(&self, call: &Call<Public>, tx: &dyn Transaction) -> Result<Reply, Error> {
        let queued = redeliver(tx, tx, requester(call), (self.id, self.delivery), tx.now()).await;
        Reply::ok(&DeliveryView::new(&queued.map_refusal(problem)?, call.fields))
    }
}

fn requester(call: &Call<Public>) -> Requester {
    Requester::Application(call.caller.seller, call.caller.client_id)
}

fn problem(refusal: RedeliveryRefusal) -> Problem {
    match refusal {
        RedeliveryRefusal::NotFound => Problem::not_found(),
        RedeliveryRefusal::NotSubscribed => {
            Entry::validation("event", "Must be one of the subscription's events.").into()
        }
        RedeliveryRefusal::Inactive => inactive(),
        RedeliveryRefusal::UnderWay => under_way(),
        RedeliveryRefusal::TooMany(quota) => {
            let (limit, seconds) = (quota.limit, quota.retry_after());
            let message =
                format!("Rate limit of this subscription reached: {limit} a minute. Retry in {seconds} s.");
            Problem::new(Code::RateLimited, message).retry_after(seconds)
        }
    }
}

fn under_way() -> Problem {
    let message = "An attempt of this delivery is under way. Send the request again once it has ended.";
    Problem::new(Code::DeliveryInProgress, message)
}
