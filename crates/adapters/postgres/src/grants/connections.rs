//! Ending a connection, and with it the subscriptions that hang on it.

use diesel::sql_types::Uuid as SqlUuid;
use diesel_async::RunQueryDsl;
use kernel::{SellerId, StoreError};
use oauth::ClientId;
use uuid::Uuid;

use crate::{
    statement::statement,
    transaction::Tx,
    webhooks::{Ended, end_subscriptions},
};

/// Raises the generation: whatever was issued, or is being issued, under the one before is dead.
struct End {
    client: Uuid,
    seller: Uuid,
}

statement!(End => ():
    "update connections set generation = generation + 1, disconnected_at = api_now() where client_id = ", client: SqlUuid,
    " and seller_id = ", seller: SqlUuid, " and disconnected_at is null");

/// Ends a connection; false when there is none that is open.
pub(super) async fn end(tx: &Tx, seller: SellerId, client_id: ClientId) -> Result<bool, StoreError> {
    let end = End {
        client: client_id.uuid(),
        seller: seller.uuid(),
    };
    if tx.run(end.execute(&mut tx.connection())).await? == 0 {
        return Ok(false);
    }
    end_subscriptions(tx, Ended::Connection(seller, client_id)).await?;
    Ok(true)
}
