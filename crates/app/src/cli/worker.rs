//! `seller-api worker`.

use std::process::ExitCode;

use super::{block_on, with_flags};
use crate::{config::Sources, traces};

/// Do the work that goes on beside requests
///
/// Delivers webhooks, sends mails, asks carriers about parcels on their way, and clears what has had its time: what `serve` does too
/// unless it is told not to (`serve --workers none`). Run as many as needed on one database; work is leased, so that none of
/// it is done twice. Needs the same configuration as `serve`. /healthz, /readyz and /metrics answer at `worker.bind`. Starts
/// in any order, and ends on SIGTERM or SIGINT as `serve` does.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(super) struct Args {
    /// Where /healthz, /readyz and /metrics answer; port 0 takes a free one [default: 127.0.0.1:8082]
    #[arg(long, value_name = "ADDRESS:PORT")]
    bind: Option<String>,
}

const EXAMPLES: &str = "\
Examples:
  seller-api serve --workers none &
  seller-api worker
  seller-api worker --config /etc/seller-api.toml --bind 10.0.0.5:8082";

impl Args {
    pub(super) fn run(self, sources: Sources) -> anyhow::Result<ExitCode> {
        let loaded = with_flags(sources, [("--bind", "worker.bind", self.bind)]).load()?;
        traces::start(&loaded.config)?;
        block_on(crate::serve::work(&loaded))
    }
}
