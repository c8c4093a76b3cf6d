//! From findings to the document.

use std::io::Write as _;
use std::path::Path;

use chrono::{DateTime, Utc};

use crate::options::ReportOptions;
use crate::plot::{self, Plot};
use crate::{document, progress};

/// What a bench tells.
#[derive(Debug)]
pub(crate) struct Report {
    /// The text of its section.
    pub(crate) text: String,
    /// The pictures beside it.
    pub(crate) plots: Vec<Plot>,
}

impl Report {
    /// A text alone.
    pub(crate) const fn of(text: String) -> Self {
        Self {
            text,
            plots: Vec::new(),
        }
    }

    /// A text that shows plots.
    pub(crate) fn with(mut text: String, plots: Vec<Plot>) -> Self {
        plot::append(&plots, &mut text);
        Self { text, plots }
    }
}

/// Waits for a report and puts it into its section of the document, or prints it. Fails before anything is measured where
/// the document has no such section.
pub(crate) async fn report(
    options: &ReportOptions,
    section: &str,
    making: impl Future<Output = anyhow::Result<Report>>,
) -> anyhow::Result<()> {
    check(&options.output, section)?;
    publish(&options.output, section, &making.await?)
}

/// Fails where the document has no such section.
pub(crate) fn check(output: &Path, section: &str) -> anyhow::Result<()> {
    if output == Path::new("-") {
        return Ok(());
    }
    document::check(output, section)
}

/// Puts a report into its section of the document, with its pictures beside it; or prints it, without them.
pub(crate) fn publish(output: &Path, section: &str, report: &Report) -> anyhow::Result<()> {
    if output == Path::new("-") {
        std::io::stdout().write_all(report.text.as_bytes())?;
        return Ok(());
    }
    plot::write(&report.plots, output)?;
    document::replace(output, section, &report.text)?;
    progress::say(&format!("{}: the section {section} is written", output.display()));
    Ok(())
}

/// The date that a report names.
pub(crate) fn date(options: &ReportOptions) -> String {
    options.date.clone().unwrap_or_else(today)
}

fn today() -> String {
    #[expect(
        clippy::disallowed_methods,
        reason = "a report names the day it was made on, and no rule hangs on it"
    )]
    let now: DateTime<Utc> = std::time::SystemTime::now().into();
    now.format("%Y-%m-%d").to_string()
}
