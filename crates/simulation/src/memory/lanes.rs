//! The port of lanes: claiming them, and more of what is due in those that are held.

use std::{collections::BTreeMap, future::ready};

use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use kernel::StoreError;
use oauth::ClientId;
use uuid::Uuid;
use webhooks::{Claimed, Conclusion, Due, Hold, Lane, LaneKey, Lanes, Release, Room, TopUp, ToppedUp};

use super::{
    Database, Link, Stored, SubscriptionRow, TxId,
    due::{due_in_lane, next_due},
    locks::{Row, Strength},
    settling::{set_aside, settle},
    standing::{LaneState, lane_state},
};
use crate::Met;

/// How long a claim holds.
pub(super) const LEASE: TimeDelta = TimeDelta::seconds(30);
/// A lane that is due in so short a time is not forgotten: it rests.
const RESTS: TimeDelta = TimeDelta::seconds(5);

#[async_trait]
impl Lanes for Link {
    async fn claim(&self, fence: Uuid, room: Room) -> Result<Claimed, StoreError> {
        let database = self.database.clone();
        let claim = async move {
            database
                .alone(|tx| ready(Ok(claim(&database, tx, fence, &room))))
                .await
        };
        self.ask(claim).await
    }

    async fn top_up(&self, held: &[TopUp]) -> Result<Vec<ToppedUp>, StoreError> {
        let (database, held) = (self.database.clone(), held.to_vec());
        let top_up = async move { database.alone(|tx| top_up(&database, tx, &held)).await };
        self.ask(top_up).await
    }

    async fn settle(&self, conclusions: &[Conclusion], released: &[Release]) -> Result<(), StoreError> {
        let (database, ends, released) = (self.database.clone(), conclusions.to_vec(), released.to_vec());
        let settled = async move { database.alone(|tx| settle(&database, tx, &ends, &released)).await };
        self.ask(settled).await
    }

    async fn reconcile(&self) -> Result<usize, StoreError> {
        let database = self.database.clone();
        let reconcile = async move {
            database
                .alone(|tx| ready(Ok(wake_forgotten(&database, tx))))
                .await
        };
        self.ask(reconcile).await
    }
}

type Waiting = (LaneKey, SubscriptionRow);

/// Lanes that are due and that nobody has locked, those first that have waited longest, now locked.
fn waiting(
    database: &Database,
    tx: TxId,
    now: DateTime<Utc>,
    suits: impl Fn(&SubscriptionRow) -> bool,
) -> Vec<Waiting> {
    let mut due = database.at_once(|stored| {
        let is_due = |row: &SubscriptionRow| row.wake_at.is_some_and(|wake_at| wake_at <= now);
        stored
            .tables
            .subscriptions
            .select(tx, |_, row| is_due(row) && suits(row))
    });
    due.sort_by_key(|(key, row)| (row.wake_at, *key));
    due.retain(|(key, _)| database.try_lock(tx, &Row::Lane(*key), Strength::NoKeyUpdate));
    due
}

/// How much is left of the room, counted down delivery by delivery.
struct Left<'a> {
    room: &'a Room,
    given: u16,
    failing: u16,
    of: BTreeMap<ClientId, (u16, u16)>,
}

impl<'a> Left<'a> {
    fn new(room: &'a Room) -> Self {
        let of = room.under_way.iter();
        Self {
            room,
            given: 0,
            failing: 0,
            of: of.map(|of| (of.client_id, (of.attempts, of.failing))).collect(),
        }
    }

    /// Whether one more goes to this application; then it is counted.
    fn takes(&mut self, client_id: ClientId, failing: bool) -> bool {
        let (used, used_failing) = self.of.entry(client_id).or_default();
        let room = self.room;
        let fits = *used < room.per_application
            && self.given < room.attempts
            && (!failing
                || (*used_failing < room.failing_per_application && self.failing < room.failing_attempts));
        if fits {
            *used += 1;
            self.given += 1;
            *used_failing += u16::from(failing);
            self.failing += u16::from(failing);
        }
        fits
    }

    fn is_full(&self, row: &SubscriptionRow) -> bool {
        let (used, failing) = self.of.get(&row.new.client_id).copied().unwrap_or_default();
        used >= self.room.per_application || (row.failing && failing >= self.room.failing_per_application)
    }
}

fn claim(database: &Database, tx: TxId, fence: Uuid, room: &Room) -> Claimed {
    let now = database.now();
    let mut left = Left::new(room);
    let sound = waiting(database, tx, now, |row| !row.failing && !left.is_full(row));
    let troubled = waiting(database, tx, now, |row| row.failing && !left.is_full(row));
    let most = usize::from(room.attempts);
    let most_troubled = most.min(room.failing_attempts.into());
    let not_all_seen = sound.len() >= most || (1..=troubled.len()).contains(&most_troubled);
    let sound = sound.into_iter().take(most);
    let troubled = troubled.into_iter().take(most_troubled);
    let mut lanes: Vec<_> = sound.chain(troubled).collect();
    lanes.sort_by_key(|(key, row)| (row.wake_at, *key));
    let (live, others): (Vec<_>, Vec<_>) = lanes
        .into_iter()
        .partition(|(_, row)| database.at_once(|stored| lane_state(stored, tx, row)) == LaneState::Live);
    let looked_at = live.len();
    let claimed: Vec<_> = database.at_once(|stored| {
        let given = live.into_iter().filter_map(|waiting| {
            let was_left = waiting.1.leased;
            let lane = give(stored, tx, waiting, (fence, now), &mut left)?;
            if was_left {
                database.simulator().count(Met::LaneTakenOver);
            }
            Some(lane)
        });
        given.collect()
    });
    Claimed {
        set_aside: set_aside(database, tx, others, now),
        more: not_all_seen || claimed.len() < looked_at,
        lanes: claimed,
    }
}

