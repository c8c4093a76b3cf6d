//! The goals of speed, and which of them are reached.

use std::fmt::Write as _;

use crate::figures::{Spread, ratio_spread, whole_spread};
use crate::report::bars::{Mark, at_least, at_most};

/// The goals, in the table's order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Goal {
    /// One offer beside pgbench's row.
    Offer,
    /// PostgreSQL's CPU time for it.
    OfferCpu,
    /// A page beside the equal query.
    Page,
    /// A deep page beside the first.
    Deep,
    /// A keyed change beside the same writes.
    Patch,
    /// Tokens a second.
    Tokens,
    /// Deliveries a second.
    Deliveries,
    /// Statements for each delivery.
    DeliveryStatements,
    /// The largest catalogue beside the smallest.
    Growth,
    /// What 99 % of reads of an offer do not exceed at half load.
    OfferLatency,
    /// The same of pages.
    PageLatency,
    /// Memory with very many connections.
    Memory,
    /// From the start to being ready.
    Ready,
}

/// What was found of a goal.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    /// Which.
    pub(crate) goal: Goal,
    /// In the rounds.
    pub(crate) found: Spread,
    /// What has to be known to read the figure, such as a size that was not the goal's.
    pub(crate) but: Option<String>,
    /// What the run has found of what stands in the way.
    figures: String,
}

impl Found {
    /// As the goal says it.
    pub(crate) const fn of(goal: Goal, found: Spread) -> Self {
        Self {
            goal,
            found,
            but: None,
            figures: String::new(),
        }
    }

    /// With figures of the same run, as a sentence, which say how much stands in the way.
    pub(crate) fn because(self, figures: String) -> Self {
        Self { figures, ..self }
    }
}

/// A line of the table.
struct Line {
    title: &'static str,
    test: fn(f64, f64) -> Mark,
    limit: f64,
    show: fn(Spread) -> String,
    /// What stands in the way, in general; the figures are each run's own ([`Found::because`]).
    hindrance: &'static str,
}

impl Line {
    const fn new(
        title: &'static str,
        test: fn(f64, f64) -> Mark,
        limit: f64,
        show: fn(Spread) -> String,
        hindrance: &'static str,
    ) -> Self {
        Self {
            title,
            test,
            limit,
            show,
            hindrance,
        }
    }
}

/// What makes the slowest requests of a busy machine slow.
const WAITS_FOR_A_CORE: &str =
    "Waiting for a core: the load generator, the server and PostgreSQL share them.";

/// What a keyed change has to do that the script has not.
const BESIDE_THE_WRITES: &str = "Beside the writes: the gate's statement, setting the transaction's time limits, and the seal of the \
    answer; both wait for the same commit. Ten statements in five round trips against seven. What else it waits \
    for is in What a write waits for: the pool's connections most, of which twice as many do no more (What was changed).";

