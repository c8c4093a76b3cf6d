//! `seller-api openapi`.

use std::process::ExitCode;

use super::output;
use crate::config::Loaded;
use crate::external_services::docs_url;

/// Print the OpenAPI document of the public API
///
/// It is OpenAPI 3.1, made of what the server routes and decodes by, and the same that is served at `/openapi.json`. Its
/// server is `server.public_url`, or the address of `server.bind` where that is not set.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(super) struct Args {}

const EXAMPLES: &str = "\
Examples:
  seller-api openapi > openapi.json
  SELLER_API__SERVER__PUBLIC_URL=https://api.example.com seller-api openapi | jq '.paths | keys'";

impl Args {
    #[expect(clippy::unused_self, reason = "every command has the same shape")]
    pub(super) fn run(self, loaded: &Loaded) -> anyhow::Result<ExitCode> {
        let server = &loaded.config.server;
        let public_url = server.public_url_at(server.bind);
        let document = adapter_http::openapi(&public_url, &docs_url(&loaded.config, &public_url));
        output::print(document.trim_end())?;
        Ok(ExitCode::SUCCESS)
    }
}
