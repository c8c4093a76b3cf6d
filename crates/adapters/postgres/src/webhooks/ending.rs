//! Ends and deletes subscriptions with their pending deliveries, and wakes the queues of an application that
//! is reinstated, in batches.
//!
//! What ends a subscription is a row of its application, an account or the connection, which claims, fan-outs
//! and lists read themselves. So nothing is given out any more from that row's commit on, however many
//! subscriptions and deliveries follow.
//!
//! A batch locks its subscriptions `for update`. So it waits for all fan-outs in flight that found them
//! alive, and its next statement sees what they queued.

use chrono::{DateTime, Utc};
use diesel::QueryableByName;
use diesel::sql_types::{Array, BigInt, Binary, Nullable, Timestamptz, Uuid as SqlUuid};
use kernel::StoreError;
use uuid::Uuid;
use webhooks::Event;

use super::Queue;
use crate::outbox::event_id;
use crate::sql::column;
use crate::statement::statements;
use crate::unit_of_work::{PLAN_BY_VALUES, Tx, changing_any};

statements! {
    "ending.sql";
    STOP_DELIVERIES: (Nullable<SqlUuid>, Nullable<SqlUuid>, BigInt) -> Ended;
    DEACTIVATE: (Array<SqlUuid>, Array<SqlUuid>, Array<Nullable<Binary>>);
    DELETE_OF_APPLICATION: (SqlUuid, BigInt) -> Queue;
    DELETE_QUOTAS: (SqlUuid, BigInt);
    DELETE_DELIVERIES: (Array<SqlUuid>, Array<SqlUuid>);
    WAKE: (Nullable<SqlUuid>, Nullable<SqlUuid>, BigInt);
}

/// Subscriptions ended or woken per batch.
const BATCH: i64 = 1_000;

/// A subscription that ended.
#[derive(QueryableByName)]
struct Ended {
    #[diesel(embed)]
    queue: Queue,
    /// When its connection ended, if a last event is due.
    #[diesel(sql_type = Nullable<Timestamptz>)]
    ended_at: Option<DateTime<Utc>>,
}

impl Ended {
    fn last_delivery(&self) -> Result<Option<Vec<u8>>, StoreError> {
        let event = Event::of_ended_connection(self.queue.seller_id.into());
        let body = self.ended_at.map(|at| event.body_without_id(event_id(at), at));
        body.transpose().map_err(StoreError::unexpected)
    }
}

/// Ends a batch of the subscriptions that a seller (for one application, if given) or an application with a
/// closed owner has lost, and returns its size. They stay visible, inactive, once none of their deliveries is
/// pending; then their last deliveries are queued. A queue leased by a worker stays leased until the worker
/// releases it, so that running attempts are recorded.
pub(crate) async fn end_subscriptions(
    tx: &Tx,
    seller: Option<Uuid>,
    client: Option<Uuid>,
) -> Result<usize, StoreError> {
    tx.write_later(changing_any(PLAN_BY_VALUES.bare()));
    let batch = tx.rows(STOP_DELIVERIES.bind((seller, client, BATCH))).await?;
    let bodies = batch
        .iter()
        .map(Ended::last_delivery)
        .collect::<Result<Vec<_>, _>>()?;
    let deactivate = DEACTIVATE.bind((
        column(&batch, |ended| ended.queue.seller_id),
        column(&batch, |ended| ended.queue.id),
        column(&bodies, Option::as_deref),
    ));
    tx.execute(deactivate).await?;
    tx.wakes_queue(bodies.iter().any(Option::is_some));
    Ok(batch.len())
}

/// Deletes a batch of the subscriptions of a deleted application, then of its counts of them, and returns its
/// size.
pub(crate) async fn delete_subscriptions(tx: &Tx, client: Uuid) -> Result<usize, StoreError> {
    let deleted = tx.rows(DELETE_OF_APPLICATION.bind((client, BATCH))).await?;
    if deleted.is_empty() {
        return tx.execute(DELETE_QUOTAS.bind((client, BATCH))).await;
    }
    delete_deliveries(tx, &deleted).await?;
    Ok(deleted.len())
}

/// Deletes some deliveries of deleted subscriptions; retention deletes the rest.
pub(super) async fn delete_deliveries(tx: &Tx, deleted: &[Queue]) -> Result<(), StoreError> {
    let (sellers, ids): (Vec<_>, Vec<_>) = deleted.iter().map(|queue| (queue.seller_id, queue.id)).unzip();
    tx.execute(DELETE_DELIVERIES.bind((sellers, ids))).await.map(drop)
}

/// Wakes a batch of sleeping queues with pending deliveries, those put to sleep while their application was
/// suspended, and returns its size: none if the seller is not its owner. A statement that puts one to sleep
/// holds a lock on the suspended application, so none follows the reinstatement.
pub(crate) async fn wake_queues(
    tx: &Tx,
    owner: Option<Uuid>,
    client: Option<Uuid>,
) -> Result<usize, StoreError> {
    let sleeping = tx.execute(WAKE.bind((owner, client, BATCH))).await?;
    tx.wakes_queue(sleeping > 0);
    Ok(sleeping)
}
