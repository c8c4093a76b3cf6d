//! What the reports of all benches have in common: the machine, the bars, a table of subjects and one of their costs.

pub(crate) mod asked;
pub(crate) mod bars;
pub(crate) mod pictures;
pub(crate) mod subjects;
pub(crate) mod waits;

use std::fmt::Write as _;

use crate::figures;
use crate::machine::Machine;
use crate::options::StandOptions;

/// Writes when and on what it was measured, with `run`, which tells how.
pub(crate) fn facts(date: &str, machine: &Machine, run: &str, text: &mut String) -> anyhow::Result<()> {
    writeln!(text, "Measured on {date}.\n\n| | |\n|---|---|")?;
    for (name, value) in &machine.facts {
        writeln!(text, "| {name} | {value} |")?;
    }
    writeln!(text, "| Run | {run} |\n")?;
    Ok(())
}

/// Writes when, on what and how rounds of subjects were measured.
pub(crate) fn heading(
    date: &str,
    machine: &Machine,
    rounds: u64,
    stand: &StandOptions,
    text: &mut String,
) -> anyhow::Result<()> {
    let run = format!(
        "{} of {} s each, {} connections, {} sellers",
        figures::rounds(rounds),
        stand.seconds,
        stand.concurrency,
        stand.sellers
    );
    facts(date, machine, &run, text)
}
