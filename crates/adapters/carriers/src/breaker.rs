//! A circuit breaker per carrier. It blocks look-ups for a while if the carrier fails, throttles or rejects
//! the credentials.

use std::{collections::VecDeque, sync::Arc};

use chrono::{DateTime, TimeDelta, Utc};
use kernel::Clock;
use orders::Carrier;
use parking_lot::Mutex;

use crate::apis::LookupFailure;

/// Consecutive timeouts that open the breaker.
const TIMEOUTS: usize = 3;
/// Failures among the last [`WINDOW`] look-ups that open the breaker; a timeout is a failure.
const FAILURES: usize = 5;
const WINDOW: usize = 10;
/// The first pause. Each failed probe doubles it, up to [`LONGEST_PAUSE`].
const FIRST_PAUSE: TimeDelta = TimeDelta::seconds(30);
const LONGEST_PAUSE: TimeDelta = TimeDelta::minutes(5);

/// Closed, it admits every look-up. Open, it admits none until the pause is over, then a single probe, whose
/// outcome closes or reopens it.
pub(crate) struct CircuitBreaker {
    carrier: Carrier,
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
}

/// The outcome of a look-up, as a measure of the carrier's health.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallOutcome {
    /// The carrier answered. "No such parcel" is an answer.
    Success,
    /// No answer in time.
    Timeout,
    /// Unreachable, or an unusable answer.
    Failure,
    /// HTTP 429: no look-ups for this long.
    Throttled(TimeDelta),
    /// The carrier rejected the credentials. Only a new configuration helps.
    Rejected,
}

/// Permission for one look-up. If it is dropped without an outcome, the look-up does not count.
pub(crate) struct Permit<'a> {
    breaker: &'a CircuitBreaker,
    /// The start of the pause that this look-up probes.
    probed: Option<DateTime<Utc>>,
    after_throttling: bool,
    is_settled: bool,
}

#[derive(Debug, Default)]
struct State {
    /// Whether each of the last look-ups failed, oldest first.
    failed: VecDeque<bool>,
    consecutive_timeouts: usize,
    /// Pauses caused by failures since the last success.
    consecutive_pauses: u32,
    pause: Option<Pause>,
    is_rejected: bool,
}

#[derive(Debug)]
struct Pause {
    since: DateTime<Utc>,
    lasts: TimeDelta,
    is_throttled: bool,
    is_probing: bool,
}

impl CircuitBreaker {
    pub(crate) fn new(carrier: Carrier, clock: Arc<dyn Clock>) -> Self {
        let state = Mutex::default();
        Self {
            carrier,
            clock,
            state,
        }
    }

