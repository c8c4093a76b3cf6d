//! The breaker's rules, with a clock that stands until it is moved.

use super::*;

#[derive(Default)]
struct Hand(Mutex<TimeDelta>);

impl Hand {
    fn forward(&self, seconds: i64) {
        *self.0.lock().unwrap() += TimeDelta::seconds(seconds);
    }
}

impl Clock for Hand {
    fn now(&self) -> DateTime<Utc> {
        DateTime::from_timestamp(1_700_000_000, 0).unwrap() + *self.0.lock().unwrap()
    }
}

fn breaker() -> (Breaker, Arc<Hand>) {
    let clock = Arc::new(Hand::default());
    (Breaker::new(Carrier::Gls, clock.clone()), clock)
}

fn admitted(breaker: &Breaker) -> Ticket<'_> {
    breaker.admit().unwrap_or_else(|why| panic!("{why}"))
}

fn ends(breaker: &Breaker, outcome: Outcome) {
    admitted(breaker).settle(outcome);
}

/// How long the breaker stays open from now on, in seconds.
fn pause(breaker: &Breaker, clock: &Hand) -> i64 {
    let mut waited = 0;
    while breaker.refusal().is_some() {
        clock.forward(1);
        waited += 1;
        assert!(waited <= 100_000, "it never opens");
    }
    waited
}

#[test]
fn three_timeouts_in_a_row_open_it() {
    let (breaker, clock) = breaker();
    for outcome in [
        Outcome::Timeout,
        Outcome::Timeout,
        Outcome::Success,
        Outcome::Timeout,
        Outcome::Timeout,
    ] {
        ends(&breaker, outcome);
    }
    assert_eq!(breaker.refusal(), None);
    ends(&breaker, Outcome::Timeout);
    assert_eq!(pause(&breaker, &clock), 30);
}

#[test]
fn five_failures_of_the_last_ten_open_it() {
    let (breaker, clock) = breaker();
    // Ten look-ups, four failures; then the first failure leaves the window as the next one comes.
    for n in 0..10 {
        ends(
            &breaker,
            if n % 3 == 0 {
                Outcome::Failure
            } else {
                Outcome::Success
            },
        );
    }
    ends(&breaker, Outcome::Failure);
    assert_eq!(breaker.refusal(), None);
    ends(&breaker, Outcome::Timeout);
    assert_eq!(pause(&breaker, &clock), 30);
}

#[test]
fn the_pause_doubles_up_to_five_minutes_and_a_success_ends_it() {
    let (breaker, clock) = breaker();
    for _ in 0..5 {
        ends(&breaker, Outcome::Failure);
    }
    for seconds in [30, 60, 120, 240, 300, 300] {
        assert_eq!(pause(&breaker, &clock), seconds);
        ends(&breaker, Outcome::Failure);
    }
    pause(&breaker, &clock);
    ends(&breaker, Outcome::Success);
    for _ in 0..4 {
        ends(&breaker, Outcome::Failure);
        assert_eq!(breaker.refusal(), None, "it begins anew");
    }
    ends(&breaker, Outcome::Failure);
    assert_eq!(pause(&breaker, &clock), 30);
}

#[test]
fn one_probe_at_a_time() {
    let (breaker, clock) = breaker();
    for _ in 0..3 {
        ends(&breaker, Outcome::Timeout);
    }
    pause(&breaker, &clock);
    let probe = admitted(&breaker);
    assert!(breaker.admit().is_err());
    // A probe that is given up makes room for another.
    drop(probe);
    let probe = admitted(&breaker);
    probe.settle(Outcome::Success);
    assert!(breaker.admit().is_ok());
}

#[test]
fn what_comes_late_changes_nothing() {
    let (breaker, clock) = breaker();
    let (slow, slower) = (admitted(&breaker), admitted(&breaker));
    for _ in 0..3 {
        ends(&breaker, Outcome::Timeout);
    }
    slow.settle(Outcome::Success);
    assert!(breaker.refusal().is_some());
    clock.forward(30);
    let probe = admitted(&breaker);
    slower.settle(Outcome::Timeout);
    probe.settle(Outcome::Success);
    assert_eq!(breaker.refusal(), None);
}

#[test]
fn throttling_opens_it_at_once_and_for_so_long_as_asked() {
    let (breaker, clock) = breaker();
    let slow = admitted(&breaker);
    ends(&breaker, Outcome::Throttled(TimeDelta::seconds(60)));
    clock.forward(10);
    slow.settle(Outcome::Throttled(TimeDelta::seconds(120)));
    assert_eq!(pause(&breaker, &clock), 120);
    let probe = admitted(&breaker);
    assert!(probe.is_after_throttling());
    probe.settle(Outcome::Success);
    assert!(!admitted(&breaker).is_after_throttling());
}

#[test]
fn refused_credentials_shut_it_for_good() {
    let (breaker, clock) = breaker();
    let slow = admitted(&breaker);
    ends(&breaker, Outcome::Refused);
    slow.settle(Outcome::Success);
    clock.forward(365 * 86_400);
    assert!(breaker.admit().is_err());
}

#[test]
fn a_clock_that_is_set_back_does_not_prolong_the_pause() {
    let (breaker, clock) = breaker();
    for _ in 0..3 {
        ends(&breaker, Outcome::Timeout);
    }
    clock.forward(-3_600);
    assert_eq!(breaker.refusal(), None);
}
