//! How long queues are paused whose hosts have too many attempts under way.

use std::collections::HashMap;

use chrono::TimeDelta;
use oauth::ClientId;
use webhooks::{Host, QueueKey, Release};

use super::Slots;
use super::leased_queue::LeasedQueue;

/// The first pause.
pub(super) const PAUSE: TimeDelta = TimeDelta::milliseconds(250);

/// The longest pause if that happens repeatedly, and that of many queues.
const LONGEST_PAUSE: TimeDelta = TimeDelta::seconds(2);
const LONGEST_OF_MANY: TimeDelta = TimeDelta::seconds(60);

/// The milliseconds in which at most [`Slots::per_owner`] queues of a host are tried again. Their owner could try more
/// than twice as many, so its other queues have their turn.
const TRIED_WITHIN: i64 = 500;

/// How many queues' pauses are remembered. Beyond them all are forgotten, since some are of queues that were
/// deleted or that other workers have taken over.
const PAUSES_KNOWN: usize = 65_536;

/// The last pauses of queues in which nothing could begin, by what they waited for.
#[derive(Default)]
pub(super) struct Pauses {
    last: HashMap<(ClientId, Host), HashMap<QueueKey, TimeDelta>>,
    known: usize,
}

fn host(queue: &LeasedQueue) -> (ClientId, Host) {
    (queue.client_id, queue.url.host().clone())
}

impl Pauses {
    /// The next pause of a queue: twice its last one, and longer the more queues wait for the host.
    pub(super) fn next(&self, queue: &LeasedQueue, key: QueueKey, slots: Slots) -> TimeDelta {
        let Some(waiting) = self.last.get(&host(queue)) else {
            return PAUSE;
        };
        let doubled = waiting.get(&key).and_then(|last| last.checked_mul(2));
        let number = u16::try_from(waiting.len()).unwrap_or(u16::MAX);
        let of_many = TRIED_WITHIN * i64::from(number) / i64::from(slots.per_owner.max(1));
        let pause = doubled.map_or(PAUSE, |pause| pause.min(LONGEST_PAUSE));
        pause.max(TimeDelta::milliseconds(of_many).min(LONGEST_OF_MANY))
    }

    pub(super) fn released(&mut self, queue: &LeasedQueue, release: &Release) {
        let host = host(queue);
        if release.pause > TimeDelta::zero() {
            if self.known >= PAUSES_KNOWN {
                *self = Self::default();
            }
            let waiting = self.last.entry(host).or_default();
            if waiting.insert(release.lease.queue, release.pause).is_none() {
                self.known += 1;
            }
        } else if let Some(waiting) = self.last.get_mut(&host)
            && waiting.remove(&release.lease.queue).is_some()
        {
            self.known -= 1;
            if waiting.is_empty() {
                self.last.remove(&host);
            }
        }
    }
}
