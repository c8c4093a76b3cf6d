//! `seller-api admin webhooks`.

use std::cmp::Reverse;

use adapter_postgres::Database;
use anyhow::bail;
use chrono::{DateTime, Utc};
use clap::{ArgGroup, Subcommand};
use kernel::SellerId;
use orders::OrderRef;
use serde_json::{Value, json};
use usecases::redeliver::{RedeliveryRefusal, Requester, redeliver};
use usecases::{ActingOperator, Failure};
use uuid::Uuid;
use webhooks::{
    AttemptFailure, Attempted, Delivery, DeliveryFilter, DeliveryId, DeliveryState, Outcome, SellerDelivery,
    SellerSubscription, SubscriptionId, Undelivered, UndeliveredFilter, WebhookEvent,
};

use super::listing::{Format, Listed, PageArgs, Timestamp};
use super::{find_application, find_seller, id, in_transaction, instant, not_found};
use crate::command::{note, use_case_error};

/// Sellers for each line of progress.
const PROGRESS_EVERY: usize = 1_000;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List a seller's subscriptions, or an application's at all sellers, by seller, oldest first, inactive ones too
    #[command(group(ArgGroup::new("whose").args(["seller", "application"]).required(true).multiple(true)))]
    Subscriptions {
        /// The seller's id, number or e-mail address
        seller: Option<String>,
        /// Only those of this application: `client_id` or name
        #[arg(long)]
        application: Option<String>,
    },
    /// List deliveries with their attempts and why the last one failed, newest first
    ///
    /// Those of an order, a subscription or a seller; without these, each page looks at all sellers with
    /// subscriptions, one after another. Where one waits until its application is reinstated, the
    /// next retry is shown as `suspended`, and the member `suspended` of --json is true.
    Deliveries(Deliveries),
    /// List waiting deliveries, newest first
    Pending(List),
    /// List deliveries that were given up, newest first
    Exhausted(List),
    /// Make an earlier delivery again, or all since an instant that were given up
    ///
    /// Each keeps its id and its body. One that waits is due now and keeps its attempts; any other begins
    /// with the whole schedule. Prints the ids; `pending` and `exhausted` list them. With --since, the oldest
    /// come first; subscriptions that get nothing at present are left out, and --seller and --subscription
    /// narrow the choice. The instant is the event's, and its delivery is given up 14 hours later: for all
    /// that an outage cost, begin 15 hours before it.
    #[command(group(ArgGroup::new("which").args(["delivery", "since"]).required(true)))]
    DeliverAgain {
        /// The delivery's id
        #[arg(value_parser = id, requires = "seller", requires = "subscription")]
        delivery: Option<Uuid>,
        /// All events from this instant on whose deliveries were given up, such as 2027-01-15T08:00:00Z
        #[arg(long, value_name = "INSTANT", value_parser = instant)]
        since: Option<DateTime<Utc>>,
        /// The seller of the subscription: id, number or e-mail address
        #[arg(long)]
        seller: Option<String>,
        /// The subscription's id
        #[arg(long, value_name = "ID", value_parser = id)]
        subscription: Option<Uuid>,
    },
}

#[derive(Debug, clap::Args)]
pub(crate) struct Deliveries {
    /// Only those about this order: id or number
    #[arg(long)]
    order: Option<OrderRef>,
    /// Only those of this event, such as order.paid
    #[arg(long, value_parser = event)]
    event: Option<WebhookEvent>,
    /// Only those whose last attempt failed
    #[arg(long)]
    failed: bool,
    #[command(flatten)]
    list: List,
}

fn event(text: &str) -> Result<WebhookEvent, String> {
    let known = || WebhookEvent::ALL.map(WebhookEvent::as_str).join(", ");
    WebhookEvent::parse(text).ok_or_else(|| format!("must be one of {}", known()))
}

#[derive(Debug, clap::Args)]
pub(crate) struct List {
    /// Only those to this seller's subscriptions: id, number or e-mail address
    #[arg(long)]
    seller: Option<String>,
    /// Only those to the subscription with this id
    #[arg(long, value_name = "ID", value_parser = id)]
    subscription: Option<Uuid>,
    #[command(flatten)]
    page: PageArgs,
}

