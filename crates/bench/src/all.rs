//! Everything in one run on one cluster: each part writes its own section when it is done, and in the end stands the table of
//! goals.

mod parts;

use std::io::Write as _;
use std::path::Path;
use std::time::Instant;

use clap::ValueEnum as _;

use crate::goals::{self, Found};
use crate::options::{AllOptions, Part};
use crate::progress::{Progress, say};
use crate::publish::{self, Report};
use crate::stand::Ground;

/// The table's section in the document.
const SECTION: &str = "goals";

/// Runs it all.
pub(crate) async fn run(options: &AllOptions) -> anyhow::Result<()> {
    let output = &options.report.output;
    let parts: Vec<_> = Part::value_variants()
        .iter()
        .copied()
        .filter(|part| wanted(options, *part))
        .collect();
    for part in &parts {
        publish::check(output, parts::section(*part))?;
    }
    publish::check(output, SECTION)?;
    let begun = Instant::now();
    let ground = Ground::prepare(&options.stand, Progress::new()).await?;
    let mut found = Vec::new();
    for part in &parts {
        let of_part = Instant::now();
        say(&format!("=== {part:?}"));
        let (report, goals) = parts::measure(*part, &ground, options).await?;
        publish::publish(output, parts::section(*part), &report)?;
        found.extend(goals);
        say(&format!("{part:?} took {} s", of_part.elapsed().as_secs()));
    }
    say(&format!("everything took {} s", begun.elapsed().as_secs()));
    tell(options, &ground, found)
}

fn wanted(options: &AllOptions, part: Part) -> bool {
    options.only.is_empty() || options.only.contains(&part)
}

/// Writes the table of goals, or prints it where parts are missing.
fn tell(options: &AllOptions, ground: &Ground, found: Vec<Found>) -> anyhow::Result<()> {
    let table = goals::render(found)?;
    if !options.only.is_empty() {
        std::io::stdout().write_all(table.as_bytes())?;
        return Ok(());
    }
    let mut text = String::new();
    let stand = &options.stand;
    crate::report::heading(
        &publish::date(&options.report),
        &ground.machine,
        options.report.rounds,
        stand,
        &mut text,
    )?;
    text.push_str(&table);
    publish::publish(Path::new(&options.report.output), SECTION, &Report::of(text))
}
