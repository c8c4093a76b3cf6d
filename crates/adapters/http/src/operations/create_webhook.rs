//! `POST /v1/webhooks`

use actix_web::http::Method;
use oauth::Scope;
use usecases::Transaction;
use usecases::create_subscription::{self, Wanted, check_host, create_subscription};
use web::decode::{Shape, list, object, one_of, required, text};
use web::query::{self, Selection};
use web::{Code, Entry, Problem, Violations};
use webhooks::{AddressPolicy, WebhookEvent, WebhookUrl};

use super::webhook_view::WebhookCreatedView;
use crate::deadline::Deadline;
use crate::operation::{Context, Incoming, Operation, Reply, Write};
use crate::refusal::{Refusal, Refused};
use crate::sentence;

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

fn body(addresses: AddressPolicy) -> impl Shape<Value = Wanted> {
    let url = text().checked(move |url: String| {
        WebhookUrl::parse(url, addresses).map_err(|invalid| sentence::of(&invalid))
    });
    let events = list(one_of(&WebhookEvent::ALL, WebhookEvent::as_str)).at_least(1);
    object((required("url", url), required("events", events))).map(|(url, events)| Wanted { url, events })
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
