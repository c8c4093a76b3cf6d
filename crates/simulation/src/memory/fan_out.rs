//! Deliveries: one for each event and each subscription to it.

use chrono::{DateTime, Utc};
use kernel::{Randomness, SellerId, StoreError};
use oauth::ApplicationStatus;
use webhooks::{DeliveryId, Event, LaneKey};

use super::{
    Database, DeliveryRow, Stored, SubscriptionRow, TxId,
    locks::{Row, Strength},
};

/// Queues deliveries and wakes the lanes that sleep, by what their locked rows say.
pub(super) async fn fan_out(
    database: &Database,
    tx: TxId,
    seller: SellerId,
    events: &[(Event, DateTime<Utc>)],
) -> Result<(), StoreError> {
    let hears = |stored: &Stored, row: &SubscriptionRow| {
        let application = stored.tables.applications.get(tx, &row.new.client_id);
        let stands = application
            .is_some_and(|found| !found.deleted && found.application.status != ApplicationStatus::Suspended);
        row.active
            && stands
            && events
                .iter()
                .any(|(event, _)| row.new.events.contains(&event.name))
    };
    let lanes = database.at_once(|stored| {
        let found = &stored.tables.subscriptions;
        found.select(tx, |key, row| key.seller == seller && hears(stored, row))
    });
    for (lane, _) in lanes {
        database.lock(tx, Row::Lane(lane), Strength::KeyShare).await?;
        let row = database.at_once(|stored| {
            let row = stored.tables.subscriptions.get(tx, &lane)?.clone();
            hears(stored, &row).then_some(row)
        });
        let Some(row) = row else { continue };
        for (event, at) in events
            .iter()
            .filter(|(event, _)| row.new.events.contains(&event.name))
        {
            insert(database, tx, lane, event, *at)?;
        }
        let latest = events.iter().map(|(_, at)| *at).max();
        if let Some(latest) = latest.filter(|latest| sleeps(&row, *latest)) {
            database.lock(tx, Row::Lane(lane), Strength::NoKeyUpdate).await?;
            database.at_once(|stored| {
                let present = stored.tables.subscriptions.get(tx, &lane);
                if present.is_some_and(|present| sleeps(present, latest)) {
                    stored
                        .tables
                        .subscriptions
                        .change(tx, &lane, |row| row.wake_at = Some(latest));
                }
            });
        }
    }
    Ok(())
}

fn sleeps(row: &SubscriptionRow, at: DateTime<Utc>) -> bool {
    !row.leased && row.wake_at.is_none_or(|wake_at| wake_at > at)
}

fn insert(
    database: &Database,
    tx: TxId,
    lane: LaneKey,
    event: &Event,
    at: DateTime<Utc>,
) -> Result<(), StoreError> {
    let id = DeliveryId::from(crate::Chance(database.simulator().clone()).uuid());
    let row = DeliveryRow {
        event: event.name,
        body: event.body(id, at).map_err(StoreError::unexpected)?,
        due_at: Some(at),
        attempt: 0,
        lost: 0,
        delivered_at: None,
        last: None,
    };
    database.at_once(|stored| stored.tables.deliveries.put(tx, (lane, id), row));
    Ok(())
}
