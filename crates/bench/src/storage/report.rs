//! The report of storage.

mod queues;

use std::fmt::Write as _;

use super::keys;
use super::lists::Poll;
use super::operations;
use super::plans::Plan;
use super::updates::{self, Variant};
use super::writes::Writes;
use crate::deliveries::churn::Churned;
use crate::explained::Scan;
use crate::figures::{Spread, ratio_spread, real, rounds, whole, whole_spread};
use crate::machine::Machine;
use crate::options::StorageOptions;
use crate::report;
use crate::tables::Table;
use crate::wal::{Sample, Written};

/// Tables with fewer updates are passed over.
const FEWEST: u64 = 50;

/// Everything that a run found.
#[derive(Debug)]
pub(crate) struct Findings {
    /// On what.
    pub(super) machine: Machine,
    /// When.
    pub(super) date: String,
    /// How it was run.
    pub(super) options: StorageOptions,
    /// What requests write.
    pub(super) requests: Vec<Writes>,
    /// What pgbench's scripts write.
    pub(super) scripts: Vec<Writes>,
    /// What the requests have updated.
    pub(super) updated: Vec<Table>,
    /// Offers with the index by `updated_at` and without it.
    pub(super) variants: Vec<Variant>,
    /// Lists of what has changed, with it and without it.
    pub(super) polls: Vec<Poll>,
    /// Waves of keys, vacuumed and not.
    pub(super) keys: [Vec<keys::Wave>; 2],
    /// The plans of statements.
    pub(super) plans: Vec<Plan>,
    /// Deliveries.
    pub(super) churned: Churned,
}

/// The whole report.
pub(super) fn render(findings: &Findings) -> anyhow::Result<String> {
    let mut text = String::new();
    let options = &findings.options;
    let run = format!(
        "{}; {} offers, {} orders, {} sellers; waves of {}",
        rounds(options.report.rounds),
        whole(real(options.offers)),
        whole(real(options.orders)),
        whole(real(options.stand.sellers)),
        whole(real(options.wave))
    );
    report::facts(&findings.date, &findings.machine, &run, &mut text)?;
    writeln!(text, "### What a write adds to the write-ahead log\n")?;
    written(findings, &mut text)?;
    writeln!(text, "### Updates that spare the indexes\n")?;
    spared(findings, &mut text)?;
    writeln!(text, "### Offers with and without the index by `updated_at`\n")?;
    variants(findings, &mut text)?;
    polls(&findings.polls, &mut text)?;
    writeln!(text, "### Queues under churn\n")?;
    queues::deliveries(&findings.churned, &mut text)?;
    queues::keys(&findings.keys, &mut text)?;
    writeln!(text, "### Plans of the statements that are executed most\n")?;
    plans(&findings.plans, &mut text)?;
    Ok(text)
}

fn written(findings: &Findings, text: &mut String) -> anyhow::Result<()> {
    writeln!(
        text,
        "| | at once | records | bytes | of rows | of indexes | of commits and others | and pages written whole |\n\
         |---|--:|--:|--:|--:|--:|--:|--:|"
    )?;
    let mut all: Vec<_> = findings.requests.iter().chain(&findings.scripts).collect();
    all.sort_by_key(|writes| operations::place(writes.key));
    for writes in all {
        line(&writes.title, &writes.at_once.to_string(), &writes.samples, text)?;
    }
    let [alone, many] = &findings.churned.written;
    line(
        "a webhook's delivery, from the event's row to the answer's",
        "1",
        alone,
        text,
    )?;
    let count = many.first().map_or(0, |sample| sample.operations);
    line("the same in a backlog", &whole(real(count)), many, text)?;
    writeln!(text)?;
    Ok(())
}

fn line(title: &str, at_once: &str, samples: &[Sample], text: &mut String) -> anyhow::Result<()> {
    let spread = |figure: fn(&Written) -> u64| Spread::of(samples.iter().map(|sample| sample.each(figure)));
    let middle = |figure| whole(spread(figure).median);
    writeln!(
        text,
        "| {title} | {at_once} | {:.1} | {} | {} | {} | {} | {} |",
        spread(|written| written.records).median,
        whole_spread(spread(Written::bytes)),
        middle(|written| written.rows),
        middle(|written| written.indexes),
        middle(|written| written.rest),
        middle(|written| written.images),
    )?;
    Ok(())
}

fn spared(findings: &Findings, text: &mut String) -> anyhow::Result<()> {
    writeln!(
        text,
        "| table | fillfactor | updates | of them HOT, % |\n|---|--:|--:|--:|"
    )?;
    let all = findings.updated.iter().chain(&findings.churned.updated);
    for table in all.filter(|table| table.updates >= FEWEST && !table.name.starts_with("bench_")) {
        writeln!(
            text,
            "| `{}` | {} | {} | {:.1} |",
            table.name,
            table.fillfactor,
            whole(real(table.updates)),
            updates::hot(table)
        )?;
    }
    writeln!(text)?;
    Ok(())
}

