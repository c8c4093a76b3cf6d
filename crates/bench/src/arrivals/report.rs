//! The report of requests that come at random.

use std::fmt::Write as _;

use super::{Kind, SHARES, Share};
use crate::figures::{Spread, milliseconds, ratio_spread, real, rounds, whole, whole_spread};
use crate::load::Latency;
use crate::machine::Machine;
use crate::options::ArrivalsOptions;
use crate::plot::{self, Axis, Line, Panel, Plot};
use crate::report;
use crate::report::pictures::plain;

/// Everything that a run found.
#[derive(Debug)]
pub(crate) struct Findings {
    /// On what.
    pub(super) machine: Machine,
    /// When.
    pub(super) date: String,
    /// How it was run.
    pub(super) options: ArrivalsOptions,
    /// The kinds of requests.
    pub(super) kinds: Vec<Kind>,
}

/// The shares of requests whose latency is drawn, with how the axis names them. Not the longest one, which is a single
/// request and would flatten everything else.
const DRAWN: [(f64, &str); 5] = [
    (0.0, "least"),
    (0.5, "50 %"),
    (0.9, "90 %"),
    (0.99, "99 %"),
    (0.999, "99.9 %"),
];

/// The whole report.
pub(super) fn render(findings: &Findings) -> anyhow::Result<String> {
    let mut text = String::new();
    let options = &findings.options;
    let run = format!(
        "{} of {} s at each rate, {} offers; capacity at {} connections",
        rounds(options.report.rounds),
        options.stand.seconds,
        whole(real(options.offers)),
        options.stand.concurrency
    );
    report::facts(&findings.date, &findings.machine, &run, &mut text)?;
    writeln!(
        text,
        "| | load | due a second | p50 ms | p95 ms | p99 ms | p99.9 ms | max ms | waited for a connection | machine busy % |\n\
         |---|--:|--:|--:|--:|--:|--:|--:|--:|--:|"
    )?;
    for kind in &findings.kinds {
        let capacity = Spread::of(kind.capacity.iter().copied());
        writeln!(
            text,
            "| {} | capacity | {} | | | | | | | |",
            kind.title,
            whole_spread(capacity)
        )?;
        for (share, shares) in SHARES.iter().zip(&kind.at) {
            let quantile = |quantile| ratio_spread(Kind::quantile(shares, quantile));
            let offered = Spread::of(shares.iter().map(|share| share.arrived.offered));
            let longest = shares
                .iter()
                .filter_map(|share| share.arrived.latency.longest())
                .max();
            let waited = shares
                .iter()
                .map(|share| share.arrived.waited)
                .max()
                .unwrap_or_default();
            let busy = Spread::of(shares.iter().map(|share| share.busy * 100.0));
            writeln!(
                text,
                "| … | {:.0} % | {} | {} | {} | {} | {} | {} | {waited} | {:.0} |",
                share * 100.0,
                whole(offered.median),
                quantile(0.5),
                quantile(0.95),
                quantile(0.99),
                quantile(0.999),
                longest.map_or_else(String::new, milliseconds),
                busy.median,
            )?;
        }
    }
    Ok(text)
}

/// Latencies over the share of requests that have no longer one, at each share of the capacity.
pub(super) fn plot(findings: &Findings) -> anyhow::Result<Plot> {
    let axis = Axis {
        name: "share of the requests".to_owned(),
        ticks: DRAWN.iter().map(|(_, name)| (*name).to_owned()).collect(),
    };
    let title = "Latency from the instant a request was due, ms";
    let [half, most] = SHARES;
    let panels = [
        panel(findings, half, |[half, _]| half)?,
        panel(findings, most, |[_, most]| most)?,
    ];
    Ok(Plot {
        name: "latency",
        says: "Latency at half and at four fifths of the capacity: the table above, drawn".to_owned(),
        svg: plot::panels(title, &axis, &panels),
    })
}

/// All kinds at one share of the capacity.
fn panel(
    findings: &Findings,
    share: f64,
    of: impl Fn(&[Vec<Share>; SHARES.len()]) -> &Vec<Share>,
) -> anyhow::Result<Panel> {
    let mut lines = Vec::new();
    for kind in &findings.kinds {
        let mut sum = Latency::new()?;
        for share in of(&kind.at) {
            sum.add(&share.arrived.latency)?;
        }
        let points = (0_u32..)
            .zip(&DRAWN)
            .map(|(place, (quantile, _))| (f64::from(place), sum.quantile(*quantile).as_secs_f64() * 1e3));
        lines.push(Line {
            name: plain(&kind.title),
            points: points.collect(),
        });
    }
    Ok(Panel {
        name: format!("at {:.0} % of the capacity", share * 100.0),
        lines,
    })
}
