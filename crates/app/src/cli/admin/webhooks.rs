//! `seller-api admin webhooks`.

mod shown;

use adapter_sealing::SystemRandomness;
use async_trait::async_trait;
use clap::Subcommand;
use kernel::SellerId;
use serde_json::json;
use usecases::{
    ActingOperator, Failure, Transaction, Work, operator_deliveries::deliver_again, own_deliveries::Stores,
    redeliver::Refusal,
};
use uuid::Uuid;
use webhooks::{DeliveryId, DeliveryOfAny, SubscriptionId, Undelivered, UndeliveredFilter};

use super::{
    super::{
        exit::Stopped,
        values::{self, SellerName},
    },
    listing::{Format, Limit},
    office::Office,
};

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// List the subscriptions to a seller's events, oldest first, ended ones too
    #[command(after_long_help = "\
Examples:
  seller-api admin webhooks subscriptions 17
  seller-api admin webhooks subscriptions 17 --json | jq -r 'select(.active).url'")]
    Subscriptions {
        /// The seller's id, number or e-mail address
        seller: SellerName,
        #[command(flatten)]
        format: Format,
    },
    /// List deliveries that are due, now or later, newest first
    #[command(after_long_help = "\
Examples:
  seller-api admin webhooks pending
  seller-api admin webhooks pending --seller 17 --limit 20
  seller-api admin webhooks pending --before 0197a5c4-8b1e-7c3a-9d2f-4e5b6a7c8d9e    the next page")]
    Pending(List),
    /// List deliveries all of whose attempts failed, newest first
    #[command(after_long_help = "\
Examples:
  seller-api admin webhooks exhausted --json
  seller-api admin webhooks exhausted --subscription 0197a5c4-8b1e-7c3a-9d2f-4e5b6a7c8d9e")]
    Exhausted(List),
    /// Have the event of an earlier delivery delivered again
    ///
    /// As a new delivery, with an id and attempts of its own; prints the id. The lists show what names a delivery.
    #[command(after_long_help = "\
Examples:
  seller-api admin webhooks deliver-again 0197a5c4-8b1e-7c3a-9d2f-4e5b6a7c8d9e --seller 17 \\
    --subscription 0197a5c4-8b1e-7c3a-9d2f-4e5b6a7c8d9e")]
    DeliverAgain(DeliverAgain),
}

#[derive(Debug, clap::Args)]
pub(super) struct List {
    /// Only those to this seller's subscriptions: id, number or e-mail address
    #[arg(long)]
    seller: Option<SellerName>,
    /// Only those to the subscription with this id
    #[arg(long, value_name = "ID", value_parser = values::id)]
    subscription: Option<Uuid>,
    #[command(flatten)]
    limit: Limit,
    /// Only those older than the one with this id
    #[arg(long, value_name = "ID", value_parser = values::id)]
    before: Option<Uuid>,
    #[command(flatten)]
    format: Format,
}

#[derive(Debug, clap::Args)]
pub(super) struct DeliverAgain {
    /// The earlier delivery's id
    #[arg(value_parser = values::id)]
    delivery: Uuid,
    /// Whose subscription it was: the seller's id, number or e-mail address
    #[arg(long)]
    seller: SellerName,
    /// The subscription's id
    #[arg(long, value_name = "ID", value_parser = values::id)]
    subscription: Uuid,
    #[command(flatten)]
    format: Format,
}

impl Command {
    pub(super) async fn run(self, office: &Office) -> anyhow::Result<()> {
        match self {
            Self::Subscriptions { seller, format } => {
                let seller = office.seller(&seller).await?;
                let subscriptions = office.database.subscriptions();
                let found = subscriptions.subscriptions_of_seller(seller.id).await?;
                Ok(format.list(&found)?)
            }
            Self::Pending(list) => list.run(office, Undelivered::Pending).await,
            Self::Exhausted(list) => list.run(office, Undelivered::Exhausted).await,
            Self::DeliverAgain(again) => again.run(office).await,
        }
    }
}

impl List {
    async fn run(self, office: &Office, why: Undelivered) -> anyhow::Result<()> {
        let seller = match &self.seller {
            Some(seller) => Some(office.seller(seller).await?.id),
            None => None,
        };
        let filter = UndeliveredFilter {
            why,
            seller,
            subscription: self.subscription.map(SubscriptionId::from),
        };
        let before = self.before.map(DeliveryId::from);
        let directory = office.database.delivery_directory();
        if let Some(id) = filter.subscription
            && !directory.has_subscription(seller, id).await?
        {
            let whose = if seller.is_some() { " of this seller" } else { "" };
            let unknown = format!(
                "there is no subscription {id}{whose}: `seller-api admin webhooks subscriptions` shows a seller's"
            );
            return Err(Stopped::NotFound(unknown).into());
        }
        let found = directory.undelivered(filter, before, self.limit.limit).await?;
        let next = |last: &DeliveryOfAny| format!("--before {}", last.delivery.id);
        Ok(self.format.page(&found, self.limit, next)?)
    }
}

impl DeliverAgain {
    async fn run(self, office: &Office) -> anyhow::Result<()> {
        let again = Again {
            seller: office.seller(&self.seller).await?.id,
            subscription: self.subscription.into(),
            delivery: self.delivery.into(),
        };
        let id = office.change(&again).await?;
        Ok(self
            .format
            .changed(&json!({ "delivery_id": id.to_string() }), id)?)
    }
}

struct Again {
    seller: SellerId,
    subscription: SubscriptionId,
    delivery: DeliveryId,
}

#[async_trait]
impl Work for Again {
    type Done = DeliveryId;
    type Error = Failure<Refusal>;

    async fn run(&self, tx: &dyn Transaction) -> Result<DeliveryId, Self::Error> {
        let stores = Stores {
            subscriptions: tx,
            panel: tx,
        };
        let by = (ActingOperator::CommandLine, self.seller);
        let which = (self.subscription, self.delivery);
        deliver_again(stores, &SystemRandomness::new(), by, which, tx.now()).await
    }
}
