//! The report of the token endpoint.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::{bars, key};
use crate::counts::Asked;
use crate::machine::Machine;
use crate::options::TokensOptions;
use crate::report::asked::Row;
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
    pub(super) options: TokensOptions,
    /// The subjects.
    pub(super) measured: Vec<Measured>,
    /// What a client's token and a refresh ask of PostgreSQL.
    pub(super) asked: [Asked; 2],
    /// The statements in pgbench's scripts, by their subjects' keys.
    pub(super) scripts: BTreeMap<&'static str, usize>,
}

/// What a subject's rate is divided by.
pub(super) fn base_of(subject: &str) -> &'static str {
    match subject {
        key::REFRESH_ROWS | key::REFRESH => key::REFRESH_ROWS,
        _ => key::TOKEN_ROWS,
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
    writeln!(text, "### Bars of tokens\n")?;
    report::bars::write(bars::all(findings)?, &mut text)?;
    writeln!(text, "### Tokens and refreshes\n")?;
    subjects::rates(&findings.measured, "the first of its kind", base_of, &mut text)?;
    writeln!(text, "### CPU time per token\n")?;
    subjects::costs(&findings.measured, "grouped statements", &mut text)?;
    writeln!(text, "### Statements and round trips of one call\n")?;
    let script = |key: &str| findings.scripts.get(key).copied().unwrap_or_default();
    let [token, refresh] = &findings.asked;
    let rows = [
        Row {
            title: "a client's token",
            short: "token",
            asked: token,
            script: script(key::TOKEN_ROWS),
        },
        Row {
            title: "a refresh",
            short: "refresh",
            asked: refresh,
            script: script(key::REFRESH_ROWS),
        },
    ];
    report::asked::write(&rows, &mut text)?;
    Ok(text)
}
