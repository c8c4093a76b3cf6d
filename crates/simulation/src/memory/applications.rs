//! Applications within a transaction.

use async_trait::async_trait;
use kernel::{Change, SellerId, StoreError, Version};
use oauth::{Application, ApplicationEvent, ApplicationStatus, ApplicationStore, ClientId};

use super::{
    Database, Stored, TxId,
    due::next_due,
    locks::{Row, Strength},
    tables::ApplicationRow,
    transaction::Tx,
};

#[async_trait]
impl ApplicationStore for Tx {
    async fn lock_application(&self, client_id: ClientId) -> Result<Option<Application>, StoreError> {
        self.run(|database, tx| async move {
            database
                .lock(tx, Row::Application(client_id), Strength::NoKeyUpdate)
                .await?;
            Ok(database.at_once(|stored| {
                let row = stored.tables.applications.get(tx, &client_id)?;
                (!row.deleted).then(|| row.application.clone())
            }))
        })
        .await
    }

    async fn built_in_application(&self, seller: SellerId) -> Result<Option<Application>, StoreError> {
        self.run(|database, tx| async move {
            Ok(database.at_once(|stored| {
                let built_in =
                    |row: &ApplicationRow| row.application.built_in && row.application.owner == seller;
                let mut found = stored.tables.applications.select(tx, |_, row| built_in(row));
                found.pop().map(|(_, row)| row.application)
            }))
        })
        .await
    }

    async fn save_application(
        &self,
        change: Change<Application, ApplicationEvent>,
    ) -> Result<(), StoreError> {
        self.tell(|outbox| {
            for event in &change.events {
                outbox.application(change.after.owner, event, usecases::Transaction::now(self));
            }
        });
        self.run(|database, tx| async move { save(&database, tx, change).await })
            .await
    }

    async fn delete_application(&self, client_id: ClientId) -> Result<bool, StoreError> {
        self.run(|database, tx| async move {
            database
                .lock(tx, Row::Application(client_id), Strength::NoKeyUpdate)
                .await?;
            let deleted = database.at_once(|stored| {
                let row = stored.tables.applications.get(tx, &client_id);
                let there = row.is_some_and(|row| !row.deleted);
                there
                    && stored
                        .tables
                        .applications
                        .change(tx, &client_id, |row| row.deleted = true)
            });
            if deleted {
                remove_subscriptions(&database, tx, client_id).await?;
            }
            Ok(deleted)
        })
        .await
    }
}

async fn save(
    database: &Database,
    tx: TxId,
    change: Change<Application, ApplicationEvent>,
) -> Result<(), StoreError> {
    let application = change.after;
    let client_id = application.client_id;
    let name = application.name.to_lowercase();
    if change.before == Version::Absent && !application.built_in {
        database
            .lock(tx, Row::Name(name.clone()), Strength::Update)
            .await?;
    }
    database
        .lock(tx, Row::Application(client_id), Strength::NoKeyUpdate)
        .await?;
    let lanes = database.at_once(|stored| {
        let taken =
            |row: &ApplicationRow| !row.application.built_in && row.application.name.to_lowercase() == name;
        let others = stored
            .tables
            .applications
            .select(tx, |id, row| *id != client_id && taken(row));
        if !others.is_empty() && !application.built_in {
            return Err(StoreError::Conflict {
                constraint: "applications_name_key".to_owned(),
            });
        }
        let rests = application.status != ApplicationStatus::Suspended;
        let row = ApplicationRow {
            application,
            deleted: false,
        };
        stored.tables.applications.put(tx, client_id, row);
        Ok(if rests {
            rested(stored, tx, client_id)
        } else {
            Vec::new()
        })
    })?;
    for lane in lanes {
        database.lock(tx, Row::Lane(lane), Strength::NoKeyUpdate).await?;
        let now = database.now();
        database.at_once(|stored| {
            stored
                .tables
                .subscriptions
                .change(tx, &lane, |row| row.wake_at = Some(now))
        });
    }
    Ok(())
}

/// Lanes of an application that have something pending and sleep: those that rested while it was suspended.
fn rested(stored: &Stored, tx: TxId, client_id: ClientId) -> Vec<webhooks::LaneKey> {
    let lanes = stored.tables.subscriptions.select(tx, |lane, row| {
        let sleeps = row.active && !row.leased && row.wake_at.is_none();
        row.new.client_id == client_id && sleeps && next_due(stored, tx, *lane).is_some()
    });
    lanes.into_iter().map(|(lane, _)| lane).collect()
}

async fn remove_subscriptions(database: &Database, tx: TxId, client_id: ClientId) -> Result<(), StoreError> {
    let theirs = database.at_once(|stored| {
        let lanes = &stored.tables.subscriptions;
        lanes.select(tx, |_, row| row.new.client_id == client_id)
    });
    for (lane, _) in theirs {
        database.lock(tx, Row::Lane(lane), Strength::Update).await?;
        database.at_once(|stored| {
            stored.tables.subscriptions.remove(tx, &lane);
            for (key, _) in stored.tables.deliveries.select(tx, |key, _| key.0 == lane) {
                stored.tables.deliveries.remove(tx, &key);
            }
        });
    }
    Ok(())
}
