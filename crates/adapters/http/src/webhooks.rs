//! Webhook subscriptions.

use actix_web::http::StatusCode;
use chrono::TimeDelta;
use oauth::Scope;
use usecases::subscriptions::{
    ChangeRefusal, LimitReached, Rotated, SubscriptionRequest, change_subscription, create_subscription,
    rotate_secret,
};
use usecases::{LockSet, Row, Transaction};
use web::decode::{Shape, integer, list, object, one_of, text};
use web::openapi::{Docs, JsonBody};
use web::operation::{Call, Incoming, Read, Write};
use web::query::Selection;
use web::reply::Reply;
use web::schema::{Node, array, boolean, date_time, string, uri, uuid};
use web::timestamps::Timestamp;
use web::view::View;
use web::{Code, Entry, Error, MapRefusal, Problem, Violations};
use webhooks::{
    AddressPolicy, HostRefused, MAX_URL, NewSubscription, Subscription, SubscriptionChange, SubscriptionId,
    WebhookEvent, WebhookUrl, standard_secret,
};

use crate::Public;
use crate::documents::{docs, example};

/// Concurrent look-ups of hosts for one application in a process; one, once [`MANY_CHECKS`] run in all.
const CHECKS_OF_ONE: usize = 4;
const MANY_CHECKS: usize = 128;

/// How long a former secret may go on signing after a rotation.
const MAX_OVERLAP: TimeDelta = TimeDelta::days(7);
/// How long it does unless the request says otherwise.
const DEFAULT_OVERLAP: TimeDelta = TimeDelta::days(1);

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
        "A new subscription with its secret.", never without "secret", never without "standard_secret"
    {
        "id": uuid() => webhook.id.uuid(),
        "url": uri() => webhook.url.as_str(),
        "events": array(event()) => names(&webhook.events),
        "active": boolean() => true,
        "created_at": date_time() => Timestamp::new(webhook.created_at),
        "secret": string().describe("The signing key, prefix included. Never shown again, so it is returned whatever `fields` selects.")
            => webhook.secret.reveal(),
        "standard_secret": string().describe("The same key as verifiers of Standard Webhooks take it: `whsec_` and the padded base64 of the whole `secret`. \
            Always returned, too.") => standard_secret(&webhook.secret),
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

const _: () = assert!(
    matches!(WebhookEvent::ALL, [.., WebhookEvent::ConnectionEnded]),
    "`known` hides the last event alone: a further one has to be hidden, too, until the schema that knows it is finished"
);

/// What can be subscribed to: a program before 1.1 cannot read a subscription to `connection.ended`, so that it is known
/// only once the schema `is_finished`.
const fn known(is_finished: bool) -> &'static [WebhookEvent] {
    const ALL: &[WebhookEvent] = &WebhookEvent::ALL;
    match ALL {
        [before @ .., WebhookEvent::ConnectionEnded] if !is_finished => before,
        _ => ALL,
    }
}

/// Lists all of the application's subscriptions at the seller, oldest first (D97).
pub(crate) struct ListWebhooks;

impl Read<Public> for ListWebhooks {
    const SCOPE: &'static [Scope] = &[Scope::SettingsRead];
    const FIELDS: &'static [&'static str] = WebhookView::FIELDS;
    const DOCS: Option<&'static Docs> = Some(&Docs {
        response: Some(JsonBody::new(WebhookList::schema, example!("webhooks"))),
        ..docs!("listWebhooks", "Webhooks")
    });

    fn decode(_: &Incoming<'_>, _: &Call<Public>) -> Result<Option<Self>, Violations> {
        Ok(Some(Self))
    }

    async fn execute(self, call: Call<Public>) -> Result<Reply, Error> {
        let (subscriptions, caller) = (&call.state.subscriptions, &call.caller);
        let all = subscriptions.subscriptions(caller.seller, caller.client_id);
        let all = all.await?;
        let known = known(call.state.ports.is_finished());
        Reply::ok(&WebhookList::whole((&all, known, call.fields)))
    }
}

