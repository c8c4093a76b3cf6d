//! A store of lanes in memory, and receivers that answer as they are told to.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use async_trait::async_trait;
use kernel::StoreError;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};
use uuid::Uuid;
use webhooks::{
    AddressPolicy, Attempted, Claimed, Conclusion, DeliveryId, Due, Failure, Fate, Hold, Host, Lane, LaneKey,
    Lanes, Message, Outcome, Release, Room, Sent, TopUp, ToppedUp, WebhookEvent, WebhookSecret,
    WebhookSender, WebhookUrl,
};

/// How long the store takes for anything.
const ROUND_TRIP: Duration = Duration::from_millis(2);

/// How many lanes one claim looks at.
const LANES_OF_A_CLAIM: usize = 128;

pub(super) fn secret() -> WebhookSecret {
    WebhookSecret::from_random(&[9; 32])
}

fn key(lane: u128) -> LaneKey {
    LaneKey {
        seller: Uuid::nil().into(),
        subscription: Uuid::from_u128(lane).into(),
    }
}

#[derive(Default)]
struct Kept {
    fence: Option<Uuid>,
    failing: bool,
    due: Vec<Due>,
    /// What its owner is taken to have in hand.
    in_hand: Vec<DeliveryId>,
    delivered: usize,
    /// Turns since it went to the back of the queue.
    turn: usize,
    /// The number of the application that it belongs to, where that is not the lane's own.
    application: Option<u128>,
    /// Until when it rests.
    rests: Option<Instant>,
}

#[derive(Default)]
struct Inner {
    lanes: BTreeMap<u128, Kept>,
    away: bool,
    calls: usize,
    turns: usize,
    next_id: u128,
    held_back: usize,
    failures: Vec<(Outcome, Fate)>,
    times: Vec<Instant>,
}

#[derive(Default)]
pub(super) struct Store {
    inner: Mutex<Inner>,
    changed: Notify,
}

