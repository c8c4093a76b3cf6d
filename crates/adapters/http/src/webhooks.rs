//! Webhook subscriptions and the history of their deliveries.

use actix_web::http::{Method, StatusCode};
use oauth::Scope;
use usecases::Transaction;
use usecases::subscriptions::{
    LimitReached, NoSuchSubscription, SubscriptionRequest, create_subscription, delete_subscription,
};
use web::decode::{Shape, list, object, one_of, text};
use web::openapi::{Docs, Parameter};
use web::operation::{Call, Incoming, Operation, Read, Write};
use web::query::Selection;
use web::reply::Reply;
use web::schema::{Node, array, boolean, date_time, integer, string, uri, uuid};
use web::timestamps::Timestamp;
use web::view::View;
use web::{Code, Entry, Error, MapRefusal, Problem, Violations};
use webhooks::{
    AddressPolicy, Attempted, Delivery, HostRefused, MAX_ATTEMPTS, NewSubscription, Subscription,
    SubscriptionId, WebhookEvent, WebhookUrl,
};

use crate::Public;
use crate::documents::{example, examples, prose};
use crate::page;

/// The longest URL, in characters (D54).
const MAX_URL_LENGTH: i64 = 2048;

web::view! {
    /// A subscription with the selected fields.
    WebhookView<'a> of webhook: &'a Subscription, named "Webhook", "A subscription to events." {
        "id": uuid() => webhook.id.uuid(),
        "url": uri() => webhook.url.as_str(),
        "events": array(event()) => names(&webhook.events),
        "active": boolean().describe("False once the seller has disconnected the application.") => webhook.active,
        "created_at": date_time() => Timestamp::new(webhook.created_at),
    }
}

web::view! {
    /// A new subscription with its secret, which is never shown again.
    WebhookCreatedView<'a> of webhook: &'a NewSubscription, named "WebhookCreated",
        "A new subscription with its secret.", never without "secret"
    {
        "id": uuid() => webhook.id.uuid(),
        "url": uri() => webhook.url.as_str(),
        "events": array(event()) => names(&webhook.events),
        "active": boolean() => true,
        "created_at": date_time() => Timestamp::new(webhook.created_at),
        "secret": string().describe("The signing key, prefix included. Never shown again, so it is returned whatever `fields` selects.")
            => webhook.secret.reveal(),
    }
}

/// Contract: `WebhookEvent`.
pub(crate) fn event() -> Node {
    string()
        .one_of(WebhookEvent::ALL.map(WebhookEvent::as_str))
        .describe("Further events may be added.")
        .extensible()
        .named("WebhookEvent")
}

fn names(events: &[WebhookEvent]) -> Vec<&'static str> {
    events.iter().map(|event| event.as_str()).collect()
}

web::view! {
    /// A delivery with the selected fields.
    DeliveryView<'a> of delivery: &'a Delivery, named "WebhookDelivery", "The delivery of an event to a subscription." {
        "id": uuid().describe("The id of the delivery, as in `X-Delivery-Id`.") => delivery.id.uuid(),
        "event": event() => delivery.event.as_str(),
        "attempt": integer(0, MAX_ATTEMPTS.into()).describe("Attempts made; 0 before the first.")
            => delivery.state.attempt(),
        "response_status": integer(100, 999).or_null().describe("The HTTP status of the last attempt's response, if there was one.")
            => delivery.state.last().and_then(Attempted::response_status),
        "duration_ms": integer(0, i32::MAX.into()).or_null().describe("Duration of the last attempt in milliseconds.")
            => delivery.state.last().map(Attempted::duration_ms),
        "delivered_at": date_time().or_null() => delivery.state.delivered_at().map(Timestamp::new),
        "next_retry_at": date_time().or_null()
            .describe("`null` while the first attempt is queued (`attempt` is 0), once it is delivered, once it is given up (`attempt` is 6), \
                and once it is stopped, since the seller disconnected the application.")
            => delivery.state.next_retry_at().map(Timestamp::new),
        "created_at": date_time() => Timestamp::new(delivery.created_at),
    }
}

/// Lists all of the application's subscriptions at the seller, oldest first (D97).
pub(crate) struct ListWebhooks {
    fields: Selection,
}

impl Operation<Public> for ListWebhooks {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/v1/webhooks";
    const SCOPE: &'static [Scope] = &[Scope::SettingsRead];
    const QUERY: &'static [Parameter] = &[page::FIELDS];
    const FIELDS: &'static [&'static str] = WebhookView::FIELDS;
    const DOCS: Option<&'static Docs> = Some(
        &Docs::new("listWebhooks", "Webhooks", prose!("listWebhooks")).answers(
            StatusCode::OK,
            WebhookList::schema,
            example!("webhooks"),
        ),
    );

    fn decode(incoming: &Incoming<'_>, _: &Call<Public>) -> Result<Option<Self>, Violations> {
        let fields = incoming.query(Self::QUERY, |query| query.fields(Self::FIELDS))?;
        Ok(Some(Self { fields }))
    }
}

impl Read<Public> for ListWebhooks {
    async fn execute(self, call: Call<Public>) -> Result<Reply, Error> {
        let (subscriptions, caller) = (&call.state.subscriptions, &call.caller);
        let all = subscriptions
            .subscriptions(caller.seller, caller.client_id)
            .await?;
        Reply::ok(&WebhookList::whole((&all, self.fields)))
    }
}

web::view! {
    WebhookList<'a> of (all, fields): (&'a [Subscription], Selection), named "WebhookList" {
        "items": array(WebhookView::schema()) => all.iter().map(|one| WebhookView::new(one, *fields)).collect::<Vec<_>>(),
        "available_events": array(event()).describe("All events that can be subscribed to.") => names(&WebhookEvent::ALL),
    }
}

