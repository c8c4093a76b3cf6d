//! `seller-api import`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use adapter_backoffice::{ImportReport, Importer};
use anyhow::Context as _;
use clap::Subcommand;
use indicatif::{ProgressBar, ProgressStyle};
use tokio::fs::File;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use web::Tasks;

use crate::admin::{
    self,
    listing::{escaped, visible},
};
use crate::command::{PrintError, block_on, note, print};
use crate::config::Loaded;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Import offers from a file
    ///
    /// Reads one JSON object a line, as `POST /sellers/{seller}/offers:import` of the back office does, at
    /// any size. Refused lines are reported on stderr with their number; the others are imported, and counted
    /// on stdout; with --json both are one object on stdout. Fails if a line was refused. Interrupted, it may be
    /// repeated from the start: that sets stock and status again, whatever orders and the seller did since.
    Offers {
        /// The file; - reads stdin
        file: PathBuf,
        /// Whose offers they are: the seller's id, number or e-mail address
        #[arg(long)]
        seller: String,
        /// The report of `POST /sellers/{seller}/offers:import`, refused lines included, instead of sentences
        #[arg(long)]
        json: bool,
    },
}

/// The size of a read, in bytes.
const CHUNK_SIZE: usize = 256 * 1024;
const BROKE_OFF: &str = "the import broke off; it may be repeated from its start";
const BAR: &str = "{bar:40} {bytes}/{total_bytes}  {msg}  {bytes_per_sec}  {eta} left";
const COUNTER: &str = "{spinner} {bytes}  {msg}  {bytes_per_sec}";

impl Command {
    pub(super) fn run(self, loaded: &Loaded) -> anyhow::Result<ExitCode> {
        let Self::Offers { file, seller, json } = self;
        let report = block_on(offers(loaded, &file, &seller))?;
        let printed = if json {
            print(escaped(&serde_json::to_string(&report)?))
        } else {
            for rejected in &report.rejected {
                for entry in &rejected.errors {
                    let path = entry.path().map(|path| format!("{path}: ")).unwrap_or_default();
                    let text = visible(&format!("{path}{}", entry.message()));
                    note(format_args!("line {}: {text}", rejected.line));
                }
            }
            print(summary(&report))
        };
        if report.rejected_total > 0 {
            return match printed {
                Err(error) if !error.is_broken_pipe() => Err(error.into()),
                _ => Ok(ExitCode::FAILURE),
            };
        }
        printed.map_err(PrintError::done)?;
        Ok(ExitCode::SUCCESS)
    }
}

async fn offers(loaded: &Loaded, file: &Path, seller: &str) -> anyhow::Result<ImportReport> {
    let database = admin::open_database(&loaded.config).await?;
    let seller = admin::find_seller(&database, seller).await?.id;
    let (places, tasks) = (Arc::new(Semaphore::new(1)), Tasks::new(Handle::current()));
    let importer = Importer::new(database.units(), places, tasks, seller);
    if file == Path::new("-") {
        return feed(importer, tokio::io::stdin(), progress(None)).await;
    }
    let name = || format!("cannot read {}", file.display());
    let input = File::open(file).await.with_context(name)?;
    let size = input.metadata().await.with_context(name)?.len();
    feed(importer, input, progress(Some(size))).await
}

async fn feed(
    mut importer: Importer,
    mut input: impl AsyncRead + Unpin,
    progress: ProgressBar,
) -> anyhow::Result<ImportReport> {
    let mut chunk = vec![0; CHUNK_SIZE];
    loop {
        let length = input.read(&mut chunk).await.context("the input broke off")?;
        let Some(read) = chunk.get(..length).filter(|read| !read.is_empty()) else {
            break;
        };
        importer.feed(read).await.context(BROKE_OFF)?;
        progress.inc(u64::try_from(length).unwrap_or_default());
        progress.set_message(format!("{} lines", importer.lines_read()));
    }
    let report = importer.finish().await.context(BROKE_OFF)?;
    progress.finish_and_clear();
    Ok(report)
}

/// A progress bar for an input of known size, otherwise a counter. Shown only on a terminal.
fn progress(size: Option<u64>) -> ProgressBar {
    let (bar, template) = match size {
        Some(size) => (ProgressBar::new(size), BAR),
        None => (ProgressBar::no_length(), COUNTER),
    };
    bar.enable_steady_tick(Duration::from_millis(100));
    bar.with_style(ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()))
}

fn summary(report: &ImportReport) -> String {
    let listed = u64::try_from(report.rejected.len()).unwrap_or(u64::MAX);
    let partly = (report.rejected_total > listed).then(|| format!(" (the first {listed} are listed)"));
    format!(
        "created {}, updated {}, unchanged {}, rejected {}{}",
        report.created,
        report.updated,
        report.unchanged,
        report.rejected_total,
        partly.unwrap_or_default()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_reports_when_not_all_rejected_lines_are_listed() {
        let mut report = ImportReport::default();
        (
            report.created,
            report.updated,
            report.unchanged,
            report.rejected_total,
        ) = (1, 2, 3, 4);
        let expected = "created 1, updated 2, unchanged 3, rejected 4 (the first 0 are listed)";
        assert_eq!(summary(&report), expected);
    }

    #[test]
    fn the_templates_of_the_progress_bar_are_valid() {
        assert!(
            [BAR, COUNTER]
                .iter()
                .all(|text| ProgressStyle::with_template(text).is_ok())
        );
    }
}
