//! The report of the writing endpoints.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::counts::Asked;
use super::{bars, key};
use crate::figures::{real, whole};
use crate::machine::Machine;
use crate::options::WriteOptions;
use crate::report::{self, subjects};
use crate::rounds::Measured;

/// Everything that a run found.
#[derive(Debug)]
pub(super) struct Findings {
    /// On what.
    pub(super) machine: Machine,
    /// When.
    pub(super) date: String,
    /// How it was run.
    pub(super) options: WriteOptions,
    /// The subjects.
    pub(super) measured: Vec<Measured>,
    /// What a keyed change and a keyed shipment ask of PostgreSQL.
    pub(super) asked: [Asked; 2],
    /// The statements in pgbench's scripts, by their subjects' keys.
    pub(super) scripts: BTreeMap<&'static str, usize>,
}

/// What a subject's rate is divided by.
fn base_of(subject: &str) -> &'static str {
    match subject {
        key::SHIPMENT_ROWS | key::SHIPMENT => key::SHIPMENT_ROWS,
        key::ORDERS | key::DEEP => key::ORDERS,
        _ => key::PATCH_ROWS,
    }
}

/// The whole report.
pub(super) fn render(findings: &Findings) -> anyhow::Result<String> {
    let mut text = String::new();
    let options = &findings.options;
    report::heading(
        &findings.date,
        &findings.machine,
        options.report.rounds,
        &options.stand,
        &mut text,
    )?;
    writeln!(
        text,
        "{} offers, {} orders, of which the first seller has a fifth.\n",
        whole(real(options.offers)),
        whole(real(options.orders))
    )?;
    writeln!(text, "### Bars of writing\n")?;
    report::bars::write(bars::all(findings)?, &mut text)?;
    writeln!(text, "### Writes, and lists of orders\n")?;
    subjects::rates(&findings.measured, "the first of its kind", base_of, &mut text)?;
    writeln!(text, "### CPU time per write\n")?;
    subjects::costs(&findings.measured, "grouped statements", &mut text)?;
    writeln!(text, "### Statements and round trips of one request\n")?;
    asked(findings, &mut text)?;
    Ok(text)
}

fn asked(findings: &Findings, text: &mut String) -> anyhow::Result<()> {
    let [patch, shipment] = &findings.asked;
    writeln!(text, "| | statements | round trips |\n|---|--:|--:|")?;
    for (title, asked, script) in [
        ("a keyed change", patch, key::PATCH_ROWS),
        ("a keyed shipment", shipment, key::SHIPMENT_ROWS),
    ] {
        let (count, round_trips) = (asked.count(), asked.round_trips);
        writeln!(text, "| {title} | {count:.1} | {round_trips:.1} |")?;
        let script = findings.scripts.get(script).copied().unwrap_or_default();
        writeln!(text, "| … `pgbench`'s script for it | {script} | {script} |")?;
    }
    writeln!(
        text,
        "\n| executed in one request | change | shipment |\n|---|--:|--:|"
    )?;
    let all = patch.statements.iter().chain(&shipment.statements);
    let names: BTreeSet<&str> = all.map(|(name, _)| name.as_str()).collect();
    for name in names {
        let times = |asked: &Asked| -> f64 {
            let own = asked.statements.iter().filter(|(other, _)| other == name);
            own.map(|(_, times)| times).sum()
        };
        let cell = |times: f64| {
            if times > 0.0 {
                format!("{times:.1}")
            } else {
                "–".to_owned()
            }
        };
        writeln!(
            text,
            "| `{name}` | {} | {} |",
            cell(times(patch)),
            cell(times(shipment))
        )?;
    }
    Ok(())
}
