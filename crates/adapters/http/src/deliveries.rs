//! The deliveries of a webhook subscription.

use actix_web::http::{Method, StatusCode};
use oauth::Scope;
use web::openapi::{Docs, Parameter};
use web::operation::{Call, Incoming, Operation, Read};
use web::query::Selection;
use web::reply::Reply;
use web::schema::{Node, array, date_time, integer, string, uuid};
use web::timestamps::Timestamp;
use web::view::View;
use web::{Error, Problem, Violations};
use webhooks::{Attempted, Delivery, DeliveryId, FailureKind, MAX_ATTEMPTS, Outcome, SubscriptionId};

use crate::Public;
use crate::documents::{example, examples, prose};
use crate::page;
use crate::webhooks::event;

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
                    => $delivery.state.last().and_then(Attempted::response_status),
                "duration_ms": integer(0, i32::MAX.into()).or_null().describe("Duration of the last attempt in milliseconds.")
                    => $delivery.state.last().map(Attempted::duration_ms),
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
pub(crate) struct ListDeliveries {
    id: SubscriptionId,
    fields: Selection,
}

impl Operation<Public> for ListDeliveries {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/v1/webhooks/{id}/deliveries";
    const SCOPE: Option<Scope> = Some(Scope::SettingsRead);
    const QUERY: &'static [Parameter] = &[page::FIELDS];
    const FIELDS: &'static [&'static str] = DeliveryView::FIELDS;
    const DOCS: Option<&'static Docs> = Some(
        &Docs::new(
            "listWebhookDeliveries",
            "Webhooks",
            prose!("listWebhookDeliveries"),
        )
        .about("The subscription's id.", examples::WEBHOOK)
        .answers(StatusCode::OK, DeliveryList::schema, || {
            Node::of([("items", vec![example!("delivery")()].into())])
        }),
    );

    fn decode(incoming: &Incoming<'_>, _: &Call<Public>) -> Result<Option<Self>, Violations> {
        let fields = incoming.query(Self::QUERY, |query| query.fields(Self::FIELDS))?;
        Ok(incoming.id(0).map(|id| Self { id, fields }))
    }
}

impl Read<Public> for ListDeliveries {
    async fn execute(self, call: Call<Public>) -> Result<Reply, Error> {
        let (subscriptions, caller) = (&call.state.subscriptions, &call.caller);
        let history = subscriptions
            .history(caller.seller, caller.client_id, self.id)
            .await?;
        let history = history.ok_or_else(Problem::not_found)?;
        let expected = history.len().saturating_add(1).saturating_mul(420);
        Reply::json(
            StatusCode::OK,
            &DeliveryList::whole((&history, self.fields)),
            expected,
        )
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
    fields: Selection,
}

impl Operation<Public> for ReadDelivery {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/v1/webhooks/{id}/deliveries/{delivery_id}";
    const SCOPE: Option<Scope> = Some(Scope::SettingsRead);
    const QUERY: &'static [Parameter] = &[page::FIELDS];
    const FIELDS: &'static [&'static str] = DeliveryWithBodyView::FIELDS;
    const DOCS: Option<&'static Docs> = Some(
        &Docs::new(
            "getWebhookDelivery",
            "Webhooks",
            prose!("getWebhookDelivery"),
        )
        .about("The subscription's id.", examples::WEBHOOK)
        .and_about("delivery_id", "The delivery's id.", examples::DELIVERY)
        .answers(StatusCode::OK, DeliveryWithBodyView::schema, || {
            example!("delivery")().with("body", examples::DELIVERY_BODY)
        }),
    );

    fn decode(incoming: &Incoming<'_>, _: &Call<Public>) -> Result<Option<Self>, Violations> {
        let fields = incoming.query(Self::QUERY, |query| query.fields(Self::FIELDS))?;
        let ids = incoming.id(0).zip(incoming.id(1));
        Ok(ids.map(|(id, delivery)| Self { id, delivery, fields }))
    }
}

impl Read<Public> for ReadDelivery {
    async fn execute(self, call: Call<Public>) -> Result<Reply, Error> {
        let (subscriptions, caller) = (&call.state.subscriptions, &call.caller);
        let found = subscriptions
            .delivery(caller.seller, caller.client_id, self.id, self.delivery)
            .await?;
        let found = found.ok_or_else(Problem::not_found)?;
        Reply::ok(&DeliveryWithBodyView::new(&found, self.fields))
    }
}