    /// The reason for which [`CircuitBreaker::admit`] would refuse now, if any.
    pub(crate) fn refusal(&self) -> Option<&'static str> {
        self.state.lock().refusal(self.clock.now())
    }

    /// Permission for a look-up, or the reason for its refusal.
    pub(crate) fn admit(&self) -> Result<Permit<'_>, &'static str> {
        let mut state = self.state.lock();
        if let Some(reason) = state.refusal(self.clock.now()) {
            return Err(reason);
        }
        if let Some(pause) = &mut state.pause {
            pause.is_probing = true;
        }
        let pause = state.pause.as_ref();
        Ok(Permit {
            breaker: self,
            probed: pause.map(|pause| pause.since),
            after_throttling: pause.is_some_and(|pause| pause.is_throttled),
            is_settled: false,
        })
    }

    fn settle(&self, probed: Option<DateTime<Utc>>, outcome: CallOutcome, failure: Option<&LookupFailure>) {
        let now = self.clock.now();
        let mut state = self.state.lock();
        // A look-up in flight may have opened another pause since the probe began.
        let is_probe = probed.is_some() && probed == state.pause.as_ref().map(|pause| pause.since);
        match outcome {
            _ if state.is_rejected => {}
            CallOutcome::Rejected => {
                state.is_rejected = true;
                tracing::error!(
                    carrier = self.carrier.as_str(),
                    "the carrier rejects the configured credentials: no requests until the next start"
                );
            }
            CallOutcome::Throttled(lasts) => match &mut state.pause {
                // The look-up was in flight when the breaker opened: the later end applies.
                Some(pause) if !pause.is_probing => {
                    pause.is_throttled = true;
                    pause.lasts = pause.lasts.max(now + lasts - pause.since);
                }
                _ => self.open(&mut state, now, lasts, true, failure),
            },
            // The look-up was in flight when the breaker opened.
            _ if state.pause.is_some() && !is_probe => {}
            CallOutcome::Success if state.pause.is_some() => {
                *state = State::default();
                tracing::info!(
                    carrier = self.carrier.as_str(),
                    "the circuit breaker is closed again"
                );
            }
            _ => {
                state.record(outcome);
                if state.pause.is_some() || state.has_too_many_failures() {
                    let doubled = FIRST_PAUSE * 2_i32.saturating_pow(state.consecutive_pauses.min(8));
                    state.consecutive_pauses = state.consecutive_pauses.saturating_add(1);
                    self.open(&mut state, now, doubled.min(LONGEST_PAUSE), false, failure);
                }
            }
        }
    }

    /// `failure` is the one that opens it.
    fn open(
        &self,
        state: &mut State,
        since: DateTime<Utc>,
        lasts: TimeDelta,
        is_throttled: bool,
        failure: Option<&LookupFailure>,
    ) {
        *state = State {
            pause: Some(Pause {
                since,
                lasts,
                is_throttled,
                is_probing: false,
            }),
            consecutive_pauses: state.consecutive_pauses,
            ..State::default()
        };
        tracing::warn!(
            carrier = self.carrier.as_str(),
            seconds = lasts.num_seconds(),
            throttled = is_throttled,
            cause = failure.map(ToString::to_string),
            "the circuit breaker is open"
        );
    }
}

impl State {
    fn refusal(&self, now: DateTime<Utc>) -> Option<&'static str> {
        if self.is_rejected {
            return Some("not asked: the carrier rejects the credentials");
        }
        let pause = self.pause.as_ref()?;
        // A clock that is set back ends the pause and does not prolong it.
        if (TimeDelta::zero()..pause.lasts).contains(&(now - pause.since)) {
            Some("not asked: the circuit breaker is open")
        } else {
            pause
                .is_probing
                .then_some("not asked: the carrier is being probed")
        }
    }

    fn record(&mut self, outcome: CallOutcome) {
        let timeouts = self.consecutive_timeouts + 1;
        self.consecutive_timeouts = if outcome == CallOutcome::Timeout {
            timeouts
        } else {
            0
        };
        self.failed.push_back(outcome != CallOutcome::Success);
        if self.failed.len() > WINDOW {
            self.failed.pop_front();
        }
    }

    fn has_too_many_failures(&self) -> bool {
        let failures = self.failed.iter().filter(|failed| **failed).count();
        self.consecutive_timeouts >= TIMEOUTS || failures >= FAILURES
    }
}