web::view! {
    WebhookList<'a> of (all, known, fields): (&'a [Subscription], &'static [WebhookEvent], Selection), named "WebhookList" {
        "items": array(WebhookView::schema()) => all.iter().map(|one| WebhookView::new(one, *fields)).collect::<Vec<_>>(),
        "available_events": array(event()).describe("All events that can be subscribed to.") => names(known),
    }
}

/// Subscribes the application to events of the seller. Only this response contains the secret.
pub(crate) struct CreateWebhook(SubscriptionRequest);

impl Write<Public> for CreateWebhook {
    const SCOPE: &'static [Scope] = &[Scope::SettingsWrite];
    const FIELDS: &'static [&'static str] = WebhookCreatedView::FIELDS;
    const DOCS: Option<&'static Docs> = Some(&Docs {
        body: Some(JsonBody::new(
            || new_webhook(AddressPolicy::Public, true).schema(),
            example!("new_webhook"),
        )),
        status: StatusCode::CREATED,
        response: Some(JsonBody::new(
            WebhookCreatedView::schema,
            example!("webhook_created"),
        )),
        refusals: &[|| limit_reached(LimitReached)],
        ..docs!("createWebhook", "Webhooks")
    });

    fn decode(incoming: &Incoming<'_>, call: &Call<Public>) -> Result<Option<Self>, Violations> {
        let body = new_webhook(call.state.settings.addresses, call.state.ports.is_finished());
        incoming.json(&body).map(|request| Some(Self(request)))
    }

    async fn prepare(&mut self, call: &mut Call<Public>) -> Result<(), Error> {
        check_host(call, &self.0.url).await
    }

    fn locks(&self, call: &Call<Public>) -> LockSet {
        LockSet::of_row(Row::Application(call.caller.client_id))
    }

    async fn apply(&self, call: &Call<Public>, tx: &dyn Transaction) -> Result<Reply, Error> {
        let (caller, randomness) = (&call.caller, call.state.ports.randomness.as_ref());
        let created = create_subscription(tx, randomness, caller.seller, caller.client_id, &self.0, tx.now());
        let created = created.await.map_refusal(limit_reached)?;
        Reply::created(&WebhookCreatedView::new(&created, call.fields))
    }
}

/// Checks that deliveries can go to the URL's host.
async fn check_host(call: &mut Call<Public>, url: &WebhookUrl) -> Result<(), Error> {
    let most = |taken| if taken < MANY_CHECKS { CHECKS_OF_ONE } else { 1 };
    let Some(_place) = call.state.host_checks.take(call.caller.client_id, most) else {
        let message = "Too many of this application's webhook URLs are being checked. Retry in 1 s.";
        return Err(Problem::new(Code::RateLimited, message).retry_after(1).into());
    };
    let checked = call.deadline.pause(call.state.hosts.check(url)).await;
    // The message does not say why, so that it reveals no names of the internal network.
    let refused = "Must have a host that resolves to public addresses only.";
    checked.map_err(|HostRefused| Problem::from(Entry::validation("url", refused)).into())
}

fn new_webhook(addresses: AddressPolicy, is_finished: bool) -> impl Shape<Value = SubscriptionRequest> {
    object!(SubscriptionRequest {
        url: required(url(addresses)),
        events: required(events(is_finished)),
    })
    .named("NewWebhook")
}

fn events(is_finished: bool) -> impl Shape<Value = Vec<WebhookEvent>> {
    list(one_event(is_finished), 1..=usize::MAX).describe("Duplicates are ignored.")
}

pub(crate) fn one_event(is_finished: bool) -> impl Shape<Value = WebhookEvent> {
    one_of(known(is_finished), WebhookEvent::as_str).map_schema(|_| event())
}

