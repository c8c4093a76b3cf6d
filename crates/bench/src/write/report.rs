//! The report of the writing endpoints.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::{bars, key};
use crate::counts::Asked;
use crate::figures::{real, whole};
use crate::machine::Machine;
use crate::options::WriteOptions;
use crate::report::asked::Row;
use crate::report::waits;
use crate::report::{self, subjects};
use crate::rounds::Measured;

/// Everything that a run found.
#[derive(Debug)]
pub(crate) struct Findings {
    /// On what.
    pub(super) machine: Machine,
    /// When.
    pub(super) date: String,
    /// How it was run.
    pub(super) options: WriteOptions,
    /// The subjects.
    pub(super) measured: Vec<Measured>,
    /// What a keyed change, a keyed shipment and a placed order ask of PostgreSQL.
    pub(super) asked: [Asked; 3],
    /// The statements in pgbench's scripts, by their subjects' keys.
    pub(super) scripts: BTreeMap<&'static str, usize>,
}

/// The writes of which it is told what they wait for.
const WAITING: [waits::Row; 3] = [
    waits::Row {
        subject: key::PATCH,
        script: key::PATCH_ROWS,
        locks_first: true,
    },
    waits::Row {
        subject: key::SHIPMENT,
        script: key::SHIPMENT_ROWS,
        locks_first: true,
    },
    waits::Row {
        subject: key::PLACING,
        script: key::PLACING_ROWS,
        locks_first: false,
    },
];

/// Whether it is told what a subject waits for.
pub(super) fn waits_told(subject: &str) -> bool {
    WAITING
        .iter()
        .any(|row| subject == row.subject || subject == row.script)
}

/// What a subject's rate is divided by.
pub(super) fn base_of(subject: &str) -> &'static str {
    match subject {
        key::SHIPMENT_ROWS | key::SHIPMENT => key::SHIPMENT_ROWS,
        key::PLACING_ROWS | key::PLACING => key::PLACING_ROWS,
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
    writeln!(text, "### What a write waits for\n")?;
    waits::write(&WAITING, &findings.measured, &mut text)?;
    writeln!(text, "### Statements and round trips of one request\n")?;
    let script = |key: &str| findings.scripts.get(key).copied().unwrap_or_default();
    let [patch, shipment, placing] = &findings.asked;
    let rows = [
        Row {
            title: "a keyed change",
            short: "change",
            asked: patch,
            script: script(key::PATCH_ROWS),
        },
        Row {
            title: "a keyed shipment",
            short: "shipment",
            asked: shipment,
            script: script(key::SHIPMENT_ROWS),
        },
        Row {
            title: "a placed order",
            short: "order",
            asked: placing,
            script: script(key::PLACING_ROWS),
        },
    ];
    report::asked::write(&rows, &mut text)?;
    Ok(text)
}
