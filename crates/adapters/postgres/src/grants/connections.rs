//! Ending a connection, and with it the subscriptions that hang on it.

use diesel::sql_types::{Array, Uuid as SqlUuid};
use diesel_async::RunQueryDsl;
use kernel::{SellerId, StoreError};
use oauth::ClientId;
use uuid::Uuid;

use crate::{statement::statement, transaction::Tx};

/// Raises the generation: whatever was issued, or is being issued, under the one before is dead.
struct End {
    client: Uuid,
    seller: Uuid,
}

statement!(End => ():
    "update connections set generation = generation + 1, disconnected_at = api_now() where client_id = ", client: SqlUuid,
    " and seller_id = ", seller: SqlUuid, " and disconnected_at is null");

/// Takes subscriptions out of use and their lanes from whoever works on them. The rows are locked `for update`, for which
/// every fan-out in flight that has found them active has to end first: what it queued is there for the next statement.
struct Deactivate {
    client: Uuid,
    seller: Uuid,
}

statement!(Deactivate => SqlUuid:
    "with theirs as materialized (select seller_id, id from subscriptions where seller_id = ", seller: SqlUuid,
    " and client_id = ", client: SqlUuid,
    " order by id for update) \
     update subscriptions s set active = false, leased = false, fence = null, wake_at = null from theirs t \
     where s.seller_id = t.seller_id and s.id = t.id returning s.id");

struct StopDeliveries {
    seller: Uuid,
    subscriptions: Vec<Uuid>,
}

statement!(StopDeliveries => ():
    "update deliveries set due_at = null where seller_id = ", seller: SqlUuid,
    " and subscription_id = any(", subscriptions: Array<SqlUuid>, ") and due_at is not null");

/// Ends a connection; false when there is none that is open.
pub(super) async fn end(tx: &Tx, seller: SellerId, client_id: ClientId) -> Result<bool, StoreError> {
    let end = End {
        client: client_id.uuid(),
        seller: seller.uuid(),
    };
    if tx.run(end.execute(&mut tx.connection())).await? == 0 {
        return Ok(false);
    }
    end_subscriptions(tx, seller, client_id).await?;
    Ok(true)
}

/// Ends the application's subscriptions to the seller's events, and what is pending for them, for good.
async fn end_subscriptions(tx: &Tx, seller: SellerId, client_id: ClientId) -> Result<(), StoreError> {
    let deactivate = Deactivate {
        client: client_id.uuid(),
        seller: seller.uuid(),
    };
    let subscriptions = tx
        .run(deactivate.get_results::<Uuid>(&mut tx.connection()))
        .await?;
    if subscriptions.is_empty() {
        return Ok(());
    }
    let stop = StopDeliveries {
        seller: seller.uuid(),
        subscriptions,
    };
    tx.run(stop.execute(&mut tx.connection())).await?;
    Ok(())
}
