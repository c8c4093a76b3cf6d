//! `seller-api admin operator-tokens`.

use adapter_sealing::SystemRandomness;
use clap::Subcommand;
use oauth::OperatorTokenRow;
use serde_json::{Value, json};
use usecases::{
    operator_tokens::{OperatorTokenCreation, OperatorTokenRevocation, operator_token_name},
    transact,
};
use uuid::Uuid;

use super::{
    super::{exit::Stopped, output, values},
    listing::{Format, Listed, instant, second},
    office::Office,
};

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Make a token
    ///
    /// Prints the token on stdout, this one time; only its hash is kept. Its id goes to stderr.
    #[command(after_long_help = "\
Examples:
  seller-api admin operator-tokens create 'catalogue feed'
  TOKEN=$(seller-api admin operator-tokens create ci)
  seller-api admin operator-tokens create ci --json | jq -r .token")]
    Create {
        #[command(flatten)]
        name: Name,
        #[command(flatten)]
        format: Format,
    },
    /// List all tokens, oldest first
    #[command(after_long_help = "\
Examples:
  seller-api admin operator-tokens list
  seller-api admin operator-tokens list --json | jq -r 'select(.revoked_at == null).name'")]
    List {
        #[command(flatten)]
        format: Format,
    },
    /// Revoke a token, from the next request on
    #[command(after_long_help = "\
Examples:
  seller-api admin operator-tokens revoke 0197a5c4-8b1e-7c3a-9d2f-4e5b6a7c8d9e")]
    Revoke {
        /// The token's id, as `list` shows it
        #[arg(value_parser = values::id)]
        id: Uuid,
        #[command(flatten)]
        format: Format,
    },
}

/// A name, with or without its flag.
#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
pub(super) struct Name {
    /// 1 to 100 characters, to recognise the token by
    #[arg(value_name = "NAME")]
    positional: Option<String>,
    /// The same as a flag
    #[arg(long = "name", value_name = "NAME")]
    flag: Option<String>,
}

impl Command {
    pub(super) async fn run(self, office: &Office) -> anyhow::Result<()> {
        let units = office.database.units();
        match self {
            Self::Create { name, format } => {
                let name = name.positional.or(name.flag).unwrap_or_default();
                let name =
                    operator_token_name(name).map_err(|error| Stopped::Usage(format!("the name {error}")))?;
                let creation = OperatorTokenCreation {
                    randomness: &SystemRandomness::new(),
                    name: &name,
                };
                let (id, token) = transact(&*units, &creation).await?;
                output::note(format_args!(
                    "made the operator token {id}; it is shown this one time:"
                ));
                let object = json!({ "id": id.to_string(), "name": name, "token": token.reveal() });
                format.changed(&object, token.reveal())?;
            }
            Self::List { format } => {
                let tokens = office.database.operator_tokens().operator_tokens().await?;
                format.list(&tokens)?;
            }
            Self::Revoke { id, format } => {
                if !transact(&*units, &OperatorTokenRevocation(id)).await? {
                    let unknown = format!(
                        "there is no operator token {id} that could be revoked: `seller-api admin operator-tokens list` shows all"
                    );
                    return Err(Stopped::NotFound(unknown).into());
                }
                let object = json!({ "id": id.to_string(), "revoked": true });
                format.changed(&object, format_args!("revoked {id}"))?;
            }
        }
        Ok(())
    }
}

impl Listed for OperatorTokenRow {
    const HEAD: &'static [&'static str] = &["ID", "CREATED", "REVOKED", "NAME"];

    fn cells(&self) -> Vec<String> {
        let revoked = self.revoked_at.map(second);
        vec![
            self.id.to_string(),
            second(self.created_at),
            revoked.unwrap_or_else(|| "-".to_owned()),
            self.name.clone(),
        ]
    }

    fn object(&self) -> Value {
        json!({
            "id": self.id.to_string(),
            "name": self.name,
            "created_at": instant(self.created_at),
            "revoked_at": self.revoked_at.map(instant),
        })
    }
}
