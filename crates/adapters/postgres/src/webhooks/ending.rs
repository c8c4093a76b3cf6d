//! Ends and deletes subscriptions with their pending deliveries, and wakes the queues of an application that is reinstated.
//!
//! A transaction that ends a subscription locks its row `for update`. So it waits for all fan-outs in flight that found
//! the subscription active, and its next statement sees what they queued. It stops or deletes a limited number of
//! pending deliveries, so it is fast however many there are: none of the rest is given out any more. Workers stop the
//! rest when they claim the queue, and deliveries without a subscription are deleted by retention.

use kernel::{SellerId, StoreError};
use oauth::ClientId;
use uuid::Uuid;
use webhooks::SubscriptionId;

use crate::{sql::sql, unit_of_work::Tx};

/// Selects the subscriptions to end.
#[derive(Debug, Clone, Copy)]
pub(crate) enum SubscriptionsOf {
    /// An application's subscriptions to a seller's events.
    Connection(SellerId, ClientId),
    /// All subscriptions to a seller's events, and those of the seller's own applications.
    Seller(SellerId),
}

/// Ends subscriptions permanently: they stay visible, inactive. A queue leased by a worker stays leased until the
/// worker releases it, so that running attempts are recorded.
pub(crate) async fn end_subscriptions(tx: &Tx, of: SubscriptionsOf) -> Result<(), StoreError> {
    let (seller, client) = match of {
        SubscriptionsOf::Connection(seller, client_id) => (seller.uuid(), Some(client_id.uuid())),
        SubscriptionsOf::Seller(seller) => (seller.uuid(), None),
    };
    let ended = tx.rows(sql!((Uuid, Uuid):
        "with theirs as materialized (select s.seller_id, s.id from subscriptions s where (s.seller_id, s.id) in (\
             select seller_id, id from subscriptions where seller_id = ", seller, " and client_id = coalesce(",
        client,
        ", client_id) union select t.seller_id, t.id from applications a join subscriptions t on t.client_id = a.client_id \
               where a.owner_id = ", seller, " and ", client,
        " is null) order by s.seller_id, s.id for update of s) \
         update subscriptions s set active = false, wake_at = case when s.leased then s.wake_at end from theirs t \
         where s.seller_id = t.seller_id and s.id = t.id returning s.seller_id, s.id")).await?;
    if ended.is_empty() {
        return Ok(());
    }
    // If more is pending than is stopped here, the queue is woken, and the worker that claims it stops the rest.
    let (sellers, queues): (Vec<_>, Vec<_>) = ended.into_iter().unzip();
    tx.execute(sql!(():
        "with pending as materialized (select l.seller_id, l.id as queue, d.id from unnest(", sellers, ", ", queues,
        ") l (seller_id, id) cross join lateral (\
             (select id from deliveries d where d.seller_id = l.seller_id and d.subscription_id = l.id \
                and d.due_at is not null and d.attempt = 0 limit 500) union all \
             (select id from deliveries d where d.seller_id = l.seller_id and d.subscription_id = l.id \
                and d.due_at is not null and d.attempt > 0 limit 500)) d), \
         stopped as (update deliveries d set due_at = null from pending p \
           where d.seller_id = p.seller_id and d.subscription_id = p.queue and d.id = p.id) \
         update subscriptions s set wake_at = (select api_now()) \
         from (select seller_id, queue from pending group by seller_id, queue having count(*) >= 500) m \
         where s.seller_id = m.seller_id and s.id = m.queue and not s.leased"))
        .await
        .map(drop)
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

/// Deletes every subscription of an application that is being deleted, with their histories.
pub(crate) async fn remove_subscriptions(tx: &Tx, client_id: ClientId) -> Result<(), StoreError> {
    let client = client_id.uuid();
    let removed = tx.rows(sql!((Uuid, Uuid):
        "with theirs as materialized (select seller_id, id from subscriptions where client_id = ", client,
        " order by seller_id, id for update), \
         freed as (delete from subscription_quota where client_id = ", client,
        " and (select count(*) from theirs) >= 0) \
         delete from subscriptions s using theirs t where s.seller_id = t.seller_id and s.id = t.id returning s.seller_id, s.id")).await?;
    if removed.is_empty() {
        return Ok(());
    }
    delete_deliveries(tx, removed).await
}

async fn delete_deliveries(tx: &Tx, removed: Vec<(Uuid, Uuid)>) -> Result<(), StoreError> {
    let (sellers, queues): (Vec<_>, Vec<_>) = removed.into_iter().unzip();
    tx.execute(sql!(():
        "delete from deliveries d using (select x.seller_id, x.subscription_id, x.id from unnest(", sellers, ", ",
        queues, ") l (seller_id, id) cross join lateral (select seller_id, subscription_id, id from deliveries y \
             where y.seller_id = l.seller_id and y.subscription_id = l.id order by y.id limit 1000) x limit 5000) x \
         where d.seller_id = x.seller_id and d.subscription_id = x.subscription_id and d.id = x.id")).await.map(drop)
}

/// Wakes an application's sleeping queues that have pending deliveries: those put to sleep while it was suspended. The
/// caller holds the application's row lock, so that none is put to sleep concurrently.
pub(crate) async fn wake_queues(tx: &Tx, client_id: ClientId) -> Result<(), StoreError> {
    let woken = tx.execute(sql!(():
        "with sleeping as materialized (select s.seller_id, s.id from subscriptions s where s.client_id = ",
        client_id.uuid(), " and s.active and not s.leased and s.wake_at is null and (\
             exists (select from deliveries d where d.seller_id = s.seller_id and d.subscription_id = s.id \
               and d.due_at is not null and d.attempt = 0) \
             or exists (select from deliveries d where d.seller_id = s.seller_id and d.subscription_id = s.id \
               and d.due_at is not null and d.attempt > 0)) order by s.seller_id, s.id for no key update of s) \
         update subscriptions s set wake_at = (select api_now()) from sleeping r where s.seller_id = r.seller_id and s.id = r.id")).await?;
    if woken > 0 {
        tx.wakes_queue();
    }
    Ok(())
}
