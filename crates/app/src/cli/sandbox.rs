//! `seller-api sandbox`.

use std::{path::PathBuf, process::ExitCode};

use clap::ValueEnum;

use super::{block_on, with_flags};
use crate::{config::Sources, sandbox, traces};

/// Try everything out: the whole service with data to play with
///
/// Starts a PostgreSQL of its own in the data directory, from the server programs that are installed, migrates it, seeds it
/// once, and serves. Prints calls to copy, and writes all credentials to credentials.json in the data directory. The data
/// stay for the next start. Mails are laid into the folder mail there, and carriers are simulated: the tracking number
/// tells what they say (DELIVERED, TRANSIT, LATER, TIMEOUT, ERROR in it). Where `DATABASE_URL` is set, that database is used instead, if it is empty or a sandbox's already.
/// All configuration but that of mail servers and carriers is honoured. Ends on Ctrl-C, and its PostgreSQL with it.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(super) struct Args {
    /// The port of /v1 and /oauth; 0 takes a free one [default: 8080]
    #[arg(long)]
    port: Option<u16>,
    /// The port of the marketplace's interface; 0 takes a free one [default: 8081]
    #[arg(long)]
    backoffice_port: Option<u16>,
    /// Where everything is kept
    #[arg(long, value_name = "FOLDER", default_value = ".sandbox")]
    data_dir: PathBuf,
    /// Which receivers webhooks may go to: those of the public internet, or any, for local development [default: public]
    #[arg(long, value_enum)]
    webhook_addresses: Option<WebhookAddresses>,
    /// Begin anew: delete what earlier sandboxes have left in the data directory
    #[arg(long)]
    fresh: bool,
}

/// Where webhooks may go.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum WebhookAddresses {
    /// As the contract has it: https, and no address of a private network.
    Public,
    /// http and loopback too.
    Any,
}

impl WebhookAddresses {
    fn name(self) -> String {
        match self {
            Self::Public => "public",
            Self::Any => "any",
        }
        .to_owned()
    }
}

const EXAMPLES: &str = "\
Examples:
  seller-api sandbox
  seller-api sandbox --fresh
  seller-api sandbox --webhook-addresses any
  seller-api sandbox --port 0 --backoffice-port 0 --data-dir /tmp/sandbox
  SELLER_API__RATE_LIMIT__DEFAULT=5 seller-api sandbox
  SELLER_API__TRACKING__POLL_INTERVAL=1s seller-api sandbox
  DATABASE_URL=postgres://localhost/empty seller-api sandbox";

impl Args {
    pub(super) fn run(self, sources: Sources) -> anyhow::Result<ExitCode> {
        let addresses = self.webhook_addresses.map(WebhookAddresses::name);
        let flags = [("--webhook-addresses", "webhooks.addresses", addresses)];
        let loaded = with_flags(sources, flags).load()?;
        traces::start(&loaded.config)?;
        let options = sandbox::Options {
            data_dir: self.data_dir,
            port: self.port,
            backoffice_port: self.backoffice_port,
            fresh: self.fresh,
        };
        block_on(sandbox::run(loaded, options))
    }
}