impl Command {
    pub(super) async fn run(self, database: &Database, format: Format) -> anyhow::Result<()> {
        match self {
            Self::Subscriptions { seller, application } => {
                let client = match application {
                    Some(name) => Some(find_application(database, &name).await?.client_id),
                    None => None,
                };
                let sellers = match (seller, client) {
                    (Some(seller), _) => vec![find_seller(database, &seller).await?.id],
                    (None, client) => database.webhook_lists().await?.subscribed_sellers(client).await?,
                };
                let (reader, mut rows) = (database.subscriptions(), Vec::new());
                for seller in with_progress(sellers) {
                    let found = reader.subscriptions_of_seller(seller, None, u16::MAX).await?;
                    let is_meant = |found: &SellerSubscription| {
                        client.is_none_or(|client| client == found.subscription.client_id)
                    };
                    let found = found.into_iter().filter(is_meant);
                    rows.extend(found.map(|found| Subscribed(seller, found)));
                }
                Ok(format.list(&rows)?)
            }
            Self::Deliveries(list) => list.run(database, format).await,
            Self::Pending(list) => list.run(database, Undelivered::Pending, format).await,
            Self::Exhausted(list) => list.run(database, Undelivered::Exhausted, format).await,
            Self::DeliverAgain {
                delivery,
                since,
                seller,
                subscription,
            } => {
                let seller = seller_of(database, seller.as_deref(), subscription).await?;
                if let (Some(delivery), Some(seller), Some(subscription)) = (delivery, seller, subscription) {
                    let which = (subscription.into(), delivery.into());
                    let made = deliver_again(database, seller, which).await;
                    let made = made.map_err(|failure| match failure {
                        Failure::Refused(RedeliveryRefusal::NotFound) => {
                            let unknown = format!(
                                "the subscription has no delivery {delivery}: `seller-api admin webhooks deliveries --subscription \
                                 {subscription}` shows its deliveries"
                            );
                            not_found(unknown).into()
                        }
                        other => use_case_error(other),
                    })?;
                    return Ok(format.changed(&json!({ "delivery_id": made.id.to_string() }), made.id)?);
                }
                let filter = UndeliveredFilter {
                    why: Undelivered::Exhausted,
                    seller,
                    subscription: subscription.map(SubscriptionId::from),
                };
                deliver_all_again(database, filter, since.unwrap_or_default(), format).await
            }
        }
    }
}

impl Deliveries {
    async fn run(self, database: &Database, format: Format) -> anyhow::Result<()> {
        let (owner, lists) = (
            self.list.seller_of(database).await?,
            database.webhook_lists().await?,
        );
        let (sellers, order) = match (&self.order, owner) {
            (Some(name), owner) => {
                let parts = database.order_directory().parts(name).await?;
                let order = parts.first().map(|part| part.id);
                if order.is_none() {
                    let unknown = "no such order: `seller-api admin orders find` shows a buyer's";
                    bail!(not_found(unknown.to_owned()));
                }
                let sellers = parts.iter().map(|part| part.seller);
                let is_meant = |seller: &SellerId| owner.is_none_or(|owner| owner == *seller);
                (sellers.filter(is_meant).collect(), order)
            }
            (None, Some(owner)) => (vec![owner], None),
            (None, None) => (lists.subscribed_sellers(None).await?, None),
        };
        let filter = DeliveryFilter {
            subscription: self.list.subscription.map(SubscriptionId::from),
            failed: self.failed,
            event: self.event,
            order,
        };
        let (mut rows, before, limit) = (Vec::new(), self.list.before(), self.list.page.limit);
        for seller in with_progress(sellers) {
            rows.extend(lists.deliveries_of_seller(seller, filter, before, limit).await?);
            rows.sort_unstable_by_key(|row| Reverse(row.delivery.id));
            rows.truncate(limit.into());
        }
        if rows.is_empty() && before.is_none() && !self.failed {
            note(
                "there is no such delivery: what happened before the subscription, or while its application was \
                 suspended, is in the journal alone (`GET /v1/events`)",
            );
        }
        self.list.print(&rows, format)
    }
}

impl List {
    async fn run(self, database: &Database, why: Undelivered, format: Format) -> anyhow::Result<()> {
        let filter = UndeliveredFilter {
            why,
            seller: self.seller_of(database).await?,
            subscription: self.subscription.map(SubscriptionId::from),
        };
        let lists = database.webhook_lists().await?;
        let rows = lists.undelivered(filter, self.before(), self.page.limit).await?;
        self.print(&rows, format)
    }

    async fn seller_of(&self, database: &Database) -> anyhow::Result<Option<SellerId>> {
        seller_of(database, self.seller.as_deref(), self.subscription).await
    }

    fn before(&self) -> Option<DeliveryId> {
        self.page.before.map(DeliveryId::from)
    }

    fn print(&self, rows: &[SellerDelivery], format: Format) -> anyhow::Result<()> {
        Ok(format.page(rows, self.page, |last| last.delivery.id.uuid())?)
    }
}

/// The sellers, with a line for each thousand that were looked at.
fn with_progress(sellers: Vec<SellerId>) -> impl Iterator<Item = SellerId> {
    let progress = |(n, seller): (usize, SellerId)| {
        if n > 0 && n.is_multiple_of(PROGRESS_EVERY) {
            note(format_args!("looked at {n} sellers"));
        }
        seller
    };
    sellers.into_iter().enumerate().map(progress)
}

