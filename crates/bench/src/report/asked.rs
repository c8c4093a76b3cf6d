//! The tables of what requests ask of PostgreSQL.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use crate::counts::Asked;

/// A kind of request beside pgbench's script for it.
#[derive(Debug)]
pub(crate) struct Row<'a> {
    /// What the request is.
    pub(crate) title: &'a str,
    /// The same in a word.
    pub(crate) short: &'a str,
    /// What it asks.
    pub(crate) asked: &'a Asked,
    /// How many statements the script has, each a round trip.
    pub(crate) script: usize,
}

/// Writes how much each kind asks, and what it is that it asks.
pub(crate) fn write(rows: &[Row<'_>], text: &mut String) -> anyhow::Result<()> {
    writeln!(text, "| | statements | round trips |\n|---|--:|--:|")?;
    for Row {
        title, asked, script, ..
    } in rows
    {
        let (count, round_trips) = (asked.count(), asked.round_trips);
        writeln!(text, "| {title} | {count:.1} | {round_trips:.1} |")?;
        writeln!(text, "| … `pgbench`'s script for it | {script} | {script} |")?;
    }
    writeln!(text)?;
    let kinds: Vec<_> = rows.iter().map(|row| (row.short, row.asked)).collect();
    columns(&kinds, text)
}

/// Writes what it is that each kind asks; the kinds are named in a word.
pub(crate) fn columns(kinds: &[(&str, &Asked)], text: &mut String) -> anyhow::Result<()> {
    let heads: Vec<_> = kinds.iter().map(|(kind, _)| *kind).collect();
    let ruler = "--:|".repeat(kinds.len());
    writeln!(
        text,
        "| executed for each | {} |\n|---|{ruler}",
        heads.join(" | ")
    )?;
    let all = kinds.iter().flat_map(|(_, asked)| &asked.statements);
    let names: BTreeSet<&str> = all.map(|(name, _)| name.as_str()).collect();
    for name in names {
        let cells: Vec<_> = kinds.iter().map(|(_, asked)| times(asked, name)).collect();
        writeln!(text, "| `{name}` | {} |", cells.join(" | "))?;
    }
    Ok(())
}

fn times(asked: &Asked, name: &str) -> String {
    let own = asked.statements.iter().filter(|(other, _)| other == name);
    let times: f64 = own.map(|(_, times)| times).sum();
    match times {
        0.0 => "–".to_owned(),
        rare if rare < 0.1 => format!("{rare:.3}"),
        often => format!("{often:.1}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_a_column() {
        let asked = |name: &str| Asked {
            round_trips: 2.0,
            fewest_round_trips: 2,
            all: 2.0,
            statements: vec![("begin".to_owned(), 1.0), (name.to_owned(), 1.0)],
        };
        let (one, other) = (asked("a"), asked("b"));
        let row = |short, asked| Row {
            title: short,
            short,
            asked,
            script: 3,
        };
        let mut text = String::new();
        write(&[row("x", &one), row("y", &other)], &mut text).unwrap();
        for line in [
            "| x | 2.0 | 2.0 |",
            "| `begin` | 1.0 | 1.0 |",
            "| `b` | – | 1.0 |",
            "|---|--:|--:|",
        ] {
            assert!(text.contains(line), "{text}");
        }
    }
}
