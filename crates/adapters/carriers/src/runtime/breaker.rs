//! Leaves a carrier in trouble alone for a while.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use chrono::{DateTime, TimeDelta, Utc};
use kernel::Clock;
use orders::Carrier;

/// So many timeouts in a row open the breaker.
const TIMEOUTS: usize = 3;
/// So many failures of the last [`WINDOW`] look-ups open it, timeouts among them.
const FAILURES: usize = 5;
const WINDOW: usize = 10;
/// How long it stays open at first; doubled each time that the probe fails.
const FIRST_PAUSE: TimeDelta = TimeDelta::seconds(30);
const LONGEST_PAUSE: TimeDelta = TimeDelta::minutes(5);

/// One carrier's breaker. Closed it lets everybody through; open nobody; after the pause it lets one through, the probe,
/// whose outcome decides.
pub(crate) struct Breaker {
    carrier: Carrier,
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
}

/// How a look-up ended, as far as the carrier's health is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The carrier answered; that it does not know the parcel is an answer.
    Success,
    /// It did not, in time.
    Timeout,
    /// It answered uselessly, or could not be reached.
    Failure,
    /// It asks to be left alone for so long.
    Throttled(TimeDelta),
    /// It refuses the credentials: only another configuration helps.
    Refused,
}

/// Leave to ask once. Dropped without an outcome it counts for nothing.
pub(crate) struct Ticket<'a> {
    breaker: &'a Breaker,
    era: u64,
    after_throttling: bool,
    settled: bool,
}

#[derive(Debug)]
struct State {
    phase: Phase,
    /// Rises with each change of phase, so that what comes late is known to be late.
    era: u64,
    /// How often in a row it opened because of failures.
    openings: u32,
}

#[derive(Debug)]
enum Phase {
    Closed(Record),
    Open {
        since: DateTime<Utc>,
        lasts: TimeDelta,
        throttled: bool,
    },
    Probing {
        throttled: bool,
    },
    Shut,
}

/// The last outcomes, the oldest first; true for a failure.
#[derive(Debug, Default)]
struct Record {
    failed: VecDeque<bool>,
    timeouts_in_a_row: usize,
}

impl Breaker {
    pub(crate) fn new(carrier: Carrier, clock: Arc<dyn Clock>) -> Self {
        let state = State {
            phase: Phase::Closed(Record::default()),
            era: 0,
            openings: 0,
        };
        Self {
            carrier,
            clock,
            state: Mutex::new(state),
        }
    }

    /// Whether [`Breaker::admit`] would refuse now; tells why.
    pub(crate) fn refusal(&self) -> Option<&'static str> {
        self.state().refusal(self.clock.now())
    }

    /// Leave to ask, or why there is none.
    pub(crate) fn admit(&self) -> Result<Ticket<'_>, &'static str> {
        let mut state = self.state();
        if let Some(why) = state.refusal(self.clock.now()) {
            return Err(why);
        }
        let mut after_throttling = false;
        if let Phase::Open { throttled, .. } = state.phase {
            after_throttling = throttled;
            state.enter(Phase::Probing { throttled });
        }
        Ok(Ticket {
            breaker: self,
            era: state.era,
            after_throttling,
            settled: false,
        })
    }

    fn settle(&self, era: u64, outcome: Outcome) {
        let now = self.clock.now();
        let state = &mut *self.state();
        match (outcome, &mut state.phase) {
            (_, Phase::Shut) => {}
            (Outcome::Refused, _) => {
                state.enter(Phase::Shut);
                tracing::error!(
                    carrier = self.carrier.as_str(),
                    "the carrier refuses the configured credentials and is not asked again until the next start"
                );
            }
            (
                Outcome::Throttled(pause),
                Phase::Open {
                    since,
                    lasts,
                    throttled,
                },
            ) => {
                // The answer to a look-up that began earlier: the later end holds.
                *throttled = true;
                *lasts = (*lasts).max(now + pause - *since);
            }
            (Outcome::Throttled(pause), _) => self.open(state, now, pause, true),
            _ if state.era != era => {}
            (Outcome::Success, Phase::Closed(record)) => record.note(outcome),
            (Outcome::Success, _) => {
                state.openings = 0;
                state.enter(Phase::Closed(Record::default()));
                tracing::info!(carrier = self.carrier.as_str(), "the carrier answers again");
            }
            (_, Phase::Closed(record)) => {
                record.note(outcome);
                if record.is_too_much() {
                    self.open_for_failures(state, now);
                }
            }
            (_, _) => self.open_for_failures(state, now),
        }
    }

    fn open_for_failures(&self, state: &mut State, now: DateTime<Utc>) {
        let doubled = FIRST_PAUSE * 2_i32.saturating_pow(state.openings.min(8));
        state.openings = state.openings.saturating_add(1);
        self.open(state, now, doubled.min(LONGEST_PAUSE), false);
    }

    fn open(&self, state: &mut State, since: DateTime<Utc>, lasts: TimeDelta, throttled: bool) {
        state.enter(Phase::Open {
            since,
            lasts,
            throttled,
        });
        tracing::warn!(
            carrier = self.carrier.as_str(),
            seconds = lasts.num_seconds(),
            throttled,
            "the carrier is not asked for a while"
        );
    }

    /// A look-up was given up: if it was the probe, the next one may be.
    fn release(&self, era: u64) {
        let mut state = self.state();
        if let Phase::Probing { throttled } = state.phase
            && state.era == era
        {
            state.enter(Phase::Open {
                since: self.clock.now(),
                lasts: TimeDelta::zero(),
                throttled,
            });
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn enter(&mut self, phase: Phase) {
        self.phase = phase;
        self.era = self.era.wrapping_add(1);
    }

    fn refusal(&self, now: DateTime<Utc>) -> Option<&'static str> {
        match self.phase {
            Phase::Closed(_) => None,
            Phase::Open { since, lasts, .. } => {
                // A clock that was set back ends the pause rather than prolonging it.
                let pausing = (TimeDelta::zero()..lasts).contains(&(now - since));
                pausing.then_some("not asked: the carrier is in trouble and left alone")
            }
            Phase::Probing { .. } => Some("not asked: the carrier is being probed"),
            Phase::Shut => Some("not asked: the carrier refuses the credentials"),
        }
    }
}

impl Record {
    fn note(&mut self, outcome: Outcome) {
        self.timeouts_in_a_row = if outcome == Outcome::Timeout {
            self.timeouts_in_a_row + 1
        } else {
            0
        };
        self.failed.push_back(outcome != Outcome::Success);
        if self.failed.len() > WINDOW {
            self.failed.pop_front();
        }
    }

    fn is_too_much(&self) -> bool {
        let failures = self.failed.iter().filter(|failed| **failed).count();
        self.timeouts_in_a_row >= TIMEOUTS || failures >= FAILURES
    }
}

impl Ticket<'_> {
    /// Whether the carrier was left alone before this because it had asked for it.
    pub(crate) fn is_after_throttling(&self) -> bool {
        self.after_throttling
    }

    /// Tells how the look-up ended.
    pub(crate) fn settle(mut self, outcome: Outcome) {
        self.settled = true;
        self.breaker.settle(self.era, outcome);
    }
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        if !self.settled {
            self.breaker.release(self.era);
        }
    }
}

#[cfg(test)]
mod tests;
