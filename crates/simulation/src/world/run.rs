//! A run from its seed to its judgement.

use std::collections::BTreeMap;

use super::history::{History, Seen};
use crate::{Flaw, Met, Simulator};

/// What a run begins with.
#[derive(Debug, Clone, Copy, Default)]
pub struct Setup {
    /// Decides everything.
    pub seed: u64,
    /// What is wrong with the database; nothing in an honest run.
    pub flaw: Option<Flaw>,
    /// Whether what happens is written down.
    pub traced: bool,
}

/// What a run has come to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Steps that tasks have taken.
    pub steps: u64,
    /// Requests with a key of their own.
    pub requests: usize,
    /// How often each thing has happened that has.
    pub met: BTreeMap<Met, u64>,
}

impl Outcome {
    pub(crate) fn add(&mut self, other: &Self) {
        self.steps += other.steps;
        self.requests += other.requests;
        for (met, times) in &other.met {
            *self.met.entry(*met).or_default() += times;
        }
    }

    /// Which of these things have never happened.
    pub fn has_not_met(&self, things: &[Met]) -> Vec<Met> {
        let never = things.iter().filter(|met| !self.met.contains_key(met));
        never.copied().collect()
    }
}

/// What a run has shown to be wrong.
#[derive(Debug, Clone, thiserror::Error)]
#[error(
    "seed {seed}: {}\n{}\nagain: SIMULATION_SEED={seed} cargo test -p simulation --test seeds",
    wrongs.join("\n"),
    trace.join("\n")
)]
pub struct Violation {
    /// The run that shows it again.
    pub seed: u64,
    /// Each invariant that does not hold.
    pub wrongs: Vec<String>,
    /// What happened, where it was written down.
    pub trace: Vec<String>,
}

/// Plays a run, and judges what it has come to by `check`.
pub(super) fn judged(
    setup: &Setup,
    (simulator, history): (&Simulator, &History),
    play: impl Future<Output = ()> + Send + 'static,
    check: impl FnOnce(&Seen) -> Vec<String>,
) -> Result<Outcome, Violation> {
    history.seen().trace = setup.traced.then(Vec::new);
    let ended = simulator.run(play);
    let seen = history.seen();
    let mut wrongs = seen.wrongs.clone();
    match ended {
        Err(stuck) => wrongs.push(stuck.to_string()),
        Ok(()) => wrongs.extend(check(&seen)),
    }
    if wrongs.is_empty() {
        return Ok(Outcome {
            steps: simulator.steps(),
            requests: seen.requests.max(seen.stories.len()),
            met: simulator.met(),
        });
    }
    Err(Violation {
        seed: setup.seed,
        wrongs,
        trace: seen.trace.clone().unwrap_or_default(),
    })
}
