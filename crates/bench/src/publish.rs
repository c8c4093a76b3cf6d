//! From findings to the document.

use std::io::Write as _;
use std::path::Path;

use chrono::{DateTime, Utc};

use crate::options::ReportOptions;
use crate::{document, progress};

/// Waits for a report and puts it into its section of the document, or prints it. Fails before anything is measured where
/// the document has no such section.
pub(crate) async fn report(
    options: &ReportOptions,
    section: &str,
    making: impl Future<Output = anyhow::Result<String>>,
) -> anyhow::Result<()> {
    if options.output == Path::new("-") {
        std::io::stdout().write_all(making.await?.as_bytes())?;
        return Ok(());
    }
    document::check(&options.output, section)?;
    document::replace(&options.output, section, &making.await?)?;
    progress::say(&format!("{} is written", options.output.display()));
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
