//! In-memory receivers, one per queue, with configured responses.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use async_trait::async_trait;
use tokio::time::{Instant, sleep};
use webhooks::{Attempted, DeliveryId, Failure, Host, Message, Outcome, Sent, WebhookSender};

#[derive(Clone)]
struct Manner {
    after: Duration,
    outcome: Outcome,
}

#[derive(Default)]
struct Seen {
    manners: HashMap<String, Manner>,
    exceptions: HashMap<DeliveryId, Manner>,
    running: HashMap<String, usize>,
    most_of: HashMap<String, usize>,
    most: usize,
    sent: usize,
    ends: HashMap<String, Instant>,
    last: Option<Message>,
    /// The limit of concurrent attempts per host, if any.
    places: Option<usize>,
    postponed: usize,
}

/// Receivers, one for each queue.
#[derive(Default)]
pub(super) struct Receivers(Mutex<Seen>);

fn name(queue: u128) -> String {
    format!("queue{queue}.example")
}

impl Receivers {
    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap()
    }

    pub(super) fn answer(&self, queue: u128, after: Duration, status: u16) {
        let outcome = Outcome::Answered(status);
        self.seen().manners.insert(name(queue), Manner { after, outcome });
    }

    pub(super) fn answer_one(&self, delivery: DeliveryId, after: Duration, status: u16) {
        let outcome = Outcome::Answered(status);
        self.seen().exceptions.insert(delivery, Manner { after, outcome });
    }

    pub(super) fn never_answer(&self, queue: u128, after: Duration) {
        let outcome = Outcome::Failed(Failure::TimedOut);
        self.seen().manners.insert(name(queue), Manner { after, outcome });
    }

    /// Limits the concurrent attempts per host from now on.
    pub(super) fn have_places(&self, places: usize) {
        self.seen().places = Some(places);
    }

    /// How many attempts could not begin.
    pub(super) fn postponed(&self) -> usize {
        self.seen().postponed
    }

    pub(super) fn sent(&self) -> usize {
        self.seen().sent
    }

    pub(super) fn most_at_once(&self) -> usize {
        self.seen().most
    }

    pub(super) fn most_at_once_of(&self, queue: u128) -> usize {
        self.seen().most_of[&name(queue)]
    }

    pub(super) fn last_end_of(&self, queue: u128) -> Instant {
        self.seen().ends[&name(queue)]
    }

    pub(super) fn last_message(&self) -> Message {
        self.seen().last.clone().unwrap()
    }
}

#[async_trait]
impl WebhookSender for Receivers {
    async fn send(&self, message: &Message) -> Sent {
        let Host::Name(name) = message.url.host().clone() else {
            panic!("{:?}", message.url);
        };
        let Manner { after, outcome } = {
            let seen = &mut *self.seen();
            let running = seen.running.entry(name.clone()).or_default();
            if seen.places.is_some_and(|places| *running >= places) {
                seen.postponed += 1;
                return Sent::Postponed;
            }
            *running += 1;
            seen.sent += 1;
            seen.last = Some(message.clone());
            let most_of = seen.most_of.entry(name.clone()).or_default();
            *most_of = (*most_of).max(*running);
            seen.most = seen.most.max(seen.running.values().sum());
            let exception = seen.exceptions.get(&message.delivery);
            exception.unwrap_or(&seen.manners[&name]).clone()
        };
        sleep(after).await;
        let mut seen = self.seen();
        *seen.running.entry(name.clone()).or_default() -= 1;
        seen.ends.insert(name, Instant::now());
        Sent::Attempted(Attempted {
            outcome,
            duration: after,
        })
    }
}
