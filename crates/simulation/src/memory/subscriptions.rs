//! Subscriptions as a transaction changes them.

use async_trait::async_trait;
use kernel::{SellerId, StoreError};
use oauth::ClientId;
use webhooks::{
    DeliveryId, LaneKey, MOST_SUBSCRIPTIONS, NewDelivery, NewSubscription, Subscription, SubscriptionId,
    SubscriptionStore, WebhookEvent,
};

use super::{
    Database, DeliveryRow, NOBODY, SubscriptionRow, TxId,
    locks::{Row, Strength},
    settling::{rest, stop},
    standing::{LaneState, application, lane_state},
    transaction::Tx,
};

#[async_trait]
impl SubscriptionStore for Tx {
    async fn take_subscription_place(
        &self,
        seller: SellerId,
        client_id: ClientId,
    ) -> Result<bool, StoreError> {
        let pair = (seller, client_id);
        self.run(|database, tx| async move {
            database
                .lock(tx, Row::Connection(seller, client_id), Strength::Share)
                .await?;
            database
                .lock(tx, Row::Places(seller, client_id), Strength::NoKeyUpdate)
                .await?;
            Ok(database.at_once(|stored| {
                let taken = stored.tables.places.get(tx, &pair).copied().unwrap_or_default();
                let free = taken < MOST_SUBSCRIPTIONS;
                if free {
                    stored.tables.places.put(tx, pair, taken + 1);
                }
                free
            }))
        })
        .await
    }

    async fn add_subscription(&self, new: NewSubscription) -> Result<(), StoreError> {
        self.run(|database, tx| async move {
            let (seller, client_id) = (new.seller, new.client_id);
            database
                .lock(tx, Row::Connection(seller, client_id), Strength::Share)
                .await?;
            database.at_once(|stored| {
                let connection = stored.tables.connections.get(tx, &(seller, client_id));
                let generation = connection
                    .filter(|found| found.open)
                    .map(|found| found.generation);
                let owned = application(stored, tx, client_id).is_some_and(|(owner, ..)| owner == seller);
                let row = SubscriptionRow {
                    active: generation.is_some() || owned,
                    generation,
                    leased: false,
                    fence: None,
                    failing: false,
                    wake_at: None,
                    in_hand: Vec::new(),
                    new,
                };
                let lane = lane_of(&row);
                stored.tables.subscriptions.put(tx, lane, row);
            });
            Ok(())
        })
        .await
    }

    async fn remove_subscription(
        &self,
        seller: SellerId,
        client_id: ClientId,
        subscription: SubscriptionId,
    ) -> Result<bool, StoreError> {
        let lane = LaneKey { seller, subscription };
        self.run(|database, tx| async move {
            database.lock(tx, Row::Lane(lane), Strength::Update).await?;
            let is_theirs = |row: &SubscriptionRow| row.new.client_id == client_id;
            let found =
                database.at_once(|stored| stored.tables.subscriptions.get(tx, &lane).is_some_and(is_theirs));
            if !found {
                return Ok(false);
            }
            database
                .lock(tx, Row::Places(seller, client_id), Strength::NoKeyUpdate)
                .await?;
            database.at_once(|stored| {
                stored.tables.subscriptions.remove(tx, &lane);
                let freed = |taken: &mut u32| *taken = taken.saturating_sub(1);
                stored.tables.places.change(tx, &(seller, client_id), freed);
                for (key, _) in stored.tables.deliveries.select(tx, |key, _| key.0 == lane) {
                    stored.tables.deliveries.remove(tx, &key);
                }
            });
            Ok(true)
        })
        .await
    }

    async fn subscription(
        &self,
        seller: SellerId,
        subscription: SubscriptionId,
    ) -> Result<Option<Subscription>, StoreError> {
        let lane = LaneKey { seller, subscription };
        self.run(|database, tx| async move {
            Ok(database.at_once(|stored| {
                let row = stored.tables.subscriptions.get(tx, &lane)?;
                let mut found = row.new.subscription();
                found.active = row.active;
                Some(found)
            }))
        })
        .await
    }

    async fn delivery_body(
        &self,
        seller: SellerId,
        subscription: SubscriptionId,
        delivery: DeliveryId,
    ) -> Result<Option<(WebhookEvent, Vec<u8>)>, StoreError> {
        let lane = LaneKey { seller, subscription };
        self.run(|database, tx| async move {
            Ok(database.at_once(|stored| {
                stored.tables.subscriptions.get(tx, &lane)?;
                let row = stored.tables.deliveries.get(tx, &(lane, delivery))?;
                Some((row.event, row.body.clone()))
            }))
        })
        .await
    }

    async fn queue_delivery(
        &self,
        seller: SellerId,
        subscription: SubscriptionId,
        delivery: NewDelivery,
    ) -> Result<bool, StoreError> {
        let lane = LaneKey { seller, subscription };
        self.run(|database, tx| async move {
            database.lock(tx, Row::Lane(lane), Strength::KeyShare).await?;
            let asleep = database.at_once(|stored| {
                let row = stored.tables.subscriptions.get(tx, &lane)?;
                if lane_state(stored, tx, row) != LaneState::Live {
                    return None;
                }
                let asleep = !row.leased && row.wake_at.is_none_or(|wake_at| wake_at > delivery.created_at);
                stored
                    .tables
                    .deliveries
                    .put(tx, (lane, delivery.id), queued(&delivery));
                Some(asleep)
            });
            if asleep == Some(true) {
                database.lock(tx, Row::Lane(lane), Strength::NoKeyUpdate).await?;
                database.at_once(|stored| {
                    let wake = |row: &mut SubscriptionRow| {
                        if !row.leased {
                            row.wake_at = Some(delivery.created_at);
                        }
                    };
                    stored.tables.subscriptions.change(tx, &lane, wake)
                });
            }
            Ok(asleep.is_some())
        })
        .await
    }
}

fn queued(delivery: &NewDelivery) -> DeliveryRow {
    DeliveryRow {
        event: delivery.event,
        body: delivery.body.clone(),
        due_at: Some(delivery.created_at),
        attempt: 0,
        lost: 0,
        delivered_at: None,
        last: None,
    }
}

const fn lane_of(row: &SubscriptionRow) -> LaneKey {
    LaneKey {
        seller: row.new.seller,
        subscription: row.new.id,
    }
}

/// Ends subscriptions for good: they stay to be seen, inactive, and what is pending stops.
pub(super) async fn end_subscriptions(
    database: &Database,
    tx: TxId,
    ended: impl Fn(&SubscriptionRow) -> bool,
) -> Result<(), StoreError> {
    let lanes = database.at_once(|stored| stored.tables.subscriptions.select(NOBODY, |_, row| ended(row)));
    for (lane, _) in lanes {
        database.lock(tx, Row::Lane(lane), Strength::Update).await?;
        database.at_once(|stored| {
            stop(stored, tx, lane);
            stored.tables.subscriptions.change(tx, &lane, |row| {
                row.active = false;
                rest(row, None);
            });
        });
    }
    Ok(())
}
