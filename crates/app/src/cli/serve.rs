//! `seller-api serve`.

use std::process::ExitCode;

use clap::ValueEnum;

use super::{block_on, with_flags};
use crate::{config::Sources, traces};

/// Serve the API and the marketplace's interface
///
/// Needs a database (`DATABASE_URL` or `database.url`) and a key (`keys.sealing`). Starts in any order: while the database
/// is away or its schema is missing or older, it listens, answers 503 at /readyz of the marketplace's listener, and waits.
/// On SIGTERM or SIGINT it is not ready any more, lets clients go (`server.drain`), then takes no new connections, finishes
/// what runs (`server.shutdown_timeout`) and exits with 0; a second signal ends it at once. The log goes to stderr, as text or JSON (`log.format`).
///
/// The background workers (webhooks, mails, parcels on their way, clearing) run in the same process, or with --workers none
/// in processes of their own (`seller-api worker`).
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(super) struct Args {
    /// Where /v1 and /oauth listen; port 0 takes a free one [default: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDRESS:PORT")]
    bind: Option<String>,
    /// Where the marketplace's interface listens; port 0 takes a free one [default: 127.0.0.1:8081]
    #[arg(long, value_name = "ADDRESS:PORT")]
    backoffice_bind: Option<String>,
    /// Which background workers run in this process [default: all]
    #[arg(long, value_enum)]
    workers: Option<Workers>,
}

/// Which workers run.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Workers {
    /// None: a `seller-api worker` does the work
    None,
    /// All of them
    All,
}

const EXAMPLES: &str = "\
Examples:
  export DATABASE_URL=postgres://seller_api:secret@db.internal/seller_api
  (umask 077; set -C; seller-api admin keys generate > sealing.key)   once; keep it
  export SELLER_API__KEYS__SEALING=\"$(cat sealing.key)\"
  seller-api migrate && seller-api serve
  seller-api serve --bind 0.0.0.0:8080 --backoffice-bind 10.0.0.5:8081
  seller-api serve --workers none";

impl Workers {
    fn name(self) -> String {
        match self {
            Self::None => "none",
            Self::All => "all",
        }
        .to_owned()
    }
}

impl Args {
    pub(super) fn run(self, sources: Sources) -> anyhow::Result<ExitCode> {
        let flags = [
            ("--bind", "server.bind", self.bind),
            (
                "--backoffice-bind",
                "server.backoffice_bind",
                self.backoffice_bind,
            ),
            ("--workers", "server.workers", self.workers.map(Workers::name)),
        ];
        let loaded = with_flags(sources, flags).load()?;
        traces::start(&loaded.config)?;
        block_on(crate::serve::serve(&loaded))
    }
}