/// Leases a lane with what there is room for; nothing where something is due and there is room for none of it.
fn give(
    stored: &mut Stored,
    tx: TxId,
    (lane, row): Waiting,
    (fence, now): (Uuid, DateTime<Utc>),
    left: &mut Left<'_>,
) -> Option<Lane> {
    let client_id = row.new.client_id;
    let places = if row.failing {
        left.room.per_failing_lane
    } else {
        left.room.per_lane
    };
    let repeats = places.saturating_sub(1).max(1);
    let due = due_in_lane(stored, tx, lane, (now, &[]), (places, repeats));
    let any = !due.is_empty();
    let mut given: Vec<Due> = due.into_iter().map(|(_, due)| due).collect();
    given.retain(|_| left.takes(client_id, row.failing));
    if any && given.is_empty() {
        return None;
    }
    if row.leased {
        count_losses(stored, tx, (lane, &row), &mut given);
    }
    stored.tables.subscriptions.change(tx, &lane, |row| {
        row.leased = true;
        row.fence = Some(fence);
        row.wake_at = Some(now + LEASE);
        row.in_hand = given.iter().map(|due| due.id).collect();
    });
    Some(Lane {
        hold: Hold { lane, fence },
        client_id,
        url: row.new.url,
        secret: row.new.secret,
        failing: row.failing,
        deliveries: given,
    })
}

/// The lane was left by its worker: what that one had in hand, and nobody has heard of since, is lost once more.
fn count_losses(stored: &mut Stored, tx: TxId, (lane, row): (LaneKey, &SubscriptionRow), given: &mut [Due]) {
    let leased_at = row.wake_at.map(|until| until - LEASE);
    for id in &row.in_hand {
        let mut lost = None;
        let known = stored.tables.deliveries.get(tx, &(lane, *id));
        if known.is_some_and(|known| known.due_at.is_some() && known.due_at <= leased_at) {
            stored.tables.deliveries.change(tx, &(lane, *id), |row| {
                row.lost = row.lost.saturating_add(1);
                lost = Some(row.lost);
            });
        }
        if let (Some(lost), Some(due)) = (lost, given.iter_mut().find(|due| due.id == *id)) {
            due.lost = lost;
        }
    }
}

async fn top_up(database: &Database, tx: TxId, held: &[TopUp]) -> Result<Vec<ToppedUp>, StoreError> {
    let mut held: Vec<_> = held.iter().collect();
    held.sort_by_key(|top_up| top_up.hold);
    let mut lanes = Vec::new();
    for top_up in held {
        let lane = top_up.hold.lane;
        database.lock(tx, Row::Lane(lane), Strength::NoKeyUpdate).await?;
        let now = database.now();
        lanes.extend(database.at_once(|stored| {
            let row = stored.tables.subscriptions.get(tx, &lane)?;
            let ours = row.leased && row.fence == Some(top_up.hold.fence);
            if !ours || lane_state(stored, tx, row) != LaneState::Live {
                return None;
            }
            let room = (top_up.room, top_up.repeats);
            let due = due_in_lane(stored, tx, lane, (now, &top_up.running), room);
            let deliveries: Vec<_> = due.into_iter().map(|(_, due)| due).collect();
            let given = deliveries.iter().map(|due| due.id);
            let in_hand = top_up.running.iter().copied().chain(given).collect();
            stored.tables.subscriptions.change(tx, &lane, |row| {
                row.wake_at = Some(now + LEASE);
                row.in_hand = in_hand;
            });
            Some(ToppedUp {
                hold: top_up.hold,
                deliveries,
            })
        }));
    }
    Ok(lanes)
}

/// Wakes lanes that sleep though something is due in them.
fn wake_forgotten(database: &Database, tx: TxId) -> usize {
    let now = database.now();
    let mut forgotten = database.at_once(|stored| {
        let sleeps = |row: &SubscriptionRow| row.wake_at.is_none_or(|wake_at| wake_at > now + RESTS);
        let due = |key: &LaneKey| next_due(stored, tx, *key).is_some_and(|due_at| due_at <= now);
        let held = |row: &SubscriptionRow| lane_state(stored, tx, row) == LaneState::Held;
        let lanes = &stored.tables.subscriptions;
        lanes.select(tx, |key, row| {
            row.active && !row.leased && sleeps(row) && due(key) && !held(row)
        })
    });
    forgotten.retain(|(key, _)| database.try_lock(tx, &Row::Lane(*key), Strength::NoKeyUpdate));
    database.at_once(|stored| {
        for (key, _) in &forgotten {
            stored
                .tables
                .subscriptions
                .change(tx, key, |row| row.wake_at = Some(now));
        }
    });
    forgotten.len()
}
