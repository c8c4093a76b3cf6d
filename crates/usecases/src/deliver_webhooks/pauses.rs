//! How long queues are paused whose hosts have too many attempts under way.

use std::collections::HashMap;
use std::mem::take;

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

/// After this many beats, or this many queues, pauses are remembered for as long again: longer than one lasts. Some are of
/// queues that were deleted, or that other workers have taken over.
const REMEMBERED_FOR: u16 = 620;
const MOST_REMEMBERED: usize = 65_536;

/// Pauses of queues in which nothing could begin, by what they waited for.
type Waiting = HashMap<(ClientId, Host), HashMap<QueueKey, TimeDelta>>;

#[derive(Default)]
pub(super) struct Pauses {
    lately: Waiting,
    before: Waiting,
    /// Of `lately`.
    beats: u16,
    known: usize,
}

fn host(queue: &LeasedQueue) -> (ClientId, Host) {
    (queue.client_id, queue.url.host().clone())
}

impl Pauses {
    /// The next pause of a queue: twice its last one, and longer the more queues wait for the host.
    pub(super) fn next(&self, queue: &LeasedQueue, key: QueueKey, slots: Slots) -> TimeDelta {
        let host = host(queue);
        let (mut last, mut waiting) = (None, 0);
        for queues in [&self.lately, &self.before]
            .into_iter()
            .filter_map(|all| all.get(&host))
        {
            last = last.or(queues.get(&key));
            waiting += queues.len();
        }
        let doubled = last.and_then(|last| last.checked_mul(2));
        let number = u16::try_from(waiting).unwrap_or(u16::MAX);
        let of_many = TRIED_WITHIN * i64::from(number) / i64::from(slots.per_owner.max(1));
        let pause = doubled.map_or(PAUSE, |pause| pause.min(LONGEST_PAUSE));
        pause.max(TimeDelta::milliseconds(of_many).min(LONGEST_OF_MANY))
    }

    pub(super) fn released(&mut self, queue: &LeasedQueue, release: &Release) {
        let (host, key) = (host(queue), release.lease.queue);
        if let Some(queues) = self.before.get_mut(&host) {
            queues.remove(&key);
        }
        if release.pause > TimeDelta::zero() {
            let former = self.lately.entry(host).or_default().insert(key, release.pause);
            self.known += usize::from(former.is_none());
        } else if let Some(queues) = self.lately.get_mut(&host) {
            self.known -= usize::from(queues.remove(&key).is_some());
        }
    }

    pub(super) fn beat(&mut self) {
        self.beats += 1;
        if self.beats >= REMEMBERED_FOR || self.known >= MOST_REMEMBERED {
            let lately = take(&mut self.lately);
            *self = Self {
                before: lately,
                ..Self::default()
            };
        }
    }
}