/// The goals as they were set, and by hand what stands in the way of those that are hard to reach.
fn line(goal: Goal) -> Line {
    match goal {
        Goal::Offer => Line::new(
            "`GET /v1/offers/{id}` ÷ pgbench's row, the whole pipeline on",
            at_least,
            0.75,
            ratio_spread,
            "An exchange over TCP and HTTP in a process of its own, where pgbench is its own client on a unix socket; and a row \
             that is written for each request, the exact rate count, where pgbench only reads.",
        ),
        Goal::OfferCpu => Line::new(
            "PostgreSQL's CPU time for one offer ÷ for pgbench's row",
            at_most,
            0.5,
            ratio_spread,
            "The gate's statement writes the rate count: it costs more than the offer's own, as `GET /v1/me` \
             shows, which has no other statement.",
        ),
        Goal::Page => Line::new(
            "page of 50 ÷ pgbench's rows of a page",
            at_least,
            0.6,
            ratio_spread,
            "50 offers become some 20 kB of JSON in the server and cross TCP once more to the client; pgbench throws \
             the rows away as they come.",
        ),
        Goal::Deep => Line::new(
            "cost of a page at 90 % depth ÷ of the first",
            at_most,
            1.05,
            ratio_spread,
            "Opening the cursor costs the server about 4 % of a page's instructions (Instructions); what is beyond that is PostgreSQL's \
             reading from another place of the index.",
        ),
        Goal::Patch => Line::new(
            "keyed `PATCH` ÷ pgbench's same writes",
            at_least,
            0.8,
            ratio_spread,
            BESIDE_THE_WRITES,
        ),
        Goal::Tokens => Line::new(
            "clients' tokens a second",
            at_least,
            3_000.0,
            whole_spread,
            "Four statements one after another, shared by the calls in flight.",
        ),
        Goal::Deliveries => Line::new(
            "webhook deliveries a second, all subscriptions",
            at_least,
            3_000.0,
            whole_spread,
            "The receiver and PostgreSQL share the cores with the worker.",
        ),
        Goal::DeliveryStatements => Line::new(
            "statements for each delivery, all subscriptions",
            at_most,
            1.0,
            ratio_spread,
            "A lane with little to do takes its statements for few deliveries.",
        ),
        Goal::Growth => Line::new(
            "throughput of `GET /v1/offers/{id}` with 10 000 000 offers ÷ with 10 000",
            at_least,
            0.9,
            ratio_spread,
            "The more rows, the rarer is one in the processor's caches, and the more pages of an index lead to it.",
        ),
        Goal::OfferLatency => Line::new(
            "p99 of `GET /v1/offers/{id}` at half load, ms",
            at_most,
            5.0,
            ratio_spread,
            WAITS_FOR_A_CORE,
        ),
        Goal::PageLatency => Line::new(
            "p99 of a page of 50 at half load, ms",
            at_most,
            5.0,
            ratio_spread,
            WAITS_FOR_A_CORE,
        ),
        Goal::Memory => Line::new(
            "resident with 10 000 keep-alive connections at rest, MB",
            at_most,
            100.0,
            whole_spread,
            "What a connection at rest holds: its socket, a timer and a task; and what the allocator keeps of the buffers that were let go.",
        ),
        Goal::Ready => Line::new(
            "`serve` ready, ms",
            at_most,
            300.0,
            whole_spread,
            "Connecting to PostgreSQL and looking at the schema.",
        ),
    }
}

/// Renders the table.
pub(crate) fn render(mut all: Vec<Found>) -> anyhow::Result<String> {
    all.sort_by_key(|found| found.goal);
    let mut text =
        "| goal | | found (median, spread) | | what stands in the way |\n|---|--:|--:|---|---|\n".to_owned();
    for Found {
        goal,
        found,
        but,
        figures,
    } in all
    {
        let line = line(goal);
        let mark = (line.test)(found.median, line.limit);
        let (reached, hindrance) = match (&but, mark.reached()) {
            (Some(_), _) => ("not measured as the goal says it", String::new()),
            (None, true) => ("reached", String::new()),
            (None, false) => {
                let hindrance = format!("{} {figures}", line.hindrance);
                ("**not reached**", hindrance.trim_end().to_owned())
            }
        };
        let but = but.map(|but| format!(" {but}")).unwrap_or_default();
        writeln!(
            text,
            "| {} | {} | {}{but} | {reached} | {hindrance} |",
            line.title,
            mark.text(),
            (line.show)(found)
        )?;
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_not_reached_says_why() {
        let found = |goal, values: [f64; 3]| Found::of(goal, Spread::of(values));
        let mut short = found(Goal::Growth, [0.91, 0.95, 0.99]);
        short.but = Some("with 100 000".to_owned());
        let offer = found(Goal::Offer, [0.5, 0.52, 0.6]).because("This costs 40 µs, that 20.".to_owned());
        let text = render(vec![short, offer]).unwrap();
        let lines: Vec<_> = text.lines().skip(2).collect();
        assert!(
            lines[0].starts_with("| `GET /v1/offers/{id}` ÷ pgbench's row"),
            "{text}"
        );
        assert!(
            lines[0].contains("| ≥ 0.75 | 0.52 (0.50–0.60) | **not reached** | An exchange"),
            "{text}"
        );
        assert!(
            lines[0].ends_with("only reads. This costs 40 µs, that 20. |"),
            "{text}"
        );
        assert!(
            lines[1]
                .ends_with("| ≥ 0.9 | 0.95 (0.91–0.99) with 100 000 | not measured as the goal says it |  |"),
            "{text}"
        );
    }
}
