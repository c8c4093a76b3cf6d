//! Ends and deletes subscriptions with their pending deliveries, and wakes the queues of an application that is reinstated, in batches.
//!
//! What ends a subscription is a row of its application, an account or the connection, which claims, fan-outs and lists read themselves.
//! So nothing is given out any more from that row's commit on, however many subscriptions and deliveries follow.
//!
//! A batch locks its subscriptions `for update`. So it waits for all fan-outs in flight that found them alive, and its next statement
//! sees what they queued.

use kernel::{SellerId, StoreError};
use oauth::ClientId;
use uuid::Uuid;
use webhooks::SubscriptionId;

use super::queue_state;
use crate::{sql::sql, unit_of_work::Tx};

/// Subscriptions ended or woken per batch.
const BATCH: i64 = 1_000;

/// Ends a batch of the subscriptions that a seller (for one application, if given) or an application with a closed owner has lost, and
/// returns its size. They stay visible, inactive, once none of their deliveries is pending. A queue leased by a worker stays leased
/// until the worker releases it, so that running attempts are recorded.
pub(crate) async fn end_subscriptions(
    tx: &Tx,
    seller: Option<Uuid>,
    client: Option<Uuid>,
) -> Result<usize, StoreError> {
    let batch = tx.rows(sql!((Uuid, Uuid):
        "with theirs as materialized (select s.seller_id, s.id from subscriptions s where (s.seller_id, s.id) in (\
             select * from (select s.seller_id, s.id from subscriptions s where s.seller_id = ", seller,
        " and s.client_id = coalesce(", client, concat!(", s.client_id) and s.active and ", queue_state!(), " = 'ended' limit "), BATCH,
        ") of_seller union all \
             select * from (select s.seller_id, s.id from subscriptions s where ", seller, "::uuid is null and s.client_id = ", client,
        " and s.active and exists (select from applications a join sellers o on o.id = a.owner_id \
               where a.client_id = ", client, " and o.closed_at is not null) limit ", BATCH,
        ") of_application) and s.active order by s.seller_id, s.id for update of s), \
         pending as materialized (select t.seller_id, t.id as queue, d.id from theirs t cross join lateral (\
             (select id from deliveries d where d.seller_id = t.seller_id and d.subscription_id = t.id \
                and d.due_at is not null and d.attempt = 0 limit 500) union all \
             (select id from deliveries d where d.seller_id = t.seller_id and d.subscription_id = t.id \
                and d.due_at is not null and d.attempt > 0 limit 500)) d limit 1000), \
         stopped as (update deliveries d set due_at = null from pending p \
           where d.seller_id = p.seller_id and d.subscription_id = p.queue and d.id = p.id) \
         select seller_id, id from theirs")).await?;
    let size = batch.len();
    let (sellers, queues): (Vec<_>, Vec<_>) = batch.into_iter().unzip();
    tx.execute(sql!(():
        "update subscriptions s set active = false, wake_at = case when s.leased then s.wake_at end \
         from unnest(", sellers, ", ", queues, ") t (seller_id, id) where s.seller_id = t.seller_id and s.id = t.id \
           and not exists (select from deliveries d where d.seller_id = s.seller_id and d.subscription_id = s.id \
             and d.due_at is not null and d.attempt = 0) \
           and not exists (select from deliveries d where d.seller_id = s.seller_id and d.subscription_id = s.id \
             and d.due_at is not null and d.attempt > 0)"))
        .await?;
    Ok(size)
}

/// Deletes one subscription of an application with its history; false if there is none.
pub(super) async fn remove_subscription(
    tx: &Tx,
    seller: SellerId,
    client_id: ClientId,
    id: SubscriptionId,
) -> Result<bool, StoreError> {
    let (seller, client, id) = (seller.uuid(), client_id.uuid(), id.uuid());
    let removed = tx
        .row(sql!(i64:
            "with removed as (delete from subscriptions where seller_id = ", seller, " and id = ", id,
            " and client_id = ", client, " returning seller_id, client_id), \
             freed as (update subscription_quota q set used = q.used - 1 from removed g \
               where q.seller_id = g.seller_id and q.client_id = g.client_id) \
             select count(*) from removed"))
        .await?
        .is_some_and(|removed| removed > 0);
    if removed {
        delete_deliveries(tx, vec![(seller, id)]).await?;
    }
    Ok(removed)
}

/// Deletes a batch of the subscriptions of a deleted application, then of its counts of them, and returns its size.
pub(crate) async fn delete_subscriptions(tx: &Tx, client: Uuid) -> Result<usize, StoreError> {
    let deleted = tx.rows(sql!((Uuid, Uuid):
        "with theirs as materialized (select seller_id, id from subscriptions where client_id = ", client,
        " order by seller_id, id limit ", BATCH, " for update) \
         delete from subscriptions s using theirs t where s.seller_id = t.seller_id and s.id = t.id returning s.seller_id, s.id")).await?;
    if !deleted.is_empty() {
        let size = deleted.len();
        return delete_deliveries(tx, deleted).await.map(|()| size);
    }
    tx.execute(sql!(():
        "delete from subscription_quota where (seller_id, client_id) in (select seller_id, client_id from subscription_quota \
           where client_id = ", client, " limit ", BATCH, ")")).await
}

/// Deletes some deliveries of deleted subscriptions; retention deletes the rest.
async fn delete_deliveries(tx: &Tx, deleted: Vec<(Uuid, Uuid)>) -> Result<(), StoreError> {
    let (sellers, queues): (Vec<_>, Vec<_>) = deleted.into_iter().unzip();
    tx.execute(sql!(():
        "delete from deliveries d using (select x.seller_id, x.subscription_id, x.id from unnest(", sellers, ", ",
        queues, ") l (seller_id, id) cross join lateral (select seller_id, subscription_id, id from deliveries y \
             where y.seller_id = l.seller_id and y.subscription_id = l.id order by y.id limit 1000) x limit 5000) x \
         where d.seller_id = x.seller_id and d.subscription_id = x.subscription_id and d.id = x.id")).await.map(drop)
}

/// Wakes a batch of sleeping queues with pending deliveries, those put to sleep while their application was suspended, and returns its size:
/// none if the seller is not its owner. A statement that puts one to sleep holds a lock on the suspended application, so none follows the
/// reinstatement.
pub(crate) async fn wake_queues(
    tx: &Tx,
    owner: Option<Uuid>,
    client: Option<Uuid>,
) -> Result<usize, StoreError> {
    let woken = tx.execute(sql!(():
        "with sleeping as materialized (select s.ctid as place from subscriptions s where s.client_id = ", client,
        " and exists (select from applications a where a.client_id = ", client, " and a.owner_id = ", owner,
        " and a.status <> 'suspended') and s.active and not s.leased and s.wake_at is null and (\
             exists (select from deliveries d where d.seller_id = s.seller_id and d.subscription_id = s.id \
               and d.due_at is not null and d.attempt = 0) \
             or exists (select from deliveries d where d.seller_id = s.seller_id and d.subscription_id = s.id \
               and d.due_at is not null and d.attempt > 0)) limit ", BATCH, " for no key update of s skip locked) \
         update subscriptions s set wake_at = (select api_now()) where s.ctid = any(array(select place from sleeping))")).await?;
    if woken > 0 {
        tx.wakes_queue();
    }
    Ok(woken)
}
