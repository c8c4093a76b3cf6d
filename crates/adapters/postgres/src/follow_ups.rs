//! Follow-up work of a decision about an application, an account or a connection: the decision holds at once,
//! and the many rows that may depend on it are changed later.
//!
//! The decision is a row that all readers check, and its transaction queues the follow-up, so that it takes
//! the same short time for the largest. Workers do the rest in batches. What there is to do is read from the
//! rows, so repeating a batch is harmless.

use chrono::{DateTime, Utc};
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Nullable, Uuid as SqlUuid};
use kernel::{SellerId, StoreError};
use oauth::ClientId;
use uuid::Uuid;

use crate::schema::{api_now, applications, follow_ups, sellers};
use crate::statement::statements;
use crate::unit_of_work::{Tx, changing_any};
use crate::webhooks::{delete_subscriptions, end_subscriptions, wake_queues};

statements! {
    "follow_ups.sql";
    QUEUE: (Nullable<SqlUuid>, Nullable<SqlUuid>);
    /// Takes the follow-up that has been due longest.
    pub(crate) TAKE: () -> Taken;
    REVOKE_FAMILIES_OF_APPLICATION: (SqlUuid, BigInt);
    REVOKE_FAMILIES_OF_SELLER: (SqlUuid, BigInt);
}

/// Token families marked as revoked per batch.
const FAMILIES: i64 = 2_000;

/// Queues a follow-up within the transaction that decides: an account was closed, or lost all its tokens; an
/// application was deleted, or lost all its tokens; or, with both, the seller disconnected the application.
pub(crate) fn queue(tx: &Tx, seller: Option<SellerId>, client: Option<ClientId>) {
    let queue = QUEUE.bind((seller.map(SellerId::uuid), client.map(ClientId::uuid)));
    tx.write_later(changing_any(queue));
}

/// Queues the follow-up of a reinstatement if the application is suspended: the application with its owner.
/// Call it before its status changes.
pub(crate) fn queue_reinstatement(tx: &Tx, client_id: ClientId) {
    let insert = applications::table
        .filter(applications::client_id.eq(client_id.uuid()))
        .filter(applications::status.eq("suspended"))
        .select((
            applications::owner_id.nullable(),
            applications::client_id.nullable(),
        ))
        .insert_into(follow_ups::table)
        .into_columns((follow_ups::seller_id, follow_ups::client_id));
    tx.write_later(changing_any(insert));
}

/// A follow-up that a worker has taken; another worker takes it over after 30 seconds. So a follow-up that
/// fails goes behind all others.
#[derive(QueryableByName)]
#[diesel(table_name = follow_ups)]
pub(crate) struct Taken {
    id: i64,
    seller_id: Option<Uuid>,
    client_id: Option<Uuid>,
    /// Changed by another worker that takes it over, or by the same decision: then it is no longer this one's to remove.
    due_at: DateTime<Utc>,
}

/// The ends of an application and of its owner's account.
#[derive(Queryable, Selectable)]
#[diesel(table_name = applications, check_for_backend(diesel::pg::Pg))]
struct Ends {
    deleted_at: Option<DateTime<Utc>>,
    #[diesel(select_expression = sellers::closed_at)]
    owner_closed_at: Option<DateTime<Utc>>,
}

/// Does one batch, and removes the follow-up if nothing was left.
pub(crate) async fn run(tx: &Tx, taken: Taken) -> Result<(), StoreError> {
    let rows = match (taken.seller_id, taken.client_id) {
        (None, Some(client)) => follow_application(tx, client).await?,
        (Some(seller), None) => follow_seller(tx, seller).await?,
        (seller, client) => match wake_queues(tx, seller, client).await? {
            0 => end_subscriptions(tx, seller, client).await?,
            woken => woken,
        },
    };
    let follow_up = follow_ups::table
        .find(taken.id)
        .filter(follow_ups::due_at.eq(taken.due_at));
    let done = if rows > 0 {
        tx.execute(diesel::update(follow_up).set(follow_ups::due_at.eq(api_now())))
            .await
    } else {
        tx.execute(diesel::delete(follow_up)).await
    };
    done.map(drop)
}

async fn follow_application(tx: &Tx, client: Uuid) -> Result<usize, StoreError> {
    let ends = applications::table
        .inner_join(sellers::table.on(sellers::id.eq(applications::owner_id)))
        .filter(applications::client_id.eq(client))
        .select(Ends::as_select());
    let subscriptions = match tx.row(ends).await? {
        Some(Ends {
            deleted_at: Some(_), ..
        }) => delete_subscriptions(tx, client).await?,
        Some(Ends {
            owner_closed_at: Some(_),
            ..
        }) => end_subscriptions(tx, None, Some(client)).await?,
        _ => 0,
    };
    if subscriptions > 0 {
        return Ok(subscriptions);
    }
    tx.execute(REVOKE_FAMILIES_OF_APPLICATION.bind((client, FAMILIES)))
        .await
}

async fn follow_seller(tx: &Tx, seller: Uuid) -> Result<usize, StoreError> {
    let subscriptions = end_subscriptions(tx, Some(seller), None).await?;
    if subscriptions > 0 {
        return Ok(subscriptions);
    }
    let families = tx
        .execute(REVOKE_FAMILIES_OF_SELLER.bind((seller, FAMILIES)))
        .await?;
    if families == 0 {
        // The applications end with their owner's account, each by a follow-up of its own.
        let insert = applications::table
            .inner_join(sellers::table.on(sellers::id.eq(applications::owner_id)))
            .filter(sellers::id.eq(seller))
            .filter(sellers::closed_at.is_not_null())
            .filter(applications::deleted_at.is_null())
            .select(applications::client_id.nullable())
            .insert_into(follow_ups::table)
            .into_columns(follow_ups::client_id);
        tx.execute(insert).await?;
    }
    Ok(families)
}
