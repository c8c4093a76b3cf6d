//! Recording how attempts ended, giving lanes back, and stopping what nothing comes of any more.

use std::collections::BTreeSet;

use chrono::{DateTime, TimeDelta, Utc};
use kernel::StoreError;
use webhooks::{Attempted, Conclusion, Fate, Hold, LOSSES_FORGIVEN, LaneKey, Release};

use super::{
    Database, Flaw, Stored, SubscriptionRow, TxId,
    due::next_due,
    locks::{Row, Strength},
    standing::{LaneState, lane_state},
};
use crate::Met;

/// A lane that somebody is about to queue something in is looked at again after so long.
const A_MOMENT: TimeDelta = TimeDelta::milliseconds(20);

/// Records the ends of attempts made under leases that still hold, and gives lanes back.
pub(super) async fn settle(
    database: &Database,
    tx: TxId,
    conclusions: &[Conclusion],
    released: &[Release],
) -> Result<(), StoreError> {
    let lanes = conclusions.iter().map(|end| end.hold.lane);
    let lanes: BTreeSet<LaneKey> = lanes
        .chain(released.iter().map(|release| release.hold.lane))
        .collect();
    for lane in lanes {
        database.lock(tx, Row::Lane(lane), Strength::NoKeyUpdate).await?;
    }
    let now = database.now();
    database.at_once(|stored| {
        for end in conclusions {
            let met = if !holds(database, stored, tx, end.hold) {
                Met::LaneLost
            } else if !record(stored, tx, end, database.has(Flaw::ForgetsAttempt), now) {
                Met::EndKnown
            } else {
                match end.fate {
                    Fate::Delivered => continue,
                    Fate::Retry(_) => Met::DeliveryRepeated,
                    Fate::Exhausted => Met::DeliveryGivenUp,
                }
            };
            database.simulator().count(met);
        }
    });
    if released.is_empty() {
        return Ok(());
    }
    let undisturbed = released.iter().map(|release| release.hold.lane);
    let undisturbed: BTreeSet<LaneKey> = undisturbed
        .filter(|lane| {
            database.try_lock(tx, &Row::Lane(*lane), Strength::Update) || database.has(Flaw::SleepsTooSoon)
        })
        .collect();
    // The lanes are given back by a statement of its own.
    database.simulator().yield_now().await;
    let now = database.now();
    database.at_once(|stored| {
        for release in released {
            if holds(database, stored, tx, release.hold) {
                give_back(stored, tx, release, undisturbed.contains(&release.hold.lane), now);
            } else {
                database.simulator().count(Met::LaneLost);
            }
        }
    });
    Ok(())
}

fn holds(database: &Database, stored: &Stored, tx: TxId, hold: Hold) -> bool {
    let row = stored.tables.subscriptions.get(tx, &hold.lane);
    let forgetful = database.has(Flaw::ForgetsLaneFence);
    row.is_some_and(|row| row.leased && (forgetful || row.fence == Some(hold.fence)))
}

/// Records an end; false where that delivery has ended, or the attempt been recorded.
fn record(stored: &mut Stored, tx: TxId, end: &Conclusion, any_attempt: bool, now: DateTime<Utc>) -> bool {
    let key = (end.hold.lane, end.delivery);
    let Some(row) = stored.tables.deliveries.get(tx, &key) else {
        return false;
    };
    if row.due_at.is_none() || (row.attempt != end.attempt && !any_attempt) {
        return false;
    }
    stored.tables.deliveries.change(tx, &key, |row| {
        row.attempt = row.attempt.saturating_add(1);
        row.lost = row.lost.min(LOSSES_FORGIVEN);
        row.due_at = match end.fate {
            Fate::Retry(delay) => Some(now + delay),
            Fate::Delivered | Fate::Exhausted => None,
        };
        row.delivered_at = (end.fate == Fate::Delivered).then_some(now);
        let duration = u64::try_from(end.duration_ms).unwrap_or_default();
        row.last = Some(Attempted {
            outcome: end.outcome.clone(),
            duration: std::time::Duration::from_millis(duration),
        });
    })
}

fn give_back(stored: &mut Stored, tx: TxId, release: &Release, undisturbed: bool, now: DateTime<Utc>) {
    let due_at = next_due(stored, tx, release.hold.lane).map(|due_at| due_at.max(now + release.rest));
    let soon = now + A_MOMENT;
    stored.tables.subscriptions.change(tx, &release.hold.lane, |row| {
        row.leased = false;
        row.fence = None;
        row.in_hand.clear();
        row.failing = release.failing.unwrap_or(row.failing);
        row.wake_at = if undisturbed {
            due_at
        } else {
            Some(due_at.map_or(soon, |due_at| due_at.min(soon)))
        };
    });
}

/// Puts lanes of suspended applications to sleep, and ends those in which nothing is ever delivered again; returns how many.
pub(super) fn set_aside(
    database: &Database,
    tx: TxId,
    lanes: Vec<(LaneKey, SubscriptionRow)>,
    now: DateTime<Utc>,
) -> usize {
    let mut number = 0;
    for (lane, row) in lanes {
        let application = Row::Application(row.new.client_id);
        let state = database.at_once(|stored| lane_state(stored, tx, &row));
        let may = state == LaneState::Gone || database.try_lock(tx, &application, Strength::Share);
        if !may {
            continue;
        }
        number += 1;
        database.at_once(|stored| {
            let stopped = state == LaneState::Gone && stop(stored, tx, lane);
            stored.tables.subscriptions.change(tx, &lane, |row| {
                row.active &= state != LaneState::Gone;
                rest(row, stopped.then_some(now));
            });
        });
    }
    number
}

/// Nobody holds the lane any more.
pub(super) fn rest(row: &mut SubscriptionRow, wake_at: Option<DateTime<Utc>>) {
    row.leased = false;
    row.fence = None;
    row.in_hand.clear();
    row.wake_at = wake_at;
}

/// Stops what is pending in a lane; true where there was something.
pub(super) fn stop(stored: &mut Stored, tx: TxId, lane: LaneKey) -> bool {
    let pending = stored
        .tables
        .deliveries
        .select(tx, |key, row| key.0 == lane && row.due_at.is_some());
    for (key, _) in &pending {
        stored.tables.deliveries.change(tx, key, |row| row.due_at = None);
    }
    !pending.is_empty()
}
