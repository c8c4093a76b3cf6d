//! What is left to do after a decision about an application, an account or a connection that holds at once: many rows may hang on it.
//!
//! The decision is a row that all readers check, and its transaction queues the follow-up, so that it takes the same short time for the
//! largest. Workers do the rest in batches. What there is to do is read from the rows, so repeating a batch is harmless.

use kernel::{SellerId, StoreError};
use oauth::ClientId;
use uuid::Uuid;

use crate::sql::sql;
use crate::unit_of_work::{Tx, changing, changing_any};
use crate::webhooks::{delete_subscriptions, end_subscriptions, wake_queues};

/// Token families marked as revoked per batch.
const FAMILIES: i64 = 2_000;

/// What has to be followed up.
#[derive(Debug, Clone, Copy)]
pub(crate) enum FollowUp {
    /// An application was deleted, or lost all its tokens.
    Application(ClientId),
    /// An account was closed, or lost all its tokens.
    Seller(SellerId),
    /// A seller disconnected an application.
    Connection(SellerId, ClientId),
}

impl FollowUp {
    /// Queues it within the transaction that decides.
    pub(crate) fn queue(self, tx: &Tx) {
        let (seller, client) = match self {
            Self::Application(client) => (None, Some(client.uuid())),
            Self::Seller(seller) => (Some(seller.uuid()), None),
            Self::Connection(seller, client) => (Some(seller.uuid()), Some(client.uuid())),
        };
        let insert =
            sql!((): "insert into follow_ups (seller_id, client_id) values (", seller, ", ", client, ")");
        tx.write_later(changing("follow_ups", 1, insert));
    }
}

/// Queues the follow-up of a reinstatement if the application is suspended: the application with its owner. Call it before its status changes.
pub(crate) fn queue_reinstatement(tx: &Tx, client_id: ClientId) {
    tx.write_later(changing_any(sql!(():
        "insert into follow_ups (seller_id, client_id) select owner_id, client_id from applications where status = 'suspended' and client_id = ",
        client_id.uuid(), "")));
}

/// A follow-up that a worker has taken; another one takes it over after 30 seconds. One that fails so goes behind all others.
pub(crate) type Taken = (i64, Option<Uuid>, Option<Uuid>);

/// Takes the follow-up that has been due longest.
pub(crate) async fn take(tx: &Tx) -> Result<Option<Taken>, StoreError> {
    tx.row(sql!((i64, Option<Uuid>, Option<Uuid>):
        "update follow_ups set due_at = api_now() + interval '30 seconds' where id = (select id from follow_ups \
           where due_at <= (select api_now()) order by due_at, id limit 1 for update skip locked) returning id, seller_id, client_id"))
        .await
}

/// Does one batch, and removes the follow-up if nothing was left.
pub(crate) async fn run(tx: &Tx, (id, seller, client): Taken) -> Result<(), StoreError> {
    let rows = match (seller, client) {
        (None, Some(client)) => follow_application(tx, client).await?,
        (Some(seller), None) => follow_seller(tx, seller).await?,
        (seller, client) => match wake_queues(tx, seller, client).await? {
            0 => end_subscriptions(tx, seller, client).await?,
            woken => woken,
        },
    };
    let done = if rows > 0 {
        tx.execute(sql!((): "update follow_ups set due_at = api_now() where id = ", id, ""))
            .await
    } else {
        tx.execute(sql!((): "delete from follow_ups where id = ", id, ""))
            .await
    };
    done.map(drop)
}

async fn follow_application(tx: &Tx, client: Uuid) -> Result<usize, StoreError> {
    let state = sql!((bool, bool):
        "select a.deleted_at is not null, o.closed_at is not null \
         from applications a join sellers o on o.id = a.owner_id where a.client_id = ", client, "");
    let subscriptions = match tx.row(state).await? {
        Some((true, _)) => delete_subscriptions(tx, client).await?,
        Some((_, true)) => end_subscriptions(tx, None, Some(client)).await?,
        _ => 0,
    };
    if subscriptions > 0 {
        return Ok(subscriptions);
    }
    // They are dead already. Marked, they leave the tables soon, also those that would never expire.
    tx.execute(sql!(():
        "update families f set revoked_at = (select api_now()) from (select f.id from families f \
           join applications a on a.client_id = f.client_id where f.client_id = ", client, " and f.revoked_at is null \
           and (a.deleted_at is not null or f.application_generation <> a.token_generation) limit ", FAMILIES,
        " for no key update of f skip locked) dead where f.id = dead.id"))
        .await
}

async fn follow_seller(tx: &Tx, seller: Uuid) -> Result<usize, StoreError> {
    let subscriptions = end_subscriptions(tx, Some(seller), None).await?;
    if subscriptions > 0 {
        return Ok(subscriptions);
    }
    let families = tx
        .execute(sql!(():
            "update families f set revoked_at = (select api_now()) from (select f.id from families f \
               join sellers s on s.id = f.seller_id where f.seller_id = ", seller, " and f.revoked_at is null \
               and (s.closed_at is not null or f.seller_generation <> s.token_generation) limit ", FAMILIES,
            " for no key update of f skip locked) dead where f.id = dead.id"))
        .await?;
    if families == 0 {
        // The applications end with their owner's account, each by a follow-up of its own.
        tx.execute(sql!(():
            "insert into follow_ups (client_id) select a.client_id from applications a join sellers o on o.id = a.owner_id \
             where o.id = ", seller, " and o.closed_at is not null and a.deleted_at is null"))
            .await?;
    }
    Ok(families)
}