fn url(addresses: AddressPolicy) -> impl Shape<Value = WebhookUrl> {
    text()
        .checked(move |url: String| WebhookUrl::parse(url, addresses))
        .map_schema(|schema| schema.with("format", "uri").with("maxLength", i64::from(MAX_URL)))
        .describe(
            "HTTPS, with a host that resolves only to public addresses; no user information, no fragment.",
        )
}

fn limit_reached(LimitReached: LimitReached) -> Problem {
    let message = "The application already has 20 subscriptions for this seller. Delete one first.";
    Problem::new(Code::WebhookLimitReached, message)
}

/// Reads one of the application's subscriptions.
pub(crate) struct ReadWebhook(SubscriptionId);

impl Read<Public> for ReadWebhook {
    const SCOPE: &'static [Scope] = &[Scope::SettingsRead];
    const FIELDS: &'static [&'static str] = WebhookView::FIELDS;
    const DOCS: Option<&'static Docs> = Some(&Docs {
        response: Some(JsonBody::new(WebhookView::schema, example!("webhook"))),
        ..docs!("getWebhook", "Webhooks")
    });

    fn decode(incoming: &Incoming<'_>, _: &Call<Public>) -> Result<Option<Self>, Violations> {
        Ok(incoming.id(0).map(Self))
    }

    async fn execute(self, call: Call<Public>) -> Result<Reply, Error> {
        let (subscriptions, caller) = (&call.state.subscriptions, &call.caller);
        let found = subscriptions.subscription_of_seller(caller.seller, self.0);
        let found = found.await?.map(|found| found.subscription);
        let own = found.filter(|found| found.client_id == caller.client_id);
        let own = own.ok_or_else(Problem::not_found)?;
        Reply::ok(&WebhookView::new(&own, call.fields))
    }
}

/// Changes URL or events of one of the application's subscriptions.
pub(crate) struct ChangeWebhook {
    id: SubscriptionId,
    change: SubscriptionChange,
}

impl Write<Public> for ChangeWebhook {
    const SCOPE: &'static [Scope] = &[Scope::SettingsWrite];
    const FIELDS: &'static [&'static str] = WebhookView::FIELDS;
    const DOCS: Option<&'static Docs> = Some(&Docs {
        body: Some(JsonBody::new(
            || webhook_update(AddressPolicy::Public, true).schema(),
            example!("webhook_update"),
        )),
        response: Some(JsonBody::new(WebhookView::schema, example!("webhook"))),
        refusals: &[inactive],
        ..docs!("updateWebhook", "Webhooks")
    });

    fn decode(incoming: &Incoming<'_>, call: &Call<Public>) -> Result<Option<Self>, Violations> {
        let body = webhook_update(call.state.settings.addresses, call.state.ports.is_finished());
        let change = incoming.json(&body)?;
        Ok(incoming.id(0).map(|id| Self { id, change }))
    }

    async fn prepare(&mut self, call: &mut Call<Public>) -> Result<(), Error> {
        match &self.change.url {
            Some(url) => check_host(call, url).await,
            None => Ok(()),
        }
    }

    async fn apply(&self, call: &Call<Public>, tx: &dyn Transaction) -> Result<Reply, Error> {
        let caller = &call.caller;
        let changed = change_subscription(tx, caller.seller, caller.client_id, self.id, &self.change).await;
        Reply::ok(&WebhookView::new(&changed.map_refusal(unchanged)?, call.fields))
    }
}

fn webhook_update(addresses: AddressPolicy, is_finished: bool) -> impl Shape<Value = SubscriptionChange> {
    object!(SubscriptionChange {
        url: optional(url(addresses)),
        events: optional(events(is_finished)),
    })
    .not_empty()
    .named("WebhookUpdate")
}

fn unchanged(refusal: ChangeRefusal) -> Problem {
    match refusal {
        ChangeRefusal::NotFound => Problem::not_found(),
        ChangeRefusal::Inactive => inactive(),
    }
}

