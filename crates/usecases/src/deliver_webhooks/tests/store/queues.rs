//! The port of queues over this store: the rules of claims without a database.

use std::collections::HashMap;

use async_trait::async_trait;
use kernel::StoreError;
use tokio::time::Instant;
use uuid::Uuid;
use webhooks::{
    AddressPolicy, AttemptRecord, Capacity, Claimed, DeliveryId, Due, Lease, NextStep, QueueKey, Refill,
    Refilled, Release, SubscriptionQueue, SubscriptionQueues, WebhookUrl,
};

use super::{Inner, Kept, Store, secret};

/// How many queues one claim examines.
const LANES_OF_A_CLAIM: usize = 128;

fn key(queue: u128) -> QueueKey {
    QueueKey {
        seller: Uuid::nil().into(),
        subscription: Uuid::from_u128(queue).into(),
    }
}

impl Kept {
    /// The due deliveries: three first attempts for each repeated one, beginning with a first one.
    fn next(&self, running: &[DeliveryId], capacity: u16, repeats: u16) -> Vec<Due> {
        let idle = || self.due.iter().filter(|due| !running.contains(&due.id));
        let firsts = idle().filter(|due| due.attempt == 0);
        let repeated = idle().filter(|due| due.attempt > 0).take(repeats.into());
        let firsts = (1..).map(|n| 2 * n).zip(firsts);
        let repeated = (1..).map(|n| 6 * n - 3).zip(repeated);
        let mut placed: Vec<_> = firsts.chain(repeated).collect();
        placed.sort_by_key(|(place, _): &(usize, _)| *place);
        let given = placed.into_iter().take(capacity.into());
        given.map(|(_, due)| due.clone()).collect()
    }
}

impl Inner {
    fn of(&mut self, lease: &Lease) -> Option<&mut Kept> {
        let queue = self.queues.get_mut(&lease.queue.subscription.uuid().as_u128());
        queue.filter(|queue| queue.fence == Some(lease.fence))
    }
}

#[async_trait]
impl SubscriptionQueues for Store {
    async fn claim(&self, fence: Uuid, capacity: Capacity) -> Result<Claimed, StoreError> {
        let mut inner = self.call().await?;
        let suspended = inner.held_back.min(LANES_OF_A_CLAIM);
        if suspended > 0 {
            inner.held_back -= suspended;
            return Ok(Claimed {
                queues: Vec::new(),
                suspended,
                more: false,
            });
        }
        let (mut attempts, mut failing_attempts) = (capacity.attempts, capacity.failing_attempts);
        let under_way = capacity.under_way.into_iter();
        let mut under_way: HashMap<_, _> = under_way
            .map(|of| (of.client_id, (of.attempts, of.failing)))
            .collect();
        let rested = |queue: &Kept| queue.rests.is_none_or(|until| until <= Instant::now());
        let mut waiting: Vec<_> = inner
            .queues
            .iter_mut()
            .filter(|(_, queue)| queue.fence.is_none() && !queue.due.is_empty() && rested(queue))
            .collect();
        waiting.sort_by_key(|(_, queue)| queue.turn);
        let (mut claimed, mut passed_over) = (Vec::new(), false);
        for (number, queue) in waiting {
            let client_id = Uuid::from_u128(queue.application.unwrap_or(*number)).into();
            let (used, failing_used) = under_way.entry(client_id).or_default();
            let left = attempts.min(capacity.per_application.saturating_sub(*used));
            let left_to_failing = capacity.failing_per_application.saturating_sub(*failing_used);
            let (places, limit) = if queue.failing {
                let limit = failing_attempts.min(left_to_failing).min(left);
                (capacity.per_failing_queue, capacity.per_failing_queue.min(limit))
            } else {
                (capacity.per_queue, capacity.per_queue.min(left))
            };
            let deliveries = queue.next(&[], limit, (places - 1).max(1));
            let count = u16::try_from(deliveries.len()).unwrap();
            if count == 0 {
                passed_over = true;
                continue;
            }
            attempts -= count;
            *used += count;
            if queue.failing {
                *failing_used += count;
                failing_attempts -= count;
            }
            queue.fence = Some(fence);
            queue.in_hand = deliveries.iter().map(|due| due.id).collect();
            claimed.push(SubscriptionQueue {
                lease: Lease {
                    queue: key(*number),
                    fence,
                },
                client_id,
                url: WebhookUrl::parse(format!("https://queue{number}.example/"), AddressPolicy::Public)
                    .unwrap(),
                secret: secret(),
                failing: queue.failing,
                deliveries,
            });
        }
        Ok(Claimed {
            queues: claimed,
            suspended: 0,
            more: passed_over,
        })
    }

    async fn refill(&self, held: &[Refill]) -> Result<Vec<Refilled>, StoreError> {
        let mut inner = self.call().await?;
        let refill = |held: &Refill| {
            let queue = inner.of(&held.lease)?;
            let deliveries = queue.next(&held.running, held.capacity, held.repeats);
            let given = deliveries.iter().map(|due| due.id);
            queue.in_hand = held.running.iter().copied().chain(given).collect();
            Some(Refilled {
                lease: held.lease,
                deliveries,
            })
        };
        Ok(held.iter().filter_map(refill).collect())
    }

    async fn settle(&self, records: &[AttemptRecord], released: &[Release]) -> Result<(), StoreError> {
        let mut inner = self.call().await?;
        for AttemptRecord {
            lease,
            delivery,
            outcome,
            next,
            ..
        } in records
        {
            let Some(queue) = inner.of(lease) else { continue };
            let before = queue.due.len();
            queue.due.retain(|due| due.id != *delivery);
            assert_eq!(queue.due.len() + 1, before, "recorded twice");
            if *next == NextStep::Delivered {
                queue.delivered += 1;
                inner.times.push(Instant::now());
            } else {
                inner.failures.push((outcome.clone(), *next));
            }
        }
        for Release { lease, failing, rest } in released {
            inner.turns += 1;
            let turn = inner.turns;
            let Some(queue) = inner.of(lease) else { continue };
            queue.fence = None;
            queue.in_hand.clear();
            queue.turn = turn;
            queue.failing = failing.unwrap_or(queue.failing);
            queue.rests = Some(Instant::now() + rest.to_std().unwrap());
        }
        drop(inner);
        self.changed.notify_waiters();
        Ok(())
    }

    async fn reconcile(&self) -> Result<usize, StoreError> {
        Ok(0)
    }
}
