//! States and their records, and the delays of the schedule.

use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::{AttemptFailure, Outcome};

fn outcomes() -> impl Strategy<Value = Outcome> {
    prop_oneof![
        (100_u16..=999).prop_map(Outcome::Answered),
        Just(Outcome::Failed(AttemptFailure::TimedOut)),
        ".{0,20}".prop_map(|reason| Outcome::Failed(AttemptFailure::tls(&reason))),
    ]
}

fn attempts() -> impl Strategy<Value = Attempted> {
    (outcomes(), 0_u64..20_000).prop_map(|(outcome, ms)| Attempted {
        outcome,
        duration: Duration::from_millis(ms),
    })
}

/// Every state, with the due time of a queued delivery.
fn states() -> impl Strategy<Value = DeliveryState> {
    let (failed, any) = (1..MAX_ATTEMPTS, 1..=MAX_ATTEMPTS);
    let at = || (0_i64..1_000_000).prop_map(|second| DateTime::UNIX_EPOCH + TimeDelta::seconds(second));
    prop_oneof![
        Just(DeliveryState::Queued),
        (failed.clone(), attempts(), at()).prop_map(|(attempt, last, due_at)| DeliveryState::Waiting {
            attempt,
            last,
            due_at
        }),
        (any, attempts(), at()).prop_map(|(attempt, last, at)| DeliveryState::Delivered {
            attempt,
            last,
            at
        }),
        attempts().prop_map(|last| DeliveryState::Exhausted { last }),
        Just(DeliveryState::Stopped {
            attempt: 0,
            last: None
        }),
        (failed, attempts()).prop_map(|(attempt, last)| DeliveryState::Stopped {
            attempt,
            last: Some(last)
        }),
    ]
}

proptest! {
    #[test]
    fn states_are_read_back_from_their_records(state in states()) {
        let queued = (state == DeliveryState::Queued).then_some(DateTime::UNIX_EPOCH);
        let (attempt, due_at) = (state.attempt().into(), state.next_retry_at().or(queued));
        let read = DeliveryState::stored(attempt, due_at, state.delivered_at(), state.last().cloned());
        prop_assert_eq!(read, Ok(state));
    }

    #[test]
    fn a_delivery_that_waits_keeps_its_attempts_and_any_other_begins_anew(state in states(), is_lost: bool) {
        let now = DateTime::UNIX_EPOCH + TimeDelta::seconds(500_000);
        let new = Delivery::queued(DeliveryId::from(uuid::Uuid::nil()), WebhookEvent::OrderPaid, Vec::new(), now);
        let delivery = Delivery { state: state.clone(), is_lost, ..new.clone() };
        let expected = match state {
            DeliveryState::Queued => delivery.clone(),
            DeliveryState::Waiting { attempt, last, due_at } => {
                let due_at = due_at.min(now);
                Delivery { state: DeliveryState::Waiting { attempt, last, due_at }, ..delivery.clone() }
            }
            _ => new,
        };
        prop_assert_eq!(delivery.again(now), expected);
    }

    #[test]
    fn jitter_adds_at_most_a_tenth(attempt in 1_u8..=5, jitter: u32) {
        let schedule = RetrySchedule::default();
        let (least, delay) = (schedule.0[usize::from(attempt) - 1], schedule.delay(attempt, jitter).unwrap());
        prop_assert!(delay >= least && delay <= least + least / 10, "{delay}");
    }
}

#[test]
fn impossible_records_are_refused() {
    let at = Some(DateTime::UNIX_EPOCH);
    let last = Some(Attempted {
        outcome: Outcome::Answered(500),
        duration: Duration::ZERO,
    });
    let refused = |attempt, due_at, delivered_at, last: &Option<Attempted>| {
        DeliveryState::stored(attempt, due_at, delivered_at, last.clone()).unwrap_err();
    };
    refused(-1, None, None, &None);
    refused(7, None, None, &last);
    refused(6, at, None, &last);
    refused(0, None, at, &None);
    refused(0, None, None, &last);
    refused(1, at, at, &last);
    refused(1, at, None, &None);
}
