//! The state machine of a delivery, tested with random histories.

use std::time::Duration;

use proptest::prelude::*;
use uuid::Uuid;

use super::*;
use crate::Failure;

fn queued() -> Delivery {
    Delivery {
        id: Uuid::nil().into(),
        event: WebhookEvent::OrderPaid,
        created_at: DateTime::UNIX_EPOCH,
        state: DeliveryState::Queued,
    }
}

fn outcomes() -> impl Strategy<Value = Outcome> {
    prop_oneof![
        (100_u16..=999).prop_map(Outcome::Answered),
        Just(Outcome::Failed(Failure::TimedOut)),
        ".{0,20}".prop_map(|reason| Outcome::Failed(Failure::tls(&reason))),
    ]
}

fn attempts() -> impl Strategy<Value = Vec<Attempted>> {
    let attempt = (outcomes(), 0_u64..20_000).prop_map(|(outcome, ms)| Attempted {
        outcome,
        duration: Duration::from_millis(ms),
    });
    prop::collection::vec(attempt, 0..10)
}

/// The row of a state.
fn record(delivery: &Delivery) -> DeliveryRecord {
    let state = &delivery.state;
    DeliveryRecord {
        attempt: state.attempt().into(),
        due_at: match state {
            DeliveryState::Queued => Some(delivery.created_at),
            _ => state.next_retry_at(),
        },
        delivered_at: state.delivered_at(),
        last: state.last().cloned(),
    }
}

fn ended(attempts: Vec<Attempted>) -> Delivery {
    attempts.into_iter().fold(queued(), |delivery, last| {
        let next = delivery
            .clone()
            .conclude(last, DateTime::UNIX_EPOCH, &RetrySchedule::default(), 0.0);
        next.unwrap_or(delivery)
    })
}

proptest! {
    #[test]
    fn a_delivery_ends_at_its_first_success_or_its_sixth_failure(attempts in attempts(), jitter in 0.0..=1.0) {
        let schedule = RetrySchedule::default();
        let (mut delivery, mut now) = (queued(), DateTime::UNIX_EPOCH);
        let (mut failures, mut arrived) = (0, false);
        for last in attempts {
            now += TimeDelta::from_std(last.duration).unwrap();
            match delivery.clone().conclude(last.clone(), now, &schedule, jitter) {
                Err(Finished) => prop_assert!(arrived || failures == MOST_ATTEMPTS),
                Ok(after) => {
                    prop_assert!(!arrived && failures < MOST_ATTEMPTS);
                    prop_assert_eq!(after.state.attempt(), delivery.state.attempt() + 1);
                    prop_assert_eq!(after.state.last(), Some(&last));
                    arrived = last.outcome.is_success();
                    failures += u8::from(!arrived);
                    prop_assert_eq!(after.state.delivered_at(), arrived.then_some(now));
                    let waits = after.state.next_retry_at().map(|due| due > now);
                    prop_assert_eq!(waits, (!arrived && failures < MOST_ATTEMPTS).then_some(true));
                    delivery = after;
                }
            }
            prop_assert!(delivery.state.attempt() <= MOST_ATTEMPTS);
        }
    }

    #[test]
    fn a_stopped_delivery_retains_its_attempts_and_has_no_more(attempts in attempts()) {
        let delivery = ended(attempts);
        let stopped = delivery.clone().stop();
        prop_assert_eq!(stopped.state.attempt(), delivery.state.attempt());
        prop_assert_eq!(stopped.state.last(), delivery.state.last());
        prop_assert_eq!(stopped.state.next_retry_at(), None);
        prop_assert_eq!(stopped.clone().stop(), stopped.clone());
        let late = Attempted { outcome: Outcome::Answered(200), duration: Duration::ZERO };
        let late = stopped.conclude(late, DateTime::UNIX_EPOCH, &RetrySchedule::default(), 0.0);
        prop_assert_eq!(late, Err(Finished));
    }

    #[test]
    fn states_are_read_back_from_their_records(attempts in attempts(), stops: bool) {
        let delivery = ended(attempts);
        let delivery = if stops { delivery.stop() } else { delivery };
        prop_assert_eq!(DeliveryState::try_from(record(&delivery)), Ok(delivery.state));
    }

    #[test]
    fn jitter_adds_at_most_a_tenth(attempt in 1_u8..=5, jitter: f64) {
        let schedule = RetrySchedule::default();
        let (least, delay) = (schedule.delay(attempt, 0.0).unwrap(), schedule.delay(attempt, jitter).unwrap());
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
        let last = last.clone();
        DeliveryState::try_from(DeliveryRecord {
            attempt,
            due_at,
            delivered_at,
            last,
        })
        .unwrap_err();
    };
    refused(-1, None, None, &None);
    refused(7, None, None, &last);
    refused(6, at, None, &last);
    refused(0, None, at, &None);
    refused(0, None, None, &last);
    refused(1, at, at, &last);
    refused(1, at, None, &None);
}

#[test]
fn the_contracts_delays() {
    let schedule = RetrySchedule::default();
    let delays = [0, 1, 2, 3, 4, 5, 6].map(|attempt| schedule.delay(attempt, 0.0));
    let minutes = delays.map(|delay| delay.map_or(0, |delay| delay.num_minutes()));
    assert_eq!(minutes, [0, 1, 5, 30, 120, 720, 0]);
    assert_eq!((delays[0], delays[6]), (None, None));
}
