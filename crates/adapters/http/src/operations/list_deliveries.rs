//! `GET /v1/webhooks/{id}/deliveries`

use actix_web::http::{Method, StatusCode};
use oauth::Scope;
use serde::Serialize;
use web::query::{self, Selection};
use web::schema::{Node, array, object};
use web::{Problem, Violations};
use webhooks::{Delivery, SubscriptionId};

use super::delivery_view::DeliveryView;
use super::list_view::Items;
use crate::declared::{Declared, Parameter, Resource, Success, Tag};
use crate::operation::{Context, Incoming, Operation, Read, Reply};
use crate::refusal::Refusal;

/// Reads the last deliveries of one of the application's subscriptions, newest first (D58).
pub(crate) struct ListDeliveries {
    /// Nothing where no subscription can have the id.
    id: Option<SubscriptionId>,
    fields: Selection,
}

impl Operation for ListDeliveries {
    const METHOD: Method = Method::GET;
    const TEMPLATE: &'static str = "/v1/webhooks/{id}/deliveries";
    const SCOPE: Option<Scope> = Some(Scope::SettingsRead);
    const PARAMETERS: &'static [&'static str] = &["fields"];
    const FIELDS: &'static [&'static str] = DeliveryView::FIELDS;
    const DECLARED: &'static Declared = &Declared {
        id: "listWebhookDeliveries",
        tag: Tag::Webhooks,
        summary: "List the deliveries of a subscription",
        description: "The last 100, the newest first.",
        resource: Some(Resource::WEBHOOK),
        parameters: &[Parameter::FIELDS],
        body: None,
        success: Success::Json {
            status: StatusCode::OK,
            description: "The deliveries.",
            schema,
            example,
        },
        deprecated: None,
        refusals: &[],
    };

    fn decode(incoming: &Incoming<'_>, _: &Context) -> Result<Self, Violations> {
        query::read(incoming.query, Self::PARAMETERS, |query| Self {
            id: incoming.id(),
            fields: query.fields(Self::FIELDS),
        })
    }
}

#[derive(Serialize)]
struct Body<'a> {
    items: Items<'a, Delivery, DeliveryView<'a>>,
}

impl Read for ListDeliveries {
    async fn execute(self, context: Context) -> Result<Reply, Refusal> {
        let id = self.id.ok_or_else(Problem::not_found)?;
        let Context { principal, public } = context;
        let history = public
            .subscriptions
            .history(principal.seller, principal.client_id, id);
        let history = history.await?.ok_or_else(Problem::not_found)?;
        let items = Items::new(&history, self.fields, DeliveryView::new);
        let expected = items.usual_length(DeliveryView::USUAL_LENGTH);
        Reply::ok(&Body { items }, expected)
    }
}

fn schema() -> Node {
    object(&[("items", array(DeliveryView::schema()))]).named("WebhookDeliveryList")
}

fn example() -> Node {
    Node::parse(
        r#"{"items": [{
            "id": "01936d22-1f2e-7d3c-8b4a-596877869504", "event": "order.paid", "attempt": 1, "response_status": 204,
            "duration_ms": 87, "delivered_at": "2026-11-19T08:03:54.342719Z", "next_retry_at": null,
            "created_at": "2026-11-19T08:03:54.120008Z"
        }]}"#,
    )
}
