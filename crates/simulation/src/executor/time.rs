//! The clock of a run: it stands still while anybody can go on, and jumps to the next moment that somebody waits for.

use std::{future::poll_fn, pin::pin, task::Poll};

use chrono::{DateTime, TimeDelta, Utc};
use futures_util::future::{Either, select};

use super::Simulator;

impl Simulator {
    /// The present.
    pub fn now(&self) -> DateTime<Utc> {
        self.state().now
    }

    /// Waits until `instant`.
    pub async fn sleep_until(&self, instant: DateTime<Utc>) {
        poll_fn(|context| {
            let mut state = self.state();
            if state.now >= instant {
                return Poll::Ready(());
            }
            state.numbers += 1;
            let number = state.numbers;
            state.timers.insert((instant, number), context.waker().clone());
            Poll::Pending
        })
        .await;
    }

    /// Waits for some time.
    pub async fn sleep(&self, time: TimeDelta) {
        self.sleep_until(self.now() + time).await;
    }

    /// Waits for a random time of `from` to `to` milliseconds.
    pub async fn pause(&self, from: i64, to: i64) {
        let time = self.draw(|chance| chance.i64(from..=to));
        self.sleep(TimeDelta::milliseconds(time)).await;
    }

    /// Waits for `work`, but not longer than `limit`: nothing where that was not enough.
    pub async fn within<T>(&self, limit: TimeDelta, work: impl Future<Output = T>) -> Option<T> {
        match select(pin!(work), pin!(self.sleep(limit))).await {
            Either::Left((value, _)) => Some(value),
            Either::Right(((), _)) => None,
        }
    }

    /// Lets others go on in the same moment.
    pub async fn yield_now(&self) {
        let mut yielded = false;
        poll_fn(|context| {
            if yielded {
                return Poll::Ready(());
            }
            yielded = true;
            context.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
    }

    /// Moves the clock on, whoever waits for what.
    pub fn shift(&self, by: TimeDelta) {
        self.state().now += by;
    }

    /// Jumps to the next moment that somebody waits for; false where there is none.
    pub(super) fn pass_time(&self) -> bool {
        let mut state = self.state();
        let Some((instant, _)) = state.timers.first_key_value().map(|(key, _)| *key) else {
            return false;
        };
        state.now = state.now.max(instant);
        let later = state.timers.split_off(&(instant, u64::MAX));
        let due = std::mem::replace(&mut state.timers, later);
        drop(state);
        for waker in due.into_values() {
            waker.wake();
        }
        true
    }
}
