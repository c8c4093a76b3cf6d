//! `seller-api admin adopt-database`.

use adapter_postgres::{Adoption, Arrival, Database};
use anyhow::bail;
use serde_json::json;

use super::listing::Format;
use super::tokens::confirm;
use crate::command::{Exit, ExitError, note};

#[derive(Debug, clap::Args)]
pub(crate) struct Command {
    #[command(flatten)]
    arrival: ArrivalArgs,
    /// Do not ask for confirmation; required without a terminal
    #[arg(long)]
    yes: bool,
}

#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
struct ArrivalArgs {
    /// Its rows are a dump's: empty the change feed, whose readers start over
    #[arg(long)]
    restored: bool,
    /// `pg_upgrade` or a copy has brought every row: keep the change feed, unless it is ahead of this
    /// cluster's transactions
    #[arg(long)]
    upgraded: bool,
}

const AHEAD: &str =
    "the change feed names transactions that this cluster has yet to begin: empty it, by --restored";

impl Command {
    pub(super) async fn run(self, database: &Database, format: Format) -> anyhow::Result<()> {
        let (arrival, feed) = if self.arrival.restored {
            (Arrival::Restored, "empties its change feed")
        } else {
            (Arrival::Upgraded, "continues its change feed")
        };
        let identity = database.identity().await?;
        let id = &identity.here;
        let doubt = if self.arrival.restored && identity.is_own() {
            "; its rows are its own already, so go on only if a dump was restored in place"
        } else {
            ""
        };
        if !self.yes && (self.arrival.restored || !identity.is_own()) {
            confirm(&format!(
                "adopting the database {id}, which {feed} and sends the webhooks and mails that wait in it{doubt}"
            ))?;
        }
        let adoption = database.adopt(arrival).await?;
        let (sentence, removed) = match adoption {
            Adoption::FeedAhead => bail!(ExitError(Exit::Failed, AHEAD.to_owned())),
            Adoption::Unneeded => (format!("the rows of the database {id} are its own already"), 0),
            Adoption::Adopted { removed } => (format!("adopted the database {id}, which {feed}"), removed),
        };
        let object = json!({ "database": id, "adopted": adoption != Adoption::Unneeded, "removed": removed });
        let printed = format.changed(&object, sentence);
        if arrival == Arrival::Restored && adoption != Adoption::Unneeded {
            note(
                "the marketplace reads anew: every earlier cursor of `/changes` is 409, so its readers start without `after`, and take all \
                 offers and orders again. What came after the dump is gone: \"High availability\" in the operations guide lists what to repeat",
            );
        }
        Ok(printed?)
    }
}
