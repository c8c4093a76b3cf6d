//! The port of lanes over this store: by the rules of claims, with none of a database's ways.

use std::collections::HashMap;

use async_trait::async_trait;
use kernel::StoreError;
use tokio::time::Instant;
use uuid::Uuid;
use webhooks::{
    AddressPolicy, Claimed, Conclusion, DeliveryId, Due, Fate, Hold, Lane, LaneKey, Lanes, Release, Room,
    TopUp, ToppedUp, WebhookUrl,
};

use super::{Inner, Kept, Store, secret};

/// How many lanes one claim looks at.
const LANES_OF_A_CLAIM: usize = 128;

fn key(lane: u128) -> LaneKey {
    LaneKey {
        seller: Uuid::nil().into(),
        subscription: Uuid::from_u128(lane).into(),
    }
}

impl Kept {
    /// What is due: three first attempts for each repeated one, beginning with a first one.
    fn next(&self, running: &[DeliveryId], room: u16, repeats: u16) -> Vec<Due> {
        let idle = || self.due.iter().filter(|due| !running.contains(&due.id));
        let firsts = idle().filter(|due| due.attempt == 0);
        let repeated = idle().filter(|due| due.attempt > 0).take(repeats.into());
        let firsts = (1..).map(|n| 2 * n).zip(firsts);
        let repeated = (1..).map(|n| 6 * n - 3).zip(repeated);
        let mut placed: Vec<_> = firsts.chain(repeated).collect();
        placed.sort_by_key(|(place, _): &(usize, _)| *place);
        let given = placed.into_iter().take(room.into());
        given.map(|(_, due)| due.clone()).collect()
    }
}

impl Inner {
    fn of(&mut self, hold: &Hold) -> Option<&mut Kept> {
        let lane = self.lanes.get_mut(&hold.lane.subscription.uuid().as_u128());
        lane.filter(|lane| lane.fence == Some(hold.fence))
    }
}

#[async_trait]
impl Lanes for Store {
    async fn claim(&self, fence: Uuid, room: Room) -> Result<Claimed, StoreError> {
        let mut inner = self.call().await?;
        let set_aside = inner.held_back.min(LANES_OF_A_CLAIM);
        if set_aside > 0 {
            inner.held_back -= set_aside;
            return Ok(Claimed {
                lanes: Vec::new(),
                set_aside,
                more: false,
            });
        }
        let (mut attempts, mut failing_attempts) = (room.attempts, room.failing_attempts);
        let under_way = room.under_way.into_iter();
        let mut under_way: HashMap<_, _> = under_way
            .map(|of| (of.client_id, (of.attempts, of.failing)))
            .collect();
        let rested = |lane: &Kept| lane.rests.is_none_or(|until| until <= Instant::now());
        let mut waiting: Vec<_> = inner
            .lanes
            .iter_mut()
            .filter(|(_, lane)| lane.fence.is_none() && !lane.due.is_empty() && rested(lane))
            .collect();
        waiting.sort_by_key(|(_, lane)| lane.turn);
        let (mut claimed, mut passed_over) = (Vec::new(), false);
        for (number, lane) in waiting {
            let client_id = Uuid::from_u128(lane.application.unwrap_or(*number)).into();
            let (used, failing_used) = under_way.entry(client_id).or_default();
            let left = attempts.min(room.per_application.saturating_sub(*used));
            let left_to_failing = room.failing_per_application.saturating_sub(*failing_used);
            let (places, limit) = if lane.failing {
                let limit = failing_attempts.min(left_to_failing).min(left);
                (room.per_failing_lane, room.per_failing_lane.min(limit))
            } else {
                (room.per_lane, room.per_lane.min(left))
            };
            let deliveries = lane.next(&[], limit, (places - 1).max(1));
            let count = u16::try_from(deliveries.len()).unwrap();
            if count == 0 {
                passed_over = true;
                continue;
            }
            attempts -= count;
            *used += count;
            if lane.failing {
                *failing_used += count;
                failing_attempts -= count;
            }
            lane.fence = Some(fence);
            lane.in_hand = deliveries.iter().map(|due| due.id).collect();
            claimed.push(Lane {
                hold: Hold {
                    lane: key(*number),
                    fence,
                },
                client_id,
                url: WebhookUrl::parse(format!("https://lane{number}.example/"), AddressPolicy::Public)
                    .unwrap(),
                secret: secret(),
                failing: lane.failing,
                deliveries,
            });
        }
        Ok(Claimed {
            lanes: claimed,
            set_aside: 0,
            more: passed_over,
        })
    }

    async fn top_up(&self, held: &[TopUp]) -> Result<Vec<ToppedUp>, StoreError> {
        let mut inner = self.call().await?;
        let top_up = |held: &TopUp| {
            let lane = inner.of(&held.hold)?;
            let deliveries = lane.next(&held.running, held.room, held.repeats);
            let given = deliveries.iter().map(|due| due.id);
            lane.in_hand = held.running.iter().copied().chain(given).collect();
            Some(ToppedUp {
                hold: held.hold,
                deliveries,
            })
        };
        Ok(held.iter().filter_map(top_up).collect())
    }

    async fn settle(&self, conclusions: &[Conclusion], released: &[Release]) -> Result<(), StoreError> {
        let mut inner = self.call().await?;
        for Conclusion {
            hold,
            delivery,
            outcome,
            fate,
            ..
        } in conclusions
        {
            let Some(lane) = inner.of(hold) else { continue };
            let before = lane.due.len();
            lane.due.retain(|due| due.id != *delivery);
            assert_eq!(lane.due.len() + 1, before, "recorded twice");
            if *fate == Fate::Delivered {
                lane.delivered += 1;
                inner.times.push(Instant::now());
            } else {
                inner.failures.push((outcome.clone(), *fate));
            }
        }
        for Release { hold, failing, rest } in released {
            inner.turns += 1;
            let turn = inner.turns;
            let Some(lane) = inner.of(hold) else { continue };
            lane.fence = None;
            lane.in_hand.clear();
            lane.turn = turn;
            lane.failing = failing.unwrap_or(lane.failing);
            lane.rests = Some(Instant::now() + rest.to_std().unwrap());
        }
        drop(inner);
        self.changed.notify_waiters();
        Ok(())
    }

    async fn reconcile(&self) -> Result<usize, StoreError> {
        Ok(0)
    }
}
