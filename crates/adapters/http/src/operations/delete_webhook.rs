//! `DELETE /v1/webhooks/{id}`

use actix_web::http::Method;
use oauth::Scope;
use usecases::Transaction;
use usecases::delete_subscription::{self, delete_subscription};
use web::query;
use web::{Problem, Violations};
use webhooks::SubscriptionId;

use crate::deadline::Deadline;
use crate::declared::{Declared, Resource, Success, Tag};
use crate::operation::{Context, Incoming, Operation, Reply, Write};
use crate::refusal::{Refusal, Refused};

/// Ends one of the application's subscriptions, and what is pending for it. A body is not looked at (D9).
pub(crate) struct DeleteWebhook {
    /// Nothing where no subscription can have the id.
    id: Option<SubscriptionId>,
}

impl Operation for DeleteWebhook {
    const METHOD: Method = Method::DELETE;
    const TEMPLATE: &'static str = "/v1/webhooks/{id}";
    const SCOPE: Option<Scope> = Some(Scope::SettingsWrite);
    const PARAMETERS: &'static [&'static str] = &[];
    const FIELDS: &'static [&'static str] = &[];
    const DECLARED: &'static Declared = &Declared {
        id: "deleteWebhook",
        tag: Tag::Webhooks,
        summary: "Delete a subscription",
        description: "What is pending for it is not delivered any more, and its history is gone.",
        resource: Some(Resource::WEBHOOK),
        parameters: &[],
        body: None,
        success: Success::NoContent {
            description: "The subscription is gone.",
        },
        deprecated: None,
        refusals: &[],
    };

    fn decode(incoming: &Incoming<'_>, _: &Context) -> Result<Self, Violations> {
        query::read(incoming.query, Self::PARAMETERS, |_| Self { id: incoming.id() })
    }
}

impl Write for DeleteWebhook {
    type Prepared = SubscriptionId;

    async fn prepare(&self, _: &Context, _: &mut Deadline) -> Result<SubscriptionId, Refusal> {
        Ok(self.id.ok_or_else(Problem::not_found)?)
    }

    async fn apply(
        &self,
        id: &SubscriptionId,
        context: &Context,
        transaction: &dyn Transaction,
    ) -> Result<Reply, Refusal> {
        let caller = &context.principal;
        delete_subscription(transaction, caller.seller, caller.client_id, *id).await?;
        Ok(Reply::no_content())
    }
}

impl Refused for delete_subscription::Refusal {
    fn problem(self) -> Problem {
        match self {
            Self::NoSuchSubscription => Problem::not_found(),
        }
    }
}
