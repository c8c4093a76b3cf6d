//! Properties over any sequence of what happens to a delivery, compared with a model: the list of what has
//! happened.

use proptest::prelude::*;

use super::*;
use crate::{AttemptFailure, MAX_ATTEMPTS};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Lease,
    Postpone,
    Lose,
    Succeed,
    Fail,
    Stop,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        8 => Just(Step::Lease),
        2 => Just(Step::Postpone),
        4 => Just(Step::Lose),
        1 => Just(Step::Succeed),
        8 => Just(Step::Fail),
        1 => Just(Step::Stop),
    ];
    prop::collection::vec(step, 1..60)
}

fn apply(step: Step, delivery: Progress, jitter: f64) -> Progress {
    let end = |outcome| delivery.end(&outcome, &RetrySchedule::default(), jitter);
    match step {
        Step::Lease => delivery.lease(),
        Step::Postpone => delivery.postpone(),
        Step::Lose => delivery.lose(),
        Step::Succeed => end(Outcome::Answered(204)),
        Step::Fail => end(Outcome::Failed(AttemptFailure::TimedOut)),
        Step::Stop => delivery.stop(),
    }
}

/// What has had an effect so far.
#[derive(Default)]
struct Model {
    effects: Vec<Step>,
}

impl Model {
    fn count(&self, step: Step) -> usize {
        self.effects.iter().filter(|effect| **effect == step).count()
    }

    fn is_over(&self) -> bool {
        self.count(Step::Succeed) + self.count(Step::Stop) > 0 || self.count(Step::Fail) == 6
    }

    fn is_leased(&self) -> bool {
        self.effects.last() == Some(&Step::Lease)
    }

    /// Whether the step has an effect now.
    fn take(&mut self, step: Step) -> bool {
        let allowed = !self.is_over()
            && match step {
                Step::Lease => !self.is_leased(),
                Step::Stop => true,
                Step::Postpone | Step::Lose | Step::Succeed | Step::Fail => self.is_leased(),
            };
        if allowed {
            self.effects.push(step);
        }
        allowed
    }

    fn agrees(&self, delivery: Progress) -> bool {
        let is_over = self.is_over();
        match delivery.phase {
            Phase::Waiting(_) => !is_over && !self.is_leased(),
            Phase::Leased => !is_over && self.is_leased(),
            Phase::Delivered => self.effects.last() == Some(&Step::Succeed),
            Phase::Exhausted => self.count(Step::Fail) == 6,
            Phase::Stopped => self.effects.last() == Some(&Step::Stop),
        }
    }

    /// The losses since an attempt has ended.
    fn losses(&self) -> usize {
        let since = self
            .effects
            .iter()
            .rev()
            .take_while(|effect| !matches!(effect, Step::Fail | Step::Succeed));
        since.filter(|effect| **effect == Step::Lose).count()
    }
}

proptest! {
    #[test]
    fn any_sequence_of_steps_keeps_the_invariants(steps in steps(), jitter in 0.0..=1.0) {
        let (mut delivery, mut model) = (Progress::QUEUED, Model::default());
        for step in steps {
            let before = delivery;
            delivery = apply(step, delivery, jitter);
            prop_assert_eq!(model.take(step), delivery != before, "{:?} of {:?}", step, before);
            prop_assert!(model.agrees(delivery), "{:?} after {:?}", delivery, model.effects);
            let ended = model.count(Step::Succeed) + model.count(Step::Fail);
            prop_assert_eq!(usize::from(delivery.attempt), ended);
            prop_assert!(delivery.attempt <= MAX_ATTEMPTS);
            // A delivery that is lost again and again runs out of attempts as well, and a failed attempt
            // forgives no loss.
            prop_assert!(usize::from(delivery.lost) <= model.count(Step::Lose));
            prop_assert!(delivery.has_failed_by_loss() == (usize::from(delivery.lost) > 2));
            prop_assert!(usize::from(delivery.lost) >= model.losses());
            if delivery.attempt > before.attempt {
                prop_assert!(!delivery.has_failed_by_loss(), "the next attempt is sent");
                prop_assert_ne!(delivery.phase, Phase::Waiting(TimeDelta::zero()), "not at once");
            }
        }
    }
}

#[test]
fn a_delivery_whose_body_crashes_every_worker_is_sent_eight_times() {
    let (mut delivery, mut sent) = (Progress::QUEUED, 0);
    while delivery.phase != Phase::Exhausted {
        delivery = delivery.lease();
        if delivery.has_failed_by_loss() {
            delivery = apply(Step::Fail, delivery, 0.0);
        } else {
            sent += 1;
            delivery = delivery.lose();
        }
    }
    // Three times before the first failure, then once before each.
    assert_eq!(sent, 3 + 5);
}
