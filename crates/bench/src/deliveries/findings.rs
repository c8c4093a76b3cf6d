//! Everything that a run found, and what is promised.

use super::drain::Drained;
use super::pending::Pending;
use crate::counts::Asked;
use crate::figures::{Spread, real};
use crate::load::Latency;
use crate::machine::Machine;
use crate::options::DeliveriesOptions;
use crate::report::bars::{Bar, at_least, at_most, decimal, number, ratio};

/// Everything that a run found.
#[derive(Debug)]
pub(crate) struct Findings {
    /// On what.
    pub(super) machine: Machine,
    /// When.
    pub(super) date: String,
    /// How it was run.
    pub(super) options: DeliveriesOptions,
    /// What the rounds measured.
    pub(super) rounds: Rounds,
    /// What a delivery asks of PostgreSQL, with one subscription and with all.
    pub(super) counted: [Asked; 2],
    /// The worker beside a large backlog.
    pub(super) pending: Pending,
}

/// What the rounds measured, in their order.
#[derive(Debug, Default)]
pub(super) struct Rounds {
    /// Backlogs of one subscription.
    pub(super) one: Vec<Drained>,
    /// Backlogs of all subscriptions.
    pub(super) all: Vec<Drained>,
    /// Latencies with nothing else to do.
    pub(super) quiet: Vec<Latency>,
    /// Latencies beside a dead receiver.
    pub(super) beside: Vec<Latency>,
}

/// A figure of every round.
pub(super) fn spread<T>(rounds: &[T], figure: impl Fn(&T) -> f64) -> Spread {
    Spread::of(rounds.iter().map(figure))
}

/// What 99 % do not exceed, in milliseconds.
pub(super) fn p99(latency: &Latency) -> f64 {
    latency.quantile(0.99).as_secs_f64() * 1e3
}

impl Findings {
    /// All bars.
    pub(super) fn bars(&self) -> Vec<Bar> {
        let Rounds {
            one,
            all,
            quiet,
            beside,
        } = &self.rounds;
        let [counted_one, counted_all] = &self.counted;
        let rate = |drained: &Drained| drained.rate;
        let pairs = beside.iter().zip(quiet);
        vec![
            number("deliveries a second, one subscription", spread(one, rate)),
            number("deliveries a second, all subscriptions", spread(all, rate))
                .bar(at_least, 1_500.0)
                .aim(at_least, 3_000.0),
            decimal(
                "statements for each delivery, one subscription",
                Spread::of([counted_one.all]),
            )
            .bar(at_most, 3.0),
            decimal(
                "statements for each delivery, all subscriptions",
                Spread::of([counted_all.all]),
            )
            .bar(at_most, 3.0),
            ratio(
                "p99 to the first attempt beside a dead receiver ÷ without one",
                Spread::of(pairs.map(|(beside, quiet)| p99(beside) / p99(quiet))),
            )
            .bar(at_most, 1.5),
            number(
                "p99 to the first attempt beside a dead receiver, ms",
                spread(beside, p99),
            )
            .bar(at_most, 250.0),
            number(
                "the worker's peak memory with the large backlog, MiB",
                Spread::of([real(self.pending.after.peak) / 1024.0]),
            ),
        ]
    }
}