impl Permit<'_> {
    /// Whether this is the probe after a pause that a 429 caused.
    pub(crate) fn is_after_throttling(&self) -> bool {
        self.after_throttling
    }

    /// Records the outcome. A pause that it begins is logged with the failure.
    pub(crate) fn settle(mut self, outcome: CallOutcome, failure: Option<&LookupFailure>) {
        self.is_settled = true;
        self.breaker.settle(self.probed, outcome, failure);
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        // A cancelled probe lets the next look-up be the probe.
        if !self.is_settled
            && let Some(pause) = &mut self.breaker.state.lock().pause
            && self.probed == Some(pause.since)
        {
            pause.is_probing = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use testkit::ManualClock;

    use super::{CallOutcome::*, *};

    fn breaker() -> (CircuitBreaker, Arc<ManualClock>) {
        let clock = Arc::new(ManualClock::at("2026-01-06T22:00:00Z"));
        (CircuitBreaker::new(Carrier::Gls, clock.clone()), clock)
    }

    fn admitted(breaker: &CircuitBreaker) -> Permit<'_> {
        breaker.admit().unwrap_or_else(|reason| panic!("{reason}"))
    }

    fn settle(breaker: &CircuitBreaker, outcomes: &[CallOutcome]) {
        for outcome in outcomes {
            admitted(breaker).settle(*outcome, None);
        }
    }

    /// Advances the clock until the breaker admits a look-up. Returns the seconds.
    fn pause(breaker: &CircuitBreaker, clock: &ManualClock) -> i64 {
        (0..100_000)
            .find(|_| {
                let is_over = breaker.refusal().is_none();
                clock.advance(i64::from(!is_over));
                is_over
            })
            .unwrap()
    }

    #[test]
    fn the_pauses_after_outcomes() {
        // The first failure has left the window when the next one occurs.
        let spread: [CallOutcome; 10] = std::array::from_fn(|n| [Failure, Success, Success][n % 3]);
        let minute = Throttled(TimeDelta::seconds(60));
        let table: [&[(&[CallOutcome], i64)]; 5] = [
            &[
                (&[Timeout, Timeout, Success, Timeout, Timeout], 0),
                (&[Timeout], 30),
            ],
            &[(&[Failure, Timeout, Failure, Failure], 0), (&[Failure], 30)],
            &[(&spread, 0), (&[Failure], 0), (&[Timeout], 30)],
            &[
                (&[Failure; 5], 30),
                (&[Failure], 60),
                (&[Failure], 120),
                (&[Failure], 240),
                (&[Failure], 300),
                (&[Failure], 300),
                (&[Success, Failure, Failure, Failure, Failure], 0),
                (&[Failure], 30),
            ],
            &[
                (&[minute], 60),
                (&[Failure], 30),
                (&[minute], 60),
                (&[Success], 0),
            ],
        ];
        for steps in table {
            let (breaker, clock) = breaker();
            for (outcomes, seconds) in steps {
                settle(&breaker, outcomes);
                assert_eq!(pause(&breaker, &clock), *seconds, "{outcomes:?} of {steps:?}");
            }
        }
    }

    #[test]
    fn one_probe_at_a_time() {
        let (breaker, clock) = breaker();
        settle(&breaker, &[Timeout; 3]);
        pause(&breaker, &clock);
        let probe = admitted(&breaker);
        assert!(breaker.admit().is_err());
        // After a cancelled probe another one is admitted.
        drop(probe);
        admitted(&breaker).settle(Success, None);
        assert!(breaker.admit().is_ok());
    }

    #[test]
    fn late_outcomes_only_prolong_a_throttling() {
        let (breaker, clock) = breaker();
        let [late, later, latest] = [(); 3].map(|()| admitted(&breaker));
        settle(&breaker, &[Timeout; 3]);
        late.settle(Success, None);
        clock.advance(10);
        later.settle(Throttled(TimeDelta::seconds(120)), None);
        assert_eq!(pause(&breaker, &clock), 120);
        let probe = admitted(&breaker);
        assert!(probe.is_after_throttling());
        latest.settle(Timeout, None);
        probe.settle(Success, None);
        assert!(!admitted(&breaker).is_after_throttling());
    }

    #[test]
    fn rejected_credentials_open_it_for_good() {
        let (breaker, clock) = breaker();
        let late = admitted(&breaker);
        settle(&breaker, &[Rejected]);
        late.settle(Success, None);
        clock.advance(365 * 86_400);
        assert!(breaker.admit().is_err());
    }

    #[test]
    fn setting_the_clock_back_does_not_prolong_the_pause() {
        let (breaker, clock) = breaker();
        settle(&breaker, &[Timeout; 3]);
        clock.advance(-3_600);
        assert_eq!(breaker.refusal(), None);
    }
}
