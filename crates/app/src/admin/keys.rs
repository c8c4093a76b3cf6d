//! `seller-api admin keys`: the keys that seal stored values, how many values each key seals, and resealing.

use accounts::Action;
use adapter_postgres::{Database, Resealed, WEBHOOK_SECRETS, sealed_columns};
use adapter_sealing::{KeyRing, SystemRandomness};
use anyhow::bail;
use clap::Subcommand;
use kernel::TransactionError;
use serde_json::{Value, json};
use usecases::{Acting as _, ActingOperator};

use super::in_transaction;
use super::listing::{Format, Listed};
use crate::config::Config;
use crate::sealing_keys::compare;
use crate::wiring::sealer;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Generate a key for `keys.sealing`
    ///
    /// The key is printed and stored nowhere: save it, readable by the service alone, and apart from the
    /// database and its backups. Without it, sealed values stay unreadable.
    ///
    /// To replace a key: put the new one behind the old one and restart every process, so that all can open
    /// its values; put it in front and restart them again; then `reseal`. Once `status` shows nothing under
    /// the old one, and 24 hours after it was in front, take it out.
    Generate,
    /// Count the stored values that each key seals
    ///
    /// A key that seals none, and was not the first for 24 hours, may be taken out. Cursors that it sealed are
    /// refused from then on, and a refresh that is repeated after an answer under it ends its consent.
    ///
    /// The state of a key: `seals` is the first of `keys.sealing`, `opens` another one of it, `missing` is
    /// not in it, and `wrong` opens none of the sampled values under its id. Needs the database and
    /// `keys.sealing`.
    Status,
    /// Seal webhook secrets again, under the first key
    ///
    /// All other sealed values (remembered responses, links in mails, secrets that the panel shows once)
    /// expire.
    ///
    /// Runs beside serving processes: it replaces only unchanged values. Before, restart all of them with the
    /// new key in front, or they continue to seal with the old one. Interrupted, it may be run again. Fails
    /// if values are left that do not open or that were locked, and does nothing if another key sealed the
    /// values with the id of the first key. Needs the database and `keys.sealing`.
    Reseal {
        /// Open every value and report what would be done, but change nothing
        #[arg(long)]
        dry_run: bool,
    },
}

impl Command {
    pub(super) async fn run(self, database: Database, config: &Config, format: Format) -> anyhow::Result<()> {
        let ring = sealer(config)?;
        let database = database.with_sealer(ring.clone());
        match self {
            Self::Generate => generate(format),
            Self::Status => status(&database, &ring, format).await,
            Self::Reseal { dry_run } => reseal(&database, &ring, dry_run, format).await,
        }
    }
}

/// Needs neither database nor configuration.
pub(super) fn generate(format: Format) -> anyhow::Result<()> {
    let key = KeyRing::generate(&SystemRandomness::new());
    Ok(format.said(&json!({ "key": key }), &key)?)
}

async fn status(database: &Database, ring: &KeyRing, format: Format) -> anyhow::Result<()> {
    let compared = compare(database, ring).await?;
    let mut counts = database.sealing_keys().await?;
    for id in ring.ids() {
        counts.entry(id.to_owned()).or_default();
    }
    let mut rows = Vec::new();
    for (key, by_column) in counts {
        let state = if compared.mismatched.contains(&key) {
            "wrong"
        } else if key == ring.first_id() {
            "seals"
        } else if ring.ids().any(|id| id == key) {
            "opens"
        } else {
            "missing"
        };
        rows.extend(sealed_columns().map(|column| KeyRow {
            key: key.clone(),
            state,
            column,
            values: by_column.get(column).copied().unwrap_or_default(),
        }));
    }
    Ok(format.list(&rows)?)
}

/// The number of values in a column that a key seals.
struct KeyRow {
    key: String,
    state: &'static str,
    column: &'static str,
    values: u64,
}

impl Listed for KeyRow {
    const COLUMNS: &'static str = "key state column values";

    fn object(&self) -> Value {
        json!({ "key": self.key, "state": self.state, "column": self.column, "values": self.values })
    }
}

async fn reseal(database: &Database, ring: &KeyRing, dry: bool, format: Format) -> anyhow::Result<()> {
    compare(database, ring).await?.refuse_sealing(ring)?;
    if !dry {
        // The audit log records the beginning: an interrupted run continues when it is run again.
        let begun = in_transaction(database, |tx| {
            let key = ring.first_id().to_owned();
            Box::pin(async move {
                let by = ActingOperator::CommandLine;
                Ok::<_, TransactionError>(by.log(tx, Action::ResealingBegun, key).await?)
            })
        });
        begun.await?;
    }
    let key = ring.first_id();
    let outcome = database.reseal(key, dry).await?;
    let (column, resealed, current) = (WEBHOOK_SECRETS, outcome.resealed, outcome.current);
    let done = if dry { "would be sealed" } else { "sealed" };
    let printed = format.changed(
        &json!({ "column": column, "key": key, "resealed": resealed, "current": current, "dry_run": dry }),
        format_args!("{column}: {resealed} {done} anew under {key}, {current} under it already"),
    );
    fail_if_incomplete(ring, &outcome)?;
    Ok(printed?)
}

/// Fails if a value is still sealed under another key.
fn fail_if_incomplete(ring: &KeyRing, outcome: &Resealed) -> anyhow::Result<()> {
    let (mut reasons, busy) = (Vec::new(), outcome.busy);
    for (key, count) in &outcome.unopened {
        let why = if ring.ids().any(|id| id == key) {
            "though it is in `keys.sealing`: they were changed, or the id is that of another key"
        } else {
            "which is not in `keys.sealing`: put it there, or they stay unreadable"
        };
        reasons.push(format!("{count} values do not open under the key {key:?}, {why}"));
    }
    if busy > 0 {
        reasons.push(format!(
            "{busy} values were locked or changed by others: run this again"
        ));
    }
    if reasons.is_empty() {
        return Ok(());
    }
    bail!(reasons.join("; "))
}