fn variants(findings: &Findings, text: &mut String) -> anyhow::Result<()> {
    let Some(shipped) = findings.variants.first() else {
        return Ok(());
    };
    let updates: u64 = shipped.samples.iter().map(|sample| sample.operations).sum();
    writeln!(
        text,
        "{} updates of {} offers each, by pgbench on {} connections whose commits do not wait for the disk.\n",
        whole(real(updates)),
        whole(real(updates::offers(&findings.options))),
        findings.options.stand.concurrency
    )?;
    writeln!(
        text,
        "| | updates/s | ÷ as shipped | HOT, % | log, bytes an update | of rows | of indexes | and pages written whole | \
         table, MB | indexes, MB | vacuumed |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|"
    )?;
    for variant in &findings.variants {
        let each = |figure: fn(&Written) -> u64| {
            Spread::of(variant.samples.iter().map(|sample| sample.each(figure)))
        };
        let Variant { before, after, .. } = variant;
        writeln!(
            text,
            "| {} | {} | {} | {:.1} | {} | {} | {} | {} | {} → {} | {} → {} | {} |",
            variant.title,
            whole_spread(Spread::of(variant.rates.iter().copied())),
            ratio_spread(variant.over(shipped)),
            updates::hot(after),
            whole_spread(each(Written::bytes)),
            whole(each(|written| written.rows).median),
            whole(each(|written| written.indexes).median),
            whole(each(|written| written.images).median),
            megabytes(before.bytes),
            megabytes(after.bytes),
            megabytes(before.indexes),
            megabytes(after.indexes),
            after.vacuums,
        )?;
    }
    writeln!(text)?;
    Ok(())
}

fn polls(polls: &[Poll], text: &mut String) -> anyhow::Result<()> {
    writeln!(
        text,
        "`GET /v1/offers?updated_after=…&limit=50` of the largest seller, all its statements but the gate's together:\n"
    )?;
    writeln!(
        text,
        "| | statements | ms | pages | reads |\n|---|--:|--:|--:|---|"
    )?;
    for poll in polls {
        writeln!(
            text,
            "| {} | {:.0} | {:.2} | {} | {} |",
            poll.title,
            poll.statements,
            poll.milliseconds,
            whole(poll.pages),
            scans(&poll.scans)
        )?;
    }
    writeln!(text)?;
    Ok(())
}

fn plans(plans: &[Plan], text: &mut String) -> anyhow::Result<()> {
    writeln!(
        text,
        "| statement | ms | rows | pages in memory | others | reads |\n|---|--:|--:|--:|--:|---|"
    )?;
    for Plan {
        title,
        cost,
        scans: read,
    } in plans
    {
        writeln!(
            text,
            "| {title} | {:.2} | {:.0} | {:.0} | {:.0} | {} |",
            cost.milliseconds,
            cost.rows,
            cost.hit,
            cost.read,
            scans(read)
        )?;
    }
    Ok(())
}

/// Indexes by their names; a large table that is read from end to end stands out.
fn scans(scans: &[Scan]) -> String {
    let name = |scan: &Scan| match scan.kind.as_str() {
        _ if scan.is_whole() && scan.few => format!("all of `{}`", scan.of),
        _ if scan.is_whole() => format!("**all of `{}`**", scan.of),
        "Index Only Scan" => format!("`{}` alone", scan.of),
        _ => format!("`{}`", scan.of),
    };
    let names: Vec<_> = scans.iter().map(name).collect();
    if names.is_empty() {
        "–".to_owned()
    } else {
        names.join(", ")
    }
}

fn megabytes(bytes: u64) -> String {
    format!("{:.1}", real(bytes) / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_whole_stands_out() {
        let scan = |kind: &str, of: &str| Scan {
            kind: kind.to_owned(),
            of: of.to_owned(),
            few: of != "c",
        };
        assert_eq!(scans(&[]), "–");
        let all = [
            scan("Index Only Scan", "a_pkey"),
            scan("Index Scan", "b_pkey"),
            scan("Seq Scan", "c"),
            scan("Seq Scan", "d"),
        ];
        assert_eq!(
            scans(&all),
            "`a_pkey` alone, `b_pkey`, **all of `c`**, all of `d`"
        );
    }

    #[test]
    fn a_line_shows_what_each_operation_wrote() {
        let sample = |operations| Sample {
            operations,
            written: Written {
                records: 300,
                rows: 6_000,
                indexes: 3_000,
                rest: 1_000,
                images: 500,
            },
        };
        let mut text = String::new();
        line("x", "32", &[sample(10), sample(100), sample(50)], &mut text).unwrap();
        assert_eq!(text, "| x | 32 | 6.0 | 200 (100–1 000) | 120 | 60 | 20 | 10 |\n");
    }
}
