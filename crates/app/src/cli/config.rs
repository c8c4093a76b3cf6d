//! `seller-api config`.

use std::process::ExitCode;

use super::output;
use crate::config::Loaded;

/// Show the effective configuration
///
/// Prints every key with its effective value as TOML, and where a value comes from unless it is the default. Secrets are
/// hidden. Fails, as every command does, where a key is unknown or a value cannot be.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(super) struct Args {}

const EXAMPLES: &str = "\
Examples:
  seller-api config
  seller-api config --config /etc/seller-api.toml
  SELLER_API__RATE_LIMIT__DEFAULT=1200 seller-api config | grep -A1 rate_limit";

impl Args {
    #[expect(clippy::unused_self, reason = "every command has the same shape")]
    pub(super) fn run(self, loaded: &Loaded) -> anyhow::Result<ExitCode> {
        output::print(loaded.to_string().trim_end())?;
        Ok(ExitCode::SUCCESS)
    }
}
