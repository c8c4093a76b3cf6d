//! `seller-api metrics`.

use std::process::ExitCode;

use super::output;
use crate::meters::reference;

/// Print what the metrics are
///
/// Every metric that /metrics can show, with its kind, its labels and their values, as Markdown.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(super) struct Args {}

const EXAMPLES: &str = "\
Examples:
  seller-api metrics | grep webhook_";

impl Args {
    #[expect(clippy::unused_self, reason = "every command has the same shape")]
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        output::print(reference::markdown().trim_end())?;
        Ok(ExitCode::SUCCESS)
    }
}
