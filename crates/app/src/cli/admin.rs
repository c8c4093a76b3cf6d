//! `seller-api admin`: operators' tokens, the audit log, and keys.

mod audit;

use std::process::ExitCode;

use adapter_sealing::{KeyRing, SystemRandomness};
use anyhow::{Context as _, bail};
use chrono::SecondsFormat;
use clap::Subcommand;
use oauth::OperatorTokenRow;
use usecases::{
    operator_tokens::{OperatorTokenCreation, OperatorTokenRevocation, operator_token_name},
    transact,
};
use uuid::Uuid;

use super::{block_on, output, quiet, schema, values};
use crate::{
    config::{Loaded, Sources},
    logging,
    wiring::database,
};

/// Manage operators' tokens and keys, and read the audit log
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Tokens for the marketplace's interface
    #[command(subcommand)]
    OperatorTokens(OperatorTokens),
    /// What sellers did in the panel and operators did anywhere
    #[command(subcommand)]
    Audit(audit::Command),
    /// Keys of the service's own
    #[command(subcommand)]
    Keys(Keys),
}

#[derive(Debug, Subcommand)]
enum OperatorTokens {
    /// Make a token
    ///
    /// Prints the token on stdout, this one time; only its hash is kept. Its id goes to stderr.
    #[command(after_long_help = "\
Examples:
  seller-api admin operator-tokens create 'catalogue feed'
  TOKEN=$(seller-api admin operator-tokens create ci)")]
    Create {
        #[command(flatten)]
        name: Name,
    },
    /// List all tokens, oldest first
    #[command(after_long_help = "\
Examples:
  seller-api admin operator-tokens list")]
    List,
    /// Revoke a token, from the next request on
    #[command(after_long_help = "\
Examples:
  seller-api admin operator-tokens revoke 0197a5c4-8b1e-7c3a-9d2f-4e5b6a7c8d9e")]
    Revoke {
        /// The token's id, as `list` shows it
        #[arg(value_parser = values::id)]
        id: Uuid,
    },
}

/// A name, with or without its flag.
#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
struct Name {
    /// 1 to 100 characters, to recognise the token by
    #[arg(value_name = "NAME")]
    positional: Option<String>,
    /// The same as a flag
    #[arg(long = "name", value_name = "NAME")]
    flag: Option<String>,
}

#[derive(Debug, Subcommand)]
enum Keys {
    /// Make a key for `keys.sealing`
    ///
    /// To replace a key, put the new one before the old one, and take the old one out when nothing that it sealed is used
    /// any more (for cursors, a day).
    #[command(after_long_help = "\
Examples:
  seller-api admin keys generate
  SELLER_API__KEYS__SEALING=$(seller-api admin keys generate),$OLD_KEYS seller-api serve")]
    Generate,
}

impl Args {
    pub(super) fn run(self, sources: Sources) -> anyhow::Result<ExitCode> {
        match self.command {
            Command::Keys(Keys::Generate) => output::print(KeyRing::generate(&SystemRandomness::new()))?,
            Command::OperatorTokens(command) => {
                let loaded = started(sources)?;
                block_on(command.run(&loaded))?;
            }
            Command::Audit(command) => {
                let loaded = started(sources)?;
                block_on(command.run(&loaded))?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn started(sources: Sources) -> anyhow::Result<Loaded> {
    let loaded = sources.load()?;
    logging::start(&quiet(&loaded));
    Ok(loaded)
}

impl OperatorTokens {
    async fn run(self, loaded: &Loaded) -> anyhow::Result<()> {
        let database = database(&loaded.config)?;
        schema::require(&database).await?;
        match self {
            Self::Create { name } => {
                let name = name.positional.or(name.flag).unwrap_or_default();
                let name = operator_token_name(name).context("the name")?;
                let creation = OperatorTokenCreation {
                    randomness: &SystemRandomness::new(),
                    name: &name,
                };
                let (id, token) = transact(&*database.units(), &creation).await?;
                output::note(format_args!(
                    "made the operator token {id}; it is shown this one time:"
                ));
                output::print(token.reveal())?;
            }
            Self::List => {
                for row in database.operator_tokens().operator_tokens().await? {
                    output::print(listed(&row))?;
                }
            }
            Self::Revoke { id } => {
                if !transact(&*database.units(), &OperatorTokenRevocation(id)).await? {
                    bail!("there is no operator token {id}");
                }
                output::print(format_args!("revoked {id}"))?;
            }
        }
        Ok(())
    }
}

fn listed(row: &OperatorTokenRow) -> String {
    let time = |at: chrono::DateTime<chrono::Utc>| at.to_rfc3339_opts(SecondsFormat::Secs, true);
    let revoked = row
        .revoked_at
        .map(|at| format!("  revoked {}", time(at)))
        .unwrap_or_default();
    format!("{}  {}  {}{revoked}", row.id, time(row.created_at), row.name)
}
