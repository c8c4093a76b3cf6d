//! `seller-api admin connections`.

use clap::Subcommand;
use oauth::{ConnectedApplication, Scope};
use serde_json::{Value, json};

use super::{
    super::values::SellerName,
    listing::{Format, Listed, instant, second},
    office::Office,
};

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// List the applications that a seller has let in, by name
    ///
    /// Only those that hold something they could still use. To end all that one holds, revoke its tokens
    /// (`seller-api admin tokens revoke`).
    #[command(after_long_help = "\
Examples:
  seller-api admin connections list 17
  seller-api admin connections list shop@example.com --json")]
    List {
        /// The seller's id, number or e-mail address
        seller: SellerName,
        #[command(flatten)]
        format: Format,
    },
}

impl Command {
    pub(super) async fn run(self, office: &Office) -> anyhow::Result<()> {
        let Self::List { seller, format } = self;
        let seller = office.seller(&seller).await?;
        let connections = office.database.grants().connections(seller.id).await?;
        Ok(format.list(&connections)?)
    }
}

impl Listed for ConnectedApplication {
    const HEAD: &'static [&'static str] = &["CLIENT ID", "CONNECTED", "USED", "NAME", "BY"];

    fn cells(&self) -> Vec<String> {
        let used = self.used_at.map(second);
        vec![
            self.client_id.to_string(),
            second(self.connected_at),
            used.unwrap_or_else(|| "-".to_owned()),
            self.name.clone(),
            self.owner_name.clone(),
        ]
    }

    fn object(&self) -> Value {
        json!({
            "client_id": self.client_id.to_string(),
            "name": self.name,
            "owner_id": self.owner.to_string(),
            "owner_name": self.owner_name,
            "scopes": self.scopes.iter().map(Scope::as_str).collect::<Vec<_>>(),
            "connected_at": instant(self.connected_at),
            "used_at": self.used_at.map(instant),
        })
    }
}
