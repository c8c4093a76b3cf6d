//! Properties over any sequence of ends and losses.

use proptest::prelude::*;

use super::*;
use crate::MAX_ATTEMPTS;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Lose,
    Succeed,
    Fail,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => Just(Step::Lose),
        1 => Just(Step::Succeed),
        8 => Just(Step::Fail),
    ];
    prop::collection::vec(step, 1..30)
}

fn end(delivery: Progress, step: Step, jitter: u32) -> (Progress, Phase) {
    let status = if step == Step::Succeed { 204 } else { 500 };
    delivery.end(&Outcome::Answered(status), &RetrySchedule::default(), jitter)
}

proptest! {
    #[test]
    fn any_sequence_of_steps_keeps_the_invariants(steps in steps(), jitter: u32) {
        let mut delivery = Progress::default();
        for step in steps {
            if step == Step::Lose {
                let next = delivery.lose();
                prop_assert_eq!((next.attempt, next.lost), (delivery.attempt, delivery.lost + 1));
                prop_assert_eq!(next.has_failed_by_loss(), next.lost > 2);
                delivery = next;
                continue;
            }
            let (next, phase) = end(delivery, step, jitter);
            prop_assert_eq!(next.attempt, delivery.attempt + 1);
            // The next attempt is sent, and a failed one forgives no loss.
            prop_assert!(!next.has_failed_by_loss());
            prop_assert_eq!(next.lost, delivery.lost.min(2));
            delivery = next;
            match phase {
                Phase::Waiting(delay) => {
                    prop_assert_eq!(step, Step::Fail);
                    prop_assert!(delivery.attempt < MAX_ATTEMPTS && delay > TimeDelta::zero());
                }
                Phase::Delivered => {
                    prop_assert_eq!(step, Step::Succeed);
                    break;
                }
                Phase::Exhausted => {
                    prop_assert_eq!((step, delivery.attempt), (Step::Fail, MAX_ATTEMPTS));
                    break;
                }
            }
        }
    }
}

#[test]
fn a_delivery_whose_body_crashes_every_worker_is_sent_eight_times() {
    let (mut delivery, mut phase, mut sent) = (Progress::default(), Phase::Waiting(TimeDelta::zero()), 0);
    while phase != Phase::Exhausted {
        if delivery.has_failed_by_loss() {
            (delivery, phase) = end(delivery, Step::Fail, 0);
        } else {
            sent += 1;
            delivery = delivery.lose();
        }
    }
    // Three times before the first failure, then once before each.
    assert_eq!(sent, 3 + 5);
}
