//! `seller-api admin applications`.

mod changes;

use clap::{Subcommand, ValueEnum};
use oauth::{Application, ApplicationFilter, ApplicationStatus, ClientId, RateLimit, Scope};
use serde_json::{Value, json};
use usecases::manage_application::Move;

use self::changes::{Change, Changing, Deletion};
use super::{
    super::values::{self, ApplicationName, SellerName},
    confirmation::Confirmation,
    listing::{Format, Limit, Listed, instant, second},
    office::Office,
};

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// List applications, newest first
    #[command(after_long_help = "\
Examples:
  seller-api admin applications list --status pending
  seller-api admin applications list --seller 17 --json
  seller-api admin applications list --before psa_0197a5c48b1e7c3a9d2f4e5b6a7c8d9e    the next page")]
    List(List),
    /// Show one application
    #[command(after_long_help = "\
Examples:
  seller-api admin applications show 'Stock Sync'
  seller-api admin applications show psa_0197a5c48b1e7c3a9d2f4e5b6a7c8d9e --json")]
    Show(Which),
    /// Accept a pending application: sellers can let it in
    #[command(after_long_help = "\
Examples:
  seller-api admin applications accept 'Stock Sync'")]
    Accept(Which),
    /// Suspend an application: its tokens are rejected from the next request on
    #[command(after_long_help = "\
Examples:
  seller-api admin applications suspend psa_0197a5c48b1e7c3a9d2f4e5b6a7c8d9e")]
    Suspend(Which),
    /// Reinstate a suspended application: tokens that have not expired work again
    #[command(after_long_help = "\
Examples:
  seller-api admin applications reinstate psa_0197a5c48b1e7c3a9d2f4e5b6a7c8d9e")]
    Reinstate(Which),
    /// Set how many requests a minute an application may make, from the next request on
    #[command(after_long_help = "\
Examples:
  seller-api admin applications set-limit 'Stock Sync' 1200
  seller-api admin applications set-limit 'Stock Sync' default")]
    SetLimit {
        #[command(flatten)]
        which: Which,
        /// Requests a minute, or `default` for the service's own limit
        #[arg(value_parser = values::rate_limit)]
        limit: RateLimit,
    },
    /// Delete an application for good
    ///
    /// Its tokens are rejected from the next request on, and its subscriptions are gone. Its name stays taken.
    #[command(after_long_help = "\
Examples:
  seller-api admin applications delete 'Stock Sync'
  seller-api admin applications delete psa_0197a5c48b1e7c3a9d2f4e5b6a7c8d9e --yes")]
    Delete {
        #[command(flatten)]
        which: Which,
        #[command(flatten)]
        confirmation: Confirmation,
    },
}

#[derive(Debug, clap::Args)]
pub(super) struct List {
    /// Only those that stand so
    #[arg(long, value_enum)]
    status: Option<Status>,
    /// Only those of this seller: id, number or e-mail address
    #[arg(long)]
    seller: Option<SellerName>,
    #[command(flatten)]
    limit: Limit,
    /// Only those made before the one with this id
    #[arg(long, value_name = "CLIENT_ID", value_parser = values::client_id)]
    before: Option<ClientId>,
    #[command(flatten)]
    format: Format,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Status {
    Pending,
    Active,
    Suspended,
}

/// One application.
#[derive(Debug, clap::Args)]
pub(super) struct Which {
    /// The application's `client_id` or name
    application: ApplicationName,
    #[command(flatten)]
    format: Format,
}

impl From<Status> for ApplicationStatus {
    fn from(status: Status) -> Self {
        match status {
            Status::Pending => Self::Pending,
            Status::Active => Self::Active,
            Status::Suspended => Self::Suspended,
        }
    }
}

impl Command {
    pub(super) async fn run(self, office: &Office) -> anyhow::Result<()> {
        match self {
            Self::List(list) => list.run(office).await,
            Self::Show(which) => {
                let application = office.application(&which.application).await?;
                Ok(which.format.one(&application.object())?)
            }
            Self::Accept(which) => which.change(office, Change::Move(Move::Accept)).await,
            Self::Suspend(which) => which.change(office, Change::Move(Move::Suspend)).await,
            Self::Reinstate(which) => which.change(office, Change::Move(Move::Reinstate)).await,
            Self::SetLimit { which, limit } => which.change(office, Change::Limit(limit)).await,
            Self::Delete { which, confirmation } => which.delete(office, confirmation).await,
        }
    }
}

impl List {
    async fn run(self, office: &Office) -> anyhow::Result<()> {
        let owner = match &self.seller {
            Some(seller) => Some(office.seller(seller).await?.id),
            None => None,
        };
        let filter = ApplicationFilter {
            status: self.status.map(ApplicationStatus::from),
            owner,
        };
        let directory = office.database.application_directory();
        let found = directory
            .applications(filter, self.before, self.limit.limit)
            .await?;
        let next = |last: &Application| format!("--before {}", last.client_id);
        Ok(self.format.page(&found, self.limit, next)?)
    }
}

impl Which {
    async fn change(self, office: &Office, change: Change) -> anyhow::Result<()> {
        let client_id = office.application(&self.application).await?.client_id;
        let after = office.change(&Changing(client_id, change)).await?;
        let sentence = format!(
            "{} ({client_id}) is {}, with {}",
            after.name,
            after.status.as_str(),
            limit(&after)
        );
        Ok(self.format.changed(&after.object(), sentence)?)
    }

    async fn delete(self, office: &Office, confirmation: Confirmation) -> anyhow::Result<()> {
        let application = office.application(&self.application).await?;
        let (name, client_id) = (&application.name, application.client_id);
        confirmation.ask(format_args!("deleting the application {name} ({client_id})"))?;
        office.change(&Deletion(client_id)).await?;
        let deleted = json!({ "client_id": client_id.to_string(), "deleted": true });
        Ok(self
            .format
            .changed(&deleted, format_args!("deleted {name} ({client_id})"))?)
    }
}

fn limit(application: &Application) -> String {
    match application.rate_limit {
        Some(limit) => format!("{limit} requests a minute"),
        None => "the service's own limit".to_owned(),
    }
}

impl Listed for Application {
    const HEAD: &'static [&'static str] = &["CLIENT ID", "STATUS", "LIMIT", "CREATED", "SELLER", "NAME"];

    fn cells(&self) -> Vec<String> {
        let limit = self.rate_limit.map(|limit| limit.to_string());
        vec![
            self.client_id.to_string(),
            self.status.as_str().to_owned(),
            limit.unwrap_or_else(|| "default".to_owned()),
            second(self.created_at),
            self.owner.to_string(),
            self.name.clone(),
        ]
    }

    fn object(&self) -> Value {
        json!({
            "client_id": self.client_id.to_string(),
            "seller_id": self.owner.to_string(),
            "name": self.name,
            "description": self.description,
            "documentation_url": self.documentation_url,
            "purpose": self.purpose.as_str(),
            "client_type": self.client_type.as_str(),
            "redirect_uris": self.redirect_uris,
            "scopes": self.scopes.iter().map(Scope::as_str).collect::<Vec<_>>(),
            "status": self.status.as_str(),
            "rate_limit": self.rate_limit,
            "created_at": instant(self.created_at),
        })
    }
}