/// The named seller, or that of the named subscription; with both, the subscription has to be the seller's.
async fn seller_of(
    database: &Database,
    seller: Option<&str>,
    subscription: Option<Uuid>,
) -> anyhow::Result<Option<SellerId>> {
    let seller = match seller {
        Some(seller) => Some(find_seller(database, seller).await?.id),
        None => None,
    };
    let Some(id) = subscription else {
        return Ok(seller);
    };
    let owner = database.webhook_lists().await?.seller_of(id.into()).await?;
    if owner.is_none_or(|owner| seller.is_some_and(|seller| seller != owner)) {
        let whose = if seller.is_some() { " of this seller" } else { "" };
        let unknown = format!(
            "there is no subscription {id}{whose}: `seller-api admin webhooks subscriptions <seller>` shows a seller's"
        );
        bail!(not_found(unknown));
    }
    Ok(owner)
}

/// Makes the deliveries since an instant that were given up again, the oldest first.
async fn deliver_all_again(
    database: &Database,
    filter: UndeliveredFilter,
    since: DateTime<Utc>,
    format: Format,
) -> anyhow::Result<()> {
    // A page of n may read the ids of n deliveries in n queues.
    const AT_A_TIME: u16 = 200;
    let (lists, mut given_up, mut before) = (database.webhook_lists().await?, Vec::new(), None);
    loop {
        let mut page = lists.undelivered(filter, before, AT_A_TIME).await?;
        page.retain(|row| row.delivery.created_at >= since);
        let Some(last) = page.last() else { break };
        before = Some(last.delivery.id);
        let keys = page
            .iter()
            .map(|row| (row.seller, row.subscription, row.delivery.id));
        given_up.extend(keys);
    }
    if given_up.is_empty() {
        note("no delivery since then was given up");
    }
    let mut printed = Ok(());
    for (seller, subscription, delivery) in given_up.into_iter().rev() {
        match deliver_again(database, seller, (subscription, delivery)).await {
            Ok(made) => {
                let object = json!({ "delivery_id": made.id.to_string() });
                printed = printed.and(format.changed(&object, made.id));
            }
            // An inactive subscription, or one that has been removed meanwhile.
            Err(Failure::Refused(refusal)) => note(format_args!("{delivery}: {refusal}")),
            Err(other) => return Err(use_case_error(other)),
        }
    }
    Ok(printed?)
}

async fn deliver_again(
    database: &Database,
    seller: SellerId,
    which: (SubscriptionId, DeliveryId),
) -> Result<Delivery, Failure<RedeliveryRefusal>> {
    let requester = Requester::Operator(ActingOperator::CommandLine, seller);
    let queued = in_transaction(database, |tx| {
        Box::pin(redeliver(tx, tx, requester, which, tx.now()))
    });
    queued.await
}

/// A subscription at a seller.
struct Subscribed(SellerId, SellerSubscription);

impl Listed for Subscribed {
    const COLUMNS: &'static str = "id created_at active seller_id application url";

    fn object(&self) -> Value {
        let Self(seller, found) = self;
        let subscription = &found.subscription;
        let events = subscription.events.iter().map(|event| event.as_str());
        json!({
            "id": subscription.id.to_string(),
            "seller_id": seller.to_string(),
            "client_id": subscription.client_id.to_string(),
            "application": found.app_name,
            "url": subscription.url.as_str(),
            "events": events.collect::<Vec<_>>(),
            "active": subscription.active,
            "suspended": found.is_suspended,
            "created_at": Timestamp::new(subscription.created_at),
        })
    }
}

impl Listed for SellerDelivery {
    const COLUMNS: &'static str = "id created_at event order_number state attempts next_retry_at response_status seller_id subscription_id application url error";

    fn cell(&self, member: &str) -> Option<String> {
        match (member, &self.delivery.state, self.delivery.outcome()) {
            ("next_retry_at", ..) if self.is_suspended => Some("suspended".to_owned()),
            ("next_retry_at", DeliveryState::Queued, _) => Some("now".to_owned()),
            ("response_status", _, Some(Outcome::Failed(failure))) => Some(failure.as_code().to_owned()),
            _ => None,
        }
    }

    fn object(&self) -> Value {
        let (delivery, state) = (&self.delivery, &self.delivery.state);
        let about = delivery.about();
        let failure = delivery.outcome().and_then(|outcome| match outcome {
            Outcome::Answered(_) => None,
            Outcome::Failed(failure) => Some(failure),
        });
        json!({
            "id": delivery.id.to_string(),
            "seller_id": self.seller.to_string(),
            "subscription_id": self.subscription.to_string(),
            "application": self.app_name,
            "url": self.receiver,
            "event": delivery.event.as_str(),
            "order_id": about.order_id,
            "order_number": about.order_number,
            "offer_id": about.offer_id,
            "created_at": Timestamp::new(delivery.created_at),
            "state": state.as_str(),
            "attempts": state.attempt(),
            "next_retry_at": state.next_retry_at().map(Timestamp::new),
            "suspended": self.is_suspended,
            "delivered_at": state.delivered_at().map(Timestamp::new),
            "response_status": delivery.last().and_then(Attempted::response_status),
            "duration_ms": delivery.last().map(Attempted::duration_ms),
            "failure": failure.map(AttemptFailure::as_code),
            "error": failure.map(ToString::to_string),
        })
    }
}
