//! `POST /v1/webhooks`

use actix_web::http::{Method, StatusCode};
use oauth::Scope;
use usecases::Transaction;
use usecases::create_subscription::{self, Wanted, check_host, create_subscription};
use web::decode::{Described, Shape, list, object, one_of, required, text};
use web::query::{self, Selection};
use web::schema::Node;
use web::{Code, Entry, Problem, Violations, sentence};
use webhooks::{AddressPolicy, WebhookEvent, WebhookUrl};

use super::webhook_view::{WebhookCreatedView, event};
use crate::deadline::Deadline;
use crate::declared::{Body, Declared, Parameter, Success, Tag};
use crate::operation::{Context, Incoming, Operation, Reply, Write};
use crate::refusal::{Refusal, Refused};

/// Of a URL (D54).
const MOST_CHARACTERS: i64 = 2048;

/// Subscribes the application to events of the seller, and tells the secret, once.
pub(crate) struct CreateWebhook {
    wanted: Wanted,
    fields: Selection,
}

impl Operation for CreateWebhook {
    const METHOD: Method = Method::POST;
    const TEMPLATE: &'static str = "/v1/webhooks";
    const SCOPE: Option<Scope> = Some(Scope::SettingsWrite);
    const PARAMETERS: &'static [&'static str] = &["fields"];
    const FIELDS: &'static [&'static str] = WebhookCreatedView::FIELDS;
    const DECLARED: &'static Declared = &Declared {
        id: "createWebhook",
        tag: Tag::Webhooks,
        summary: "Subscribe to events",
        description: "At most 20 subscriptions of an application at a seller. The answer is the only one that tells the secret, and does so whatever `fields` says. To change the secret, make a second subscription and delete the first.",
        resource: None,
        parameters: &[Parameter::FIELDS],
        body: Some(Body {
            schema: || body(AddressPolicy::Public).schema(),
            example: || {
                Node::parse(
                    r#"{"url": "https://hooks.example.com/marketplace", "events": ["order.paid", "order.cancelled"]}"#,
                )
            },
        }),
        success: Success::Json {
            status: StatusCode::CREATED,
            description: "The subscription, with its secret.",
            schema: WebhookCreatedView::schema,
            example,
        },
        deprecated: None,
        refusals: &[|| create_subscription::Refusal::Limit.problem()],
    };

    fn decode(incoming: &Incoming<'_>, context: &Context) -> Result<Self, Violations> {
        let fields = query::read(incoming.query, Self::PARAMETERS, |query| {
            query.fields(Self::FIELDS)
        });
        let body = body(context.public.settings.addresses);
        let (fields, wanted) = incoming.with_json(fields, &body)?;
        Ok(Self { wanted, fields })
    }
}

impl Write for CreateWebhook {
    type Prepared = ();

    async fn prepare(&self, context: &Context, deadline: &mut Deadline) -> Result<(), Refusal> {
        let hosts = context.public.hosts.as_ref();
        Ok(deadline.pause(check_host(hosts, &self.wanted.url)).await?)
    }

    async fn apply(
        &self,
        (): &(),
        context: &Context,
        transaction: &dyn Transaction,
    ) -> Result<Reply, Refusal> {
        let Context { principal, public } = context;
        let created = create_subscription(
            transaction,
            public.randomness.as_ref(),
            (principal.seller, principal.client_id),
            &self.wanted,
            transaction.now(),
        )
        .await?;
        Reply::created(
            &WebhookCreatedView::new(&created, self.fields),
            WebhookCreatedView::USUAL_LENGTH,
        )
    }
}

fn body(addresses: AddressPolicy) -> impl Described<Value = Wanted> {
    let url = text().checked(move |url: String| {
        WebhookUrl::parse(url, addresses).map_err(|invalid| sentence::of(&invalid))
    });
    let url = url.saying(|schema| {
        let schema = schema.with("format", "uri").with("maxLength", MOST_CHARACTERS);
        schema.said("HTTPS, with a host that resolves to public addresses alone, without user information and fragment.")
    });
    let event = one_of(&WebhookEvent::ALL, WebhookEvent::as_str).saying(|_| event());
    let events = list(event).at_least(1);
    let events = events.saying(|schema| schema.said("An event that is named twice counts once."));
    object((required("url", url), required("events", events)))
        .map(|(url, events)| Wanted { url, events })
        .saying(|schema| schema.named("NewWebhook"))
}

impl Refused for create_subscription::Refusal {
    fn problem(self) -> Problem {
        match self {
            // Why is not told, so that nobody learns names of the service's own network.
            Self::Host => Entry::validation(
                "url",
                "Must have a host that resolves, and to public addresses alone.",
            )
            .into(),
            Self::Limit => Problem::new(
                Code::WebhookLimitReached,
                "This application has 20 subscriptions at this seller. Delete one to make room.",
            ),
        }
    }
}

fn example() -> Node {
    Node::parse(
        r#"{
            "id": "01936d10-7a3b-7c4d-8e5f-6a7b8c9d0e1f", "url": "https://hooks.example.com/marketplace",
            "events": ["order.paid", "order.cancelled"], "active": true, "created_at": "2026-11-02T09:00:00.000000Z",
            "secret": "ps_wh_BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc"
        }"#,
    )
}
