//! `GET /v1/webhooks`

use actix_web::http::Method;
use oauth::Scope;
use serde::Serialize;
use web::Violations;
use web::query::{self, Selection};
use webhooks::{Subscription, WebhookEvent};

use super::list_view::Items;
use super::webhook_view::{EventNames, WebhookView};
use crate::operation::{Context, Incoming, Operation, Read, Reply};
use crate::refusal::Refusal;

/// Reads the application's subscriptions at the seller, oldest first, all of them (D97).
pub(crate) struct ListWebhooks {
    fields: Selection,
}

impl Operation for ListWebhooks {
    const METHOD: Method = Method::GET;
    const TEMPLATE: &'static str = "/v1/webhooks";
    const SCOPE: Option<Scope> = Some(Scope::SettingsRead);
    const PARAMETERS: &'static [&'static str] = &["fields"];
    const FIELDS: &'static [&'static str] = WebhookView::FIELDS;

    fn decode(incoming: &Incoming<'_>, _: &Context) -> Result<Self, Violations> {
        query::read(incoming.query, Self::PARAMETERS, |query| Self {
            fields: query.fields(Self::FIELDS),
        })
    }
}

#[derive(Serialize)]
struct Body<'a> {
    items: Items<'a, Subscription, WebhookView<'a>>,
    available_events: EventNames<'static>,
}

impl Read for ListWebhooks {
    async fn execute(self, context: Context) -> Result<Reply, Refusal> {
        let Context { principal, public } = context;
        let subscriptions = public
            .subscriptions
            .subscriptions(principal.seller, principal.client_id);
        let subscriptions = subscriptions.await?;
        let items = Items::new(&subscriptions, self.fields, WebhookView::new);
        let expected = items.usual_length(WebhookView::USUAL_LENGTH);
        let available_events = EventNames(&WebhookEvent::ALL);
        Reply::ok(
            &Body {
                items,
                available_events,
            },
            expected,
        )
    }
}
