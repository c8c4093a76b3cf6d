//! A subscription as its application sees it (contract: Webhook, `WebhookCreated`).

use serde::{Serialize, Serializer};
use web::schema::{Node, array, boolean, date_time, string, uri, uuid};
use web::timestamps::Timestamp;
use webhooks::{NewSubscription, Subscription, WebhookEvent};

use super::view::view;

view! {
    /// A subscription with the chosen fields.
    WebhookView of webhook: Subscription, of 384 bytes, named "Webhook", "A subscription to events." {
        "id": uuid() => webhook.id.uuid(),
        "url": uri() => webhook.url.as_str(),
        "events": array(event()) => EventNames(&webhook.events),
        "active": boolean().said("False once the seller has disconnected the application.") => webhook.active,
        "created_at": date_time() => Timestamp::new(webhook.created_at),
    }
}

view! {
    /// A subscription that was just made, with its secret, which is never shown again.
    WebhookCreatedView of webhook: NewSubscription, of 448 bytes, named "WebhookCreated",
        "A subscription that was just made, with its secret.", never without "secret"
    {
        "id": uuid() => webhook.id.uuid(),
        "url": uri() => webhook.url.as_str(),
        "events": array(event()) => EventNames(&webhook.events),
        "active": boolean() => true,
        "created_at": date_time() => Timestamp::new(webhook.created_at),
        "secret": string().said("The key of the signatures, prefix included. It is never shown again, so it is here whatever `fields` says.")
            => webhook.secret.reveal(),
    }
}

/// Contract: `WebhookEvent`.
pub(super) fn event() -> Node {
    string()
        .one_of(WebhookEvent::ALL.map(WebhookEvent::as_str))
        .said("Further events may be added.")
        .extensible()
        .named("WebhookEvent")
}

/// Events as an array of their names.
pub(super) struct EventNames<'a>(pub(super) &'a [WebhookEvent]);

impl Serialize for EventNames<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(|event| event.as_str()))
    }
}