/// A disconnection has ended the subscription.
pub(crate) fn inactive() -> Problem {
    let message = "The seller has disconnected the application, which has ended this subscription.";
    Problem::new(Code::WebhookInactive, message)
}

web::view! {
    /// A rotation's new secret, which is never shown again.
    WebhookSecretView<'a> of rotated: &'a Rotated, named "WebhookSecret",
        "A subscription's new secret.", never without "secret", never without "standard_secret"
    {
        "id": uuid() => rotated.id.uuid(),
        "secret": string().describe("The new signing key, prefix included. Never shown again, so it is returned whatever `fields` selects.")
            => rotated.secret.reveal(),
        "standard_secret": string().describe("The same key as verifiers of Standard Webhooks take it. Always returned, too.")
            => standard_secret(&rotated.secret),
        "active_from": date_time().describe("From then on `X-Signature` is made with it.") => Timestamp::new(rotated.active_from),
    }
}

/// Gives one of the application's subscriptions a new secret.
pub(crate) struct RotateSecret {
    id: SubscriptionId,
    overlap: TimeDelta,
}

impl Write<Public> for RotateSecret {
    const SCOPE: &'static [Scope] = &[Scope::SettingsWrite];
    const NEEDS_FINISHED: bool = true;
    const FIELDS: &'static [&'static str] = WebhookSecretView::FIELDS;
    const DOCS: Option<&'static Docs> = Some(&Docs {
        body: Some(JsonBody::new(|| rotation().schema(), example!("rotation"))),
        is_body_optional: true,
        response: Some(JsonBody::new(WebhookSecretView::schema, example!("rotated"))),
        refusals: &[inactive],
        ..docs!("rotateWebhookSecret", "Webhooks")
    });

    fn decode(incoming: &Incoming<'_>, _: &Call<Public>) -> Result<Option<Self>, Violations> {
        let overlap = incoming.optional_json(&rotation())?.flatten();
        let overlap = overlap.map_or(DEFAULT_OVERLAP, TimeDelta::seconds);
        Ok(incoming.id(0).map(|id| Self { id, overlap }))
    }

    async fn apply(&self, call: &Call<Public>, tx: &dyn Transaction) -> Result<Reply, Error> {
        let (seller, client_id) = (call.caller.seller, call.caller.client_id);
        let randomness = call.state.ports.randomness.as_ref();
        let rotated = rotate_secret(tx, randomness, seller, client_id, self.id, self.overlap, tx.now());
        let rotated = rotated.await.map_refusal(unchanged)?;
        Reply::ok(&WebhookSecretView::new(&rotated, call.fields))
    }
}

fn rotation() -> impl Shape<Value = Option<i64>> {
    let seconds = integer(0..=MAX_OVERLAP.num_seconds())
        .describe("For how long the present secret goes on making `X-Signature`; one day if missing.");
    object!(overlap_seconds: optional(seconds) => overlap_seconds).named("SecretRotation")
}

/// Deletes one of the application's subscriptions and its pending deliveries. A body is ignored (D9).
pub(crate) struct DeleteWebhook(SubscriptionId);

impl Write<Public> for DeleteWebhook {
    const SCOPE: &'static [Scope] = &[Scope::SettingsWrite];
    const DOCS: Option<&'static Docs> = Some(&Docs {
        status: StatusCode::NO_CONTENT,
        ..docs!("deleteWebhook", "Webhooks")
    });

    fn decode(incoming: &Incoming<'_>, _: &Call<Public>) -> Result<Option<Self>, Violations> {
        Ok(incoming.id(0).map(Self))
    }

    async fn apply(&self, call: &Call<Public>, transaction: &dyn Transaction) -> Result<Reply, Error> {
        let caller = &call.caller;
        let removed = transaction.remove_subscription(caller.seller, caller.client_id, self.0);
        if removed.await? {
            Ok(Reply::no_content())
        } else {
            Err(Problem::not_found().into())
        }
    }
}
