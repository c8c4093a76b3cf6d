//! A subscription as its application sees it (contract: Webhook, `WebhookCreated`).

use serde::{Serialize, Serializer};
use web::timestamps::Timestamp;
use webhooks::{NewSubscription, Subscription, WebhookEvent};

use super::view::view;

view! {
    /// A subscription with the chosen fields.
    WebhookView of webhook: Subscription, of 384 bytes {
        "id" => webhook.id.uuid(),
        "url" => webhook.url.as_str(),
        "events" => EventNames(&webhook.events),
        "active" => webhook.active,
        "created_at" => Timestamp::new(webhook.created_at),
    }
}

view! {
    /// A subscription that was just made, with its secret, which is never shown again.
    WebhookCreatedView of webhook: NewSubscription, of 448 bytes {
        "id" => webhook.id.uuid(),
        "url" => webhook.url.as_str(),
        "events" => EventNames(&webhook.events),
        "active" => true,
        "created_at" => Timestamp::new(webhook.created_at),
        "secret" => webhook.secret.reveal(),
    }
}

/// Events as an array of their names.
pub(super) struct EventNames<'a>(pub(super) &'a [WebhookEvent]);

impl Serialize for EventNames<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(|event| event.as_str()))
    }
}