/// Subscribes the application to events of the seller. Only this response contains the secret.
pub(crate) struct CreateWebhook {
    request: SubscriptionRequest,
    fields: Selection,
}

impl Operation<Public> for CreateWebhook {
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/v1/webhooks";
    const SCOPE: &'static [Scope] = &[Scope::SettingsWrite];
    const QUERY: &'static [Parameter] = &[page::FIELDS];
    const FIELDS: &'static [&'static str] = WebhookCreatedView::FIELDS;
    const DOCS: Option<&'static Docs> = Some(
        &Docs::new("createWebhook", "Webhooks", prose!("createWebhook"))
            .takes(
                || new_webhook(AddressPolicy::Public).schema(),
                example!("new_webhook"),
            )
            .answers(
                StatusCode::CREATED,
                WebhookCreatedView::schema,
                example!("webhook_created"),
            )
            .refuses(&[|| limit_reached(LimitReached)]),
    );

    fn decode(incoming: &Incoming<'_>, call: &Call<Public>) -> Result<Option<Self>, Violations> {
        let fields = incoming.query(Self::QUERY, |query| query.fields(Self::FIELDS));
        let body = new_webhook(call.state.settings.addresses);
        let (fields, request) = incoming.json(fields, &body)?;
        Ok(Some(Self { request, fields }))
    }
}

impl Write<Public> for CreateWebhook {
    async fn prepare(&mut self, call: &mut Call<Public>) -> Result<(), Error> {
        let checked = call
            .deadline
            .pause(call.state.hosts.check(&self.request.url))
            .await;
        // The message does not say why, so that it reveals no names of the internal network.
        let refused = "Must have a host that resolves to public addresses only.";
        checked.map_err(|HostRefused| Problem::from(Entry::validation("url", refused)).into())
    }

    async fn apply(&self, call: &Call<Public>, transaction: &dyn Transaction) -> Result<Reply, Error> {
        let created = create_subscription(
            transaction,
            call.state.ports.randomness.as_ref(),
            call.caller.seller,
            call.caller.client_id,
            &self.request,
            transaction.now(),
        )
        .await
        .map_refusal(limit_reached)?;
        Reply::created(&WebhookCreatedView::new(&created, self.fields))
    }
}

fn new_webhook(addresses: AddressPolicy) -> impl Shape<Value = SubscriptionRequest> {
    let event = || one_of(&WebhookEvent::ALL, WebhookEvent::as_str).map_schema(|_| event());
    object!(SubscriptionRequest {
        url: required(url(addresses)),
        events: required(list(event()).at_least(1).describe("Duplicates are ignored.")),
    })
    .named("NewWebhook")
}

fn url(addresses: AddressPolicy) -> impl Shape<Value = WebhookUrl> {
    text()
        .checked(move |url: String| WebhookUrl::parse(url, addresses))
        .map_schema(|schema| schema.with("format", "uri").with("maxLength", MAX_URL_LENGTH))
        .describe(
            "HTTPS, with a host that resolves only to public addresses; no user information, no fragment.",
        )
}

fn limit_reached(LimitReached: LimitReached) -> Problem {
    let message = "The application already has 20 subscriptions for this seller. Delete one first.";
    Problem::new(Code::WebhookLimitReached, message)
}

/// Deletes one of the application's subscriptions and its pending deliveries. A body is ignored (D9).
pub(crate) struct DeleteWebhook {
    id: SubscriptionId,
}

impl Operation<Public> for DeleteWebhook {
    const METHOD: Method = Method::DELETE;
    const PATH: &'static str = "/v1/webhooks/{id}";
    const SCOPE: &'static [Scope] = &[Scope::SettingsWrite];
    const DOCS: Option<&'static Docs> = Some(
        &Docs::new("deleteWebhook", "Webhooks", prose!("deleteWebhook"))
            .about("The subscription's id.", examples::WEBHOOK)
            .answers_nothing(),
    );

    fn decode(incoming: &Incoming<'_>, _: &Call<Public>) -> Result<Option<Self>, Violations> {
        incoming.no_query()?;
        Ok(incoming.id(0).map(|id| Self { id }))
    }
}

impl Write<Public> for DeleteWebhook {
    async fn apply(&self, call: &Call<Public>, transaction: &dyn Transaction) -> Result<Reply, Error> {
        let caller = &call.caller;
        delete_subscription(transaction, caller.seller, caller.client_id, self.id)
            .await
            .map_refusal(|NoSuchSubscription| Problem::not_found())?;
        Ok(Reply::no_content())
    }
}

/// Lists the latest deliveries of one of the application's subscriptions, newest first (D58).
pub(crate) struct ListDeliveries {
    id: SubscriptionId,
    fields: Selection,
}

impl Operation<Public> for ListDeliveries {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/v1/webhooks/{id}/deliveries";
    const SCOPE: &'static [Scope] = &[Scope::SettingsRead];
    const QUERY: &'static [Parameter] = &[page::FIELDS];
    const FIELDS: &'static [&'static str] = DeliveryView::FIELDS;
    const DOCS: Option<&'static Docs> = Some(
        &Docs::new(
            "listWebhookDeliveries",
            "Webhooks",
            prose!("listWebhookDeliveries"),
        )
        .about("The subscription's id.", examples::WEBHOOK)
        .answers(StatusCode::OK, DeliveryList::schema, example!("deliveries")),
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
        let expected = history.len().saturating_add(1).saturating_mul(320);
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
