//! `seller-api admin`: what operators look at and do by hand.

mod applications;
mod audit;
mod confirmation;
mod connections;
mod keys;
mod listing;
pub(super) mod office;
mod operator_tokens;
mod sellers;
mod tokens;
mod webhooks;

use std::process::ExitCode;

use clap::Subcommand;

use self::office::Office;
use super::{block_on, quiet};
use crate::{
    config::{Loaded, Sources},
    logging,
};

/// Look after sellers, applications, tokens, webhooks and keys, and read the audit log
///
/// Works on the database itself and needs no running `serve`: `database.url` (or `DATABASE_URL`) is enough, but for `keys status` and
/// `keys reseal`, which need `keys.sealing` too, and `keys generate`, which needs nothing. What is changed is noted in the audit
/// log, and seen by the next request to every process.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    #[command(flatten)]
    Office(OfficeCommand),
    /// Keys of the service's own
    #[command(subcommand)]
    Keys(keys::Command),
}

/// What works on accounts and what belongs to them.
#[derive(Debug, Subcommand)]
enum OfficeCommand {
    /// Sellers' accounts
    #[command(subcommand)]
    Sellers(sellers::Command),
    /// Applications
    #[command(subcommand)]
    Applications(applications::Command),
    /// Tokens of applications and sellers
    #[command(subcommand)]
    Tokens(tokens::Command),
    /// Which applications sellers have let in
    #[command(subcommand)]
    Connections(connections::Command),
    /// Subscriptions, and deliveries that have not arrived
    #[command(subcommand)]
    Webhooks(webhooks::Command),
    /// Tokens for the marketplace's interface
    #[command(subcommand)]
    OperatorTokens(operator_tokens::Command),
    /// What sellers did in the panel and operators did anywhere
    #[command(subcommand)]
    Audit(audit::Command),
}

impl Args {
    pub(super) fn run(self, sources: Sources) -> anyhow::Result<ExitCode> {
        match self.command {
            Command::Keys(command) => command.run(sources)?,
            Command::Office(command) => {
                let loaded = started(sources)?;
                block_on(async { command.run(&Office::open(&loaded.config).await?).await })?;
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

impl OfficeCommand {
    async fn run(self, office: &Office) -> anyhow::Result<()> {
        match self {
            Self::Sellers(command) => command.run(office).await,
            Self::Applications(command) => command.run(office).await,
            Self::Tokens(command) => command.run(office).await,
            Self::Connections(command) => command.run(office).await,
            Self::Webhooks(command) => command.run(office).await,
            Self::OperatorTokens(command) => command.run(office).await,
            Self::Audit(command) => command.run(office).await,
        }
    }
}