impl Store {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap()
    }

    /// Queues so many deliveries, and returns the first one's id.
    pub(super) fn queue(&self, lane: u128, count: usize) -> DeliveryId {
        let ids: Vec<_> = (0..count).map(|_| self.add(lane, 0, 0)).collect();
        ids[0]
    }

    pub(super) fn queue_lost(&self, lane: u128, lost: u8) {
        self.add(lane, 0, lost);
    }

    pub(super) fn queue_after(&self, lane: u128, attempt: u8) -> DeliveryId {
        self.add(lane, attempt, 0)
    }

    /// So many lanes are due before all others and may not be worked on.
    pub(super) fn holds_back(&self, lanes: usize) {
        self.inner().held_back = lanes;
    }

    /// How many deliveries of the lane would be lost if its worker died now.
    pub(super) fn would_lose(&self, lane: u128) -> usize {
        self.inner().lanes[&lane].in_hand.len()
    }

    fn add(&self, lane: u128, attempt: u8, lost: u8) -> DeliveryId {
        let mut inner = self.inner();
        inner.next_id += 1;
        let id = Uuid::from_u128(inner.next_id).into();
        inner.lanes.entry(lane).or_default().due.push(Due {
            id,
            event: WebhookEvent::OrderPaid,
            body: Arc::from(format!("{id}").into_bytes()),
            attempt,
            lost,
        });
        id
    }

    pub(super) fn fails(&self, lane: u128) {
        self.inner().lanes.entry(lane).or_default().failing = true;
    }

    /// The lane belongs to this application, together with others.
    pub(super) fn belongs_to(&self, lane: u128, application: u128) {
        self.inner().lanes.entry(lane).or_default().application = Some(application);
    }

    /// How many deliveries wait in the lane, each with its attempts so far.
    pub(super) fn waiting_in(&self, lane: u128) -> Vec<u8> {
        self.inner().lanes[&lane]
            .due
            .iter()
            .map(|due| due.attempt)
            .collect()
    }

    /// Somebody else holds the lane from now on.
    pub(super) fn takes_over(&self, lane: u128) {
        self.inner().lanes.entry(lane).or_default().fence = Some(Uuid::max());
    }

    pub(super) fn goes_away(&self, away: bool) {
        self.inner().away = away;
    }

    pub(super) fn calls(&self) -> usize {
        self.inner().calls
    }

    pub(super) fn delivered(&self) -> usize {
        self.inner().lanes.values().map(|lane| lane.delivered).sum()
    }

    pub(super) fn held(&self) -> usize {
        self.inner()
            .lanes
            .values()
            .filter(|lane| lane.fence.is_some())
            .count()
    }

    pub(super) fn failures(&self) -> Vec<(Outcome, Fate)> {
        self.inner().failures.clone()
    }

    /// When the delivery was recorded that was so many successes' last.
    pub(super) fn time_of(&self, nth: usize) -> Instant {
        self.inner().times[nth - 1]
    }

    async fn until(&self, reached: impl Fn(&Inner) -> bool) {
        loop {
            let changed = self.changed.notified();
            if reached(&self.inner()) {
                return;
            }
            changed.await;
        }
    }

    pub(super) async fn finished(&self) {
        self.until(|inner| inner.lanes.values().all(|lane| lane.due.is_empty()))
            .await;
    }

    pub(super) async fn delivered_of(&self, lane: u128, count: usize) {
        self.until(|inner| inner.lanes.get(&lane).is_some_and(|lane| lane.delivered >= count))
            .await;
    }

    /// Until each delivery of the lane has had an attempt.
    pub(super) async fn attempted_in(&self, lane: u128) {
        self.until(|inner| {
            let lane = inner.lanes.get(&lane);
            lane.is_some_and(|lane| lane.due.iter().all(|due| due.attempt > 0))
        })
        .await;
    }

    async fn call(&self) -> Result<MutexGuard<'_, Inner>, StoreError> {
        sleep(ROUND_TRIP).await;
        let mut inner = self.inner();
        inner.calls += 1;
        if inner.away {
            Err(StoreError::Unavailable("away".into()))
        } else {
            Ok(inner)
        }
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
    /// How many attempts go to a host at a time, where that is limited.
    places: Option<usize>,
    postponed: usize,
}

/// Receivers, one for each lane.
#[derive(Default)]
pub(super) struct Receivers(Mutex<Seen>);

fn name(lane: u128) -> String {
    format!("lane{lane}.example")
}

impl Receivers {
    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap()
    }

    pub(super) fn answer(&self, lane: u128, after: Duration, status: u16) {
        let outcome = Outcome::Answered(status);
        self.seen().manners.insert(name(lane), Manner { after, outcome });
    }

    pub(super) fn answer_one(&self, delivery: DeliveryId, after: Duration, status: u16) {
        let outcome = Outcome::Answered(status);
        self.seen().exceptions.insert(delivery, Manner { after, outcome });
    }

    pub(super) fn never_answer(&self, lane: u128, after: Duration) {
        let outcome = Outcome::Failed(Failure::TimedOut);
        self.seen().manners.insert(name(lane), Manner { after, outcome });
    }

    /// From now on a host gets no more attempts at a time.
    pub(super) fn have_places(&self, places: usize) {
        self.seen().places = Some(places);
    }

    /// How often something could not begin.
    pub(super) fn postponed(&self) -> usize {
        self.seen().postponed
    }

    pub(super) fn sent(&self) -> usize {
        self.seen().sent
    }

    pub(super) fn most_at_once(&self) -> usize {
        self.seen().most
    }

    pub(super) fn most_at_once_of(&self, lane: u128) -> usize {
        self.seen().most_of[&name(lane)]
    }

    pub(super) fn last_end_of(&self, lane: u128) -> Instant {
        self.seen().ends[&name(lane)]
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
