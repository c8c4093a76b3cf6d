//! The report of webhooks.

use std::fmt::Write as _;

use super::drain::Drained;
use super::findings::{Findings, spread};
use crate::figures::{self, milliseconds, real, whole, whole_spread};
use crate::load::Latency;
use crate::memory::mebibytes;
use crate::plot::{Bar, Part, Plot, bars};
use crate::report;

/// The whole report.
pub(super) fn render(findings: &Findings) -> anyhow::Result<String> {
    let mut text = String::new();
    let options = &findings.options;
    let run = format!(
        "{}; backlogs of {} deliveries, {} subscriptions; latencies at {} events/s for {} s",
        figures::rounds(options.report.rounds),
        whole(real(options.deliveries)),
        options.subscriptions,
        options.events,
        options.stand.seconds
    );
    report::facts(&findings.date, &findings.machine, &run, &mut text)?;
    writeln!(text, "### Bars of webhooks\n")?;
    report::bars::write(findings.bars(), &mut text)?;
    writeln!(text, "### Backlogs\n")?;
    backlogs(findings, &mut text)?;
    writeln!(text, "### From an event to its first attempt\n")?;
    latencies(findings, &mut text)?;
    writeln!(text, "### Statements of a delivery\n")?;
    let [one, all] = &findings.counted;
    report::asked::columns(&[("one subscription", one), ("all", all)], &mut text)?;
    writeln!(text, "\n### Memory\n")?;
    memory(findings, &mut text)?;
    Ok(text)
}

fn backlogs(findings: &Findings, text: &mut String) -> anyhow::Result<()> {
    writeln!(
        text,
        "| | deliveries/s | PostgreSQL µs | server µs | receiver µs | sum µs | statements | round trips | others % |\n\
         |---|--:|--:|--:|--:|--:|--:|--:|--:|"
    )?;
    let [one, all] = &findings.counted;
    let rounds = &findings.rounds;
    let titles = [
        "one subscription".to_owned(),
        format!("{} subscriptions", findings.options.subscriptions),
    ];
    for (title, (drains, asked)) in titles.iter().zip([(&rounds.one, one), (&rounds.all, all)]) {
        let middle = |figure: fn(&Drained) -> f64| spread(drains, figure).median;
        writeln!(
            text,
            "| {title} | {} | {:.1} | {:.1} | {:.1} | {:.1} | {:.2} | {:.2} | {:.0} |",
            whole_spread(spread(drains, |drained| drained.rate)),
            middle(|drained| drained.cpu.postgres),
            middle(|drained| drained.cpu.server),
            middle(|drained| drained.cpu.client),
            middle(|drained| drained.cpu.sum()),
            asked.all,
            asked.round_trips,
            middle(|drained| drained.others * 100.0),
        )?;
    }
    writeln!(text)?;
    Ok(())
}

/// What a delivery costs each process, drawn.
pub(super) fn costs(findings: &Findings) -> Plot {
    let rounds = &findings.rounds;
    let bar = |name: String, drains: &Vec<Drained>| {
        let middle = |figure: fn(&Drained) -> f64| Part {
            value: spread(drains, figure).median,
            spread: None,
        };
        Bar {
            name,
            parts: vec![
                middle(|drained| drained.cpu.postgres),
                middle(|drained| drained.cpu.server),
                middle(|drained| drained.cpu.client),
            ],
            goal: None,
            text: format!("{}/s", whole(spread(drains, |drained| drained.rate).median)),
        }
    };
    let all = [
        bar("one subscription".to_owned(), &rounds.one),
        bar(
            format!("{} subscriptions", findings.options.subscriptions),
            &rounds.all,
        ),
    ];
    let title = "CPU time of a delivery, µs, and deliveries a second";
    Plot {
        name: "webhooks",
        says: format!("{title}: the table of backlogs, drawn"),
        svg: bars(title, &["PostgreSQL", "worker", "receiver"], &all),
    }
}

fn latencies(findings: &Findings, text: &mut String) -> anyhow::Result<()> {
    writeln!(
        text,
        "| | deliveries | p50 ms | p95 ms | p99 ms | max ms |\n|---|--:|--:|--:|--:|--:|"
    )?;
    let beside = format!(
        "beside a dead receiver with {} deliveries pending",
        whole(real(findings.options.dead))
    );
    let rounds = &findings.rounds;
    for (title, latencies) in [("nothing else to do", &rounds.quiet), (&beside, &rounds.beside)] {
        let mut sum = Latency::new()?;
        for latency in latencies {
            sum.add(latency)?;
        }
        let quantile = |share| milliseconds(sum.quantile(share));
        writeln!(
            text,
            "| {title} | {} | {} | {} | {} | {} |",
            whole(real(sum.count())),
            quantile(0.5),
            quantile(0.95),
            quantile(0.99),
            sum.longest().map_or_else(String::new, milliseconds),
        )?;
    }
    writeln!(text)?;
    Ok(())
}

fn memory(findings: &Findings, text: &mut String) -> anyhow::Result<()> {
    let pending = &findings.pending;
    writeln!(text, "| | |\n|---|--:|")?;
    writeln!(
        text,
        "| resident when ready, MiB | {} |",
        mebibytes(pending.before.resident)
    )?;
    writeln!(
        text,
        "| peak while it delivers, {} deliveries pending, MiB | {} |",
        whole(real(findings.options.pending)),
        mebibytes(pending.after.peak)
    )?;
    writeln!(
        text,
        "| deliveries a second meanwhile | {} |",
        whole(pending.rate)
    )?;
    Ok(())
}
