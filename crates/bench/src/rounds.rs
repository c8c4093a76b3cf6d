//! Several rounds, each of which measures every subject once: what disturbs the machine for a while hits all of them, and
//! ratios are taken within a round.

use std::time::{Duration, Instant};

use crate::cluster::Cluster;
use crate::figures::Spread;
use crate::load::Latency;
use crate::measure::{CpuEach, Sample, Subject, measure, measure_looking};
use crate::noise::Patience;
use crate::progress::Progress;

/// How long each subject is measured in the first round, which does not count.
const WARM_UP: Duration = Duration::from_secs(1);

/// A subject with its samples, one for each round.
#[derive(Debug)]
pub(crate) struct Measured {
    /// See [`Subject::key`].
    pub(crate) key: &'static str,
    /// See [`Subject::title`].
    pub(crate) title: String,
    /// In the rounds' order.
    pub(crate) samples: Vec<Sample>,
}

impl Measured {
    /// Requests a second.
    pub(crate) fn rate(&self) -> Spread {
        Spread::of(self.samples.iter().map(|sample| sample.rate))
    }

    /// A figure of this one over the same of another, taken round by round.
    pub(crate) fn over(&self, other: &Self, figure: impl Fn(&Sample) -> f64) -> Spread {
        let pairs = self.samples.iter().zip(&other.samples);
        Spread::of(pairs.map(|(own, other)| figure(own) / figure(other)))
    }

    /// This one's rate over another's, taken round by round.
    pub(crate) fn ratio_to(&self, other: &Self) -> Spread {
        self.over(other, |sample| sample.rate)
    }

    /// A figure of the samples, over the rounds.
    pub(crate) fn spread(&self, figure: impl Fn(&Sample) -> f64) -> Spread {
        Spread::of(self.samples.iter().map(figure))
    }

    /// The same in the middle of the rounds.
    pub(crate) fn middle(&self, figure: impl Fn(&Sample) -> f64) -> f64 {
        self.spread(figure).median
    }

    /// What one costs, in words: `PostgreSQL 45 µs, server 38, client 9`.
    pub(crate) fn cost(&self) -> String {
        let middle = |part: fn(&CpuEach) -> f64| self.middle(|sample| part(&sample.cpu));
        let server = middle(|cpu| cpu.server);
        let server = if server > 0.0 {
            format!(", server {server:.0}")
        } else {
            String::new()
        };
        let postgres = middle(|cpu| cpu.postgres);
        format!(
            "PostgreSQL {postgres:.0} µs{server}, client {:.0}",
            middle(|cpu| cpu.client)
        )
    }

    /// The latencies of all rounds.
    pub(crate) fn latency(&self) -> anyhow::Result<Latency> {
        let mut samples = self.samples.iter();
        let mut sum = match samples.next() {
            Some(first) => first.latency.clone(),
            None => Latency::new()?,
        };
        for sample in samples {
            sum.add(&sample.latency)?;
        }
        Ok(sum)
    }
}

/// Measures every subject once a round, after one round that does not count.
pub(crate) async fn run(
    cluster: &Cluster,
    subjects: Vec<Subject<'_>>,
    rounds: u64,
    patience: &mut Patience,
    progress: Progress,
) -> anyhow::Result<Vec<Measured>> {
    let total = u64::try_from(subjects.len())? * (rounds + 1);
    let step = progress.counted("measuring", total);
    let mut measured: Vec<Measured> = subjects.iter().map(unmeasured).collect();
    for round in 0..=rounds {
        let mut order: Vec<_> = subjects.iter().zip(&mut measured).collect();
        // There and back again, so that nobody always follows the same neighbour.
        if !round.is_multiple_of(2) {
            order.reverse();
        }
        for (subject, measured) in order {
            step.now(&format!("round {round} of {rounds}: {}", subject.title));
            // The first round warms caches and plans up.
            if round == 0 {
                measure(cluster, &subject.work.clone().lasting(WARM_UP)).await?;
            } else {
                let sample = measure_in_quiet(cluster, subject, patience).await?;
                measured.samples.push(sample);
            }
            step.advance(1);
        }
    }
    Ok(measured)
}

fn unmeasured(subject: &Subject<'_>) -> Measured {
    Measured {
        key: subject.key,
        title: subject.title.clone(),
        samples: Vec::new(),
    }
}

/// Measures one subject, again while others disturb it and there is patience left; the least disturbed time counts.
async fn measure_in_quiet(
    cluster: &Cluster,
    subject: &Subject<'_>,
    patience: &mut Patience,
) -> anyhow::Result<Sample> {
    let mut best: Option<Sample> = None;
    loop {
        patience.await_quiet().await?;
        let begun = Instant::now();
        let sample = measure_looking(cluster, subject).await?;
        let repeats = patience.repeats(sample.others, begun.elapsed());
        let better = match best {
            Some(best) if best.others <= sample.others => best,
            _ => sample,
        };
        if !repeats {
            return Ok(better);
        }
        best = Some(better);
    }
}
