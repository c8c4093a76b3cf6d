//! `GET /v1/webhooks`

use actix_web::http::{Method, StatusCode};
use oauth::Scope;
use serde::Serialize;
use web::Violations;
use web::query::{self, Selection};
use web::schema::{Node, array, object};
use webhooks::{Subscription, WebhookEvent};

use super::list_view::Items;
use super::webhook_view::{EventNames, WebhookView, event};
use crate::declared::{Declared, Parameter, Success, Tag};
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
    const DECLARED: &'static Declared = &Declared {
        id: "listWebhooks",
        tag: Tag::Webhooks,
        summary: "List subscriptions",
        description: "Those of this application at this seller, the oldest first, all of them. Secrets are not shown.",
        resource: None,
        parameters: &[Parameter::FIELDS],
        body: None,
        success: Success::Json {
            status: StatusCode::OK,
            description: "The subscriptions, and the events that there are.",
            schema,
            example,
        },
        deprecated: None,
        refusals: &[],
    };

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

fn schema() -> Node {
    let available = array(event()).said("What can be subscribed to.");
    object(&[
        ("items", array(WebhookView::schema())),
        ("available_events", available),
    ])
    .named("WebhookList")
}

fn example() -> Node {
    Node::parse(
        r#"{
            "items": [{
                "id": "01936d10-7a3b-7c4d-8e5f-6a7b8c9d0e1f", "url": "https://hooks.example.com/marketplace",
                "events": ["order.paid", "order.cancelled"], "active": true, "created_at": "2026-11-02T09:00:00.000000Z"
            }],
            "available_events": [
                "order.created", "order.paid", "order.shipped", "order.delivered", "order.cancelled", "offer.rejected"
            ]
        }"#,
    )
}
