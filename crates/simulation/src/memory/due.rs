//! What is due in a lane.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use webhooks::{DeliveryId, Due, LaneKey};

use super::{DeliveryRow, Stored, TxId};

/// Up to `room` deliveries that are due and not `running`, each with its place: three first attempts for each repeated one,
/// beginning with a first one, and no more than `repeats` of the latter.
pub(super) fn due_in_lane(
    stored: &Stored,
    tx: TxId,
    lane: LaneKey,
    (now, running): (DateTime<Utc>, &[DeliveryId]),
    (room, repeats): (u16, u16),
) -> Vec<(usize, Due)> {
    let is_due = |row: &DeliveryRow| row.due_at.is_some_and(|due_at| due_at <= now);
    let mut rows = stored.tables.deliveries.select(tx, |key, row| {
        key.0 == lane && is_due(row) && !running.contains(&key.1)
    });
    rows.sort_by_key(|(_, row)| row.due_at);
    let of = |repeated: bool| rows.iter().filter(move |(_, row)| (row.attempt > 0) == repeated);
    let firsts = (1..).map(|n| 2 * n).zip(of(false)).take(room.into());
    let repeated = (1..).map(|n| 6 * n - 3).zip(of(true)).take(repeats.into());
    let mut placed: Vec<_> = firsts.chain(repeated).collect();
    placed.sort_by_key(|(place, _)| *place);
    let given = placed.into_iter().take(room.into());
    given
        .map(|(place, ((_, id), row))| (place, due(*id, row)))
        .collect()
}

fn due(id: DeliveryId, row: &DeliveryRow) -> Due {
    Due {
        id,
        event: row.event,
        body: Arc::from(row.body.as_slice()),
        attempt: row.attempt,
        lost: row.lost,
    }
}

/// When the next delivery of a lane is due, of those that a transaction sees.
pub(super) fn next_due(stored: &Stored, tx: TxId, lane: LaneKey) -> Option<DateTime<Utc>> {
    let rows = stored.tables.deliveries.select(tx, |key, _| key.0 == lane);
    rows.iter().filter_map(|(_, row)| row.due_at).min()
}
