//! `seller-api config`.

use std::{process::ExitCode, sync::Arc};

use adapter_sealing::SystemClock;
use kernel::Clock;

use super::{block_on, output};
use crate::{
    config::{Sources, reference},
    tls::Tls,
};

/// Show the effective configuration, or what there is to configure
///
/// Without a command, prints every key with its effective value as TOML, and where a value comes from unless it is the
/// default. Secrets are hidden. Fails, as every command does, where a key is unknown or a value cannot be, and as `serve` does
/// where the certificates that it names cannot be served. That a key is missing which only some commands need, such as
/// `database.url`, is told by those.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Reference(Reference),
}

/// Print what every key means
///
/// Every key with its type, default, range and environment variable, what it does and which processes read it, as
/// Markdown. Needs no configuration.
#[derive(Debug, clap::Args)]
#[command(after_long_help = REFERENCE_EXAMPLES)]
struct Reference {}

const EXAMPLES: &str = "\
Examples:
  seller-api config
  seller-api config --config /etc/seller-api.toml
  SELLER_API__RATE_LIMIT__DEFAULT=1200 seller-api config | grep -A1 rate_limit
  seller-api config reference";

const REFERENCE_EXAMPLES: &str = "\
Examples:
  seller-api config reference | less
  seller-api config reference | grep webhooks";

impl Args {
    pub(super) fn run(self, sources: Sources) -> anyhow::Result<ExitCode> {
        match self.command {
            None => {
                let loaded = sources.load()?;
                let clock: Arc<dyn Clock> = Arc::new(SystemClock);
                block_on(async { Tls::load(&loaded.config.server, &clock).await })?;
                output::print(loaded.to_string().trim_end())?;
            }
            Some(Command::Reference(Reference {})) => output::print(reference::markdown()?.trim_end())?,
        }
        Ok(ExitCode::SUCCESS)
    }
}
