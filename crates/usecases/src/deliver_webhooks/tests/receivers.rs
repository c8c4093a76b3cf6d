//! In-memory receivers, one per queue, with configured responses.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use async_trait::async_trait;
use tokio::time::sleep;
use webhooks::{AttemptFailure, Attempted, DeliveryId, Host, Message, Outcome, Sent, WebhookSender};

use super::store::secret;

/// How and when a receiver responds.
#[derive(Clone)]
pub(super) struct Response(Duration, Outcome);

impl Response {
    pub(super) const fn status(after: Duration, status: u16) -> Self {
        Self(after, Outcome::Answered(status))
    }

    pub(super) const fn timeout(after: Duration) -> Self {
        Self(after, Outcome::Failed(AttemptFailure::TimedOut))
    }
}

#[derive(Default)]
struct State {
    responses: HashMap<String, Response>,
    exceptions: HashMap<DeliveryId, Response>,
    running: HashMap<String, usize>,
    most_of: HashMap<String, usize>,
    most: usize,
    sent: usize,
    /// The limit of concurrent attempts per host, if any.
    limit: Option<usize>,
    postponed: usize,
}

/// Receivers, one for each queue.
#[derive(Default)]
pub(super) struct Receivers(Mutex<State>);

fn name(queue: u128) -> String {
    format!("queue{queue}.example")
}

impl Receivers {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    pub(super) fn respond(&self, queue: u128, response: Response) {
        self.state().responses.insert(name(queue), response);
    }

    pub(super) fn respond_to(&self, delivery: DeliveryId, response: Response) {
        self.state().exceptions.insert(delivery, response);
    }

    /// Limits the concurrent attempts per host from now on.
    pub(super) fn limit_per_host(&self, attempts: usize) {
        self.state().limit = Some(attempts);
    }

    /// How many attempts could not begin.
    pub(super) fn postponed(&self) -> usize {
        self.state().postponed
    }

    pub(super) fn sent(&self) -> usize {
        self.state().sent
    }

    pub(super) fn most_at_once(&self) -> usize {
        self.state().most
    }

    pub(super) fn most_at_once_of(&self, queue: u128) -> usize {
        self.state().most_of[&name(queue)]
    }
}

#[async_trait]
impl WebhookSender for Receivers {
    async fn send(&self, message: &Message) -> Sent {
        assert_eq!(*message.secrets, secret().into());
        let Host::Name(name) = message.url.host().clone() else {
            panic!("{:?}", message.url);
        };
        let Response(duration, outcome) = {
            let state = &mut *self.state();
            let running = state.running.entry(name.clone()).or_default();
            if state.limit.is_some_and(|limit| *running >= limit) {
                state.postponed += 1;
                return Sent::Postponed;
            }
            *running += 1;
            state.sent += 1;
            let most_of = state.most_of.entry(name.clone()).or_default();
            *most_of = (*most_of).max(*running);
            state.most = state.most.max(state.running.values().sum());
            let exception = state.exceptions.get(&message.delivery);
            exception.unwrap_or_else(|| &state.responses[&name]).clone()
        };
        sleep(duration).await;
        *self.state().running.entry(name).or_default() -= 1;
        Sent::Attempted(Attempted { outcome, duration })
    }
}
