//! `seller-api admin sellers`.

use async_trait::async_trait;
use clap::Subcommand;
use kernel::SellerId;
use oauth::{ApplicationFilter, Seller};
use serde_json::{Value, json};
use usecases::{ActingOperator, Failure, Transaction, Work, close_seller};

use super::{
    super::values::SellerName,
    confirmation::Confirmation,
    listing::{Format, Limit, Listed, instant, second},
    office::Office,
};

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// List sellers by their numbers, closed ones too
    #[command(after_long_help = "\
Examples:
  seller-api admin sellers list
  seller-api admin sellers list --limit 20 --after 20      the next page
  seller-api admin sellers list --json | jq -r 'select(.closed_at == null).id'")]
    List {
        #[command(flatten)]
        limit: Limit,
        /// Only those with a number above this one
        #[arg(long, value_name = "NUMBER", default_value_t = 0)]
        after: i32,
        #[command(flatten)]
        format: Format,
    },
    /// Show one seller
    #[command(after_long_help = "\
Examples:
  seller-api admin sellers show 17
  seller-api admin sellers show shop@example.com --json")]
    Show {
        /// The seller's id, number or e-mail address
        seller: SellerName,
        #[command(flatten)]
        format: Format,
    },
    /// Close a seller's account for good
    ///
    /// Its tokens and sessions are rejected from the next request on, and its subscriptions end. Closing it again changes
    /// nothing.
    #[command(after_long_help = "\
Examples:
  seller-api admin sellers close 17
  seller-api admin sellers close 0197a5c4-8b1e-7c3a-9d2f-4e5b6a7c8d9e --yes")]
    Close {
        /// The seller's id, number or e-mail address
        seller: SellerName,
        #[command(flatten)]
        confirmation: Confirmation,
        #[command(flatten)]
        format: Format,
    },
}

impl Command {
    pub(super) async fn run(self, office: &Office) -> anyhow::Result<()> {
        match self {
            Self::List { limit, after, format } => {
                let sellers = office.database.sellers().sellers(after, limit.limit).await?;
                format.page(&sellers, limit, |last| format!("--after {}", last.seller_no))?;
            }
            Self::Show { seller, format } => {
                let seller = office.seller(&seller).await?;
                format.one(&with_counts(office, &seller).await?)?;
            }
            Self::Close {
                seller,
                confirmation,
                format,
            } => {
                let seller = office.seller(&seller).await?;
                confirmation.ask(format_args!("closing the account of seller {}", seller.seller_no))?;
                let closed = office.change(&Closing(seller.id)).await?;
                let sentence = format!("closed seller {} ({})", closed.seller_no, closed.id);
                format.changed(&closed.object(), sentence)?;
            }
        }
        Ok(())
    }
}

/// The seller with how much there is of what belongs to it.
async fn with_counts(office: &Office, seller: &Seller) -> anyhow::Result<Value> {
    let filter = ApplicationFilter {
        owner: Some(seller.id),
        status: None,
    };
    let applications = office.database.application_directory();
    let applications = applications.applications(filter, None, u16::MAX).await?;
    let connections = office.database.grants().connections(seller.id).await?;
    let subscriptions = office.database.subscriptions();
    let subscriptions = subscriptions.subscriptions_of_seller(seller.id).await?;
    let mut object = seller.object();
    if let Some(fields) = object.as_object_mut() {
        fields.insert("applications".to_owned(), applications.len().into());
        fields.insert("connections".to_owned(), connections.len().into());
        fields.insert("subscriptions".to_owned(), subscriptions.len().into());
    }
    Ok(object)
}

struct Closing(SellerId);

#[async_trait]
impl Work for Closing {
    type Done = Seller;
    type Error = Failure<close_seller::Refusal>;

    async fn run(&self, tx: &dyn Transaction) -> Result<Seller, Self::Error> {
        let what = (ActingOperator::CommandLine, self.0);
        close_seller::close_seller((tx, tx), what, tx.now()).await
    }
}

impl Listed for Seller {
    const HEAD: &'static [&'static str] = &["NO", "ID", "CREATED", "CLOSED", "NAME"];

    fn cells(&self) -> Vec<String> {
        let closed = self.closed_at.map(second);
        vec![
            self.seller_no.to_string(),
            self.id.to_string(),
            second(self.created_at),
            closed.unwrap_or_else(|| "-".to_owned()),
            self.name.clone(),
        ]
    }

    fn object(&self) -> Value {
        json!({
            "id": self.id.to_string(),
            "seller_no": self.seller_no,
            "name": self.name,
            "email": self.email,
            "created_at": instant(self.created_at),
            "closed_at": self.closed_at.map(instant),
        })
    }
}
