//! An application subscribes to a seller's events, and changes the subscription; the seller deletes it.

use accounts::{AccountStore, Action};
use chrono::{DateTime, TimeDelta, Utc};
use kernel::{Randomness, SellerId};
use oauth::ClientId;
use webhooks::{
    NewSubscription, Subscription, SubscriptionChange, SubscriptionId, SubscriptionStore, WebhookEvent,
    WebhookSecret, WebhookUrl,
};

use crate::failure::{ensure, present, refuse};
use crate::{Acting as _, ActingSeller, Failure};

/// The application has as many subscriptions at the seller as are allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("subscription limit reached")]
pub struct LimitReached;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubscriptionRequest {
    pub url: WebhookUrl,
    /// The events to deliver; duplicates count once.
    pub events: Vec<WebhookEvent>,
}

/// Creates the subscription. Its secret is returned here and never again.
pub async fn create_subscription(
    subscriptions: &dyn SubscriptionStore,
    randomness: &dyn Randomness,
    seller: SellerId,
    client_id: ClientId,
    request: &SubscriptionRequest,
    now: DateTime<Utc>,
) -> Result<NewSubscription, Failure<LimitReached>> {
    let subscription = NewSubscription {
        seller,
        client_id,
        id: randomness.uuid().into(),
        url: request.url.clone(),
        events: without_duplicates(&request.events),
        secret: WebhookSecret::from_random(&randomness.secret()),
        created_at: now,
    };
    let added = subscriptions.add_subscription(subscription.clone()).await?;
    ensure(added, LimitReached)?;
    Ok(subscription)
}

fn without_duplicates(events: &[WebhookEvent]) -> Vec<WebhookEvent> {
    let mut unique = Vec::new();
    for event in events {
        if !unique.contains(event) {
            unique.push(*event);
        }
    }
    unique
}

/// Why a subscription is not changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ChangeRefusal {
    #[error("no such subscription")]
    NotFound,
    /// It has ended with the connection.
    #[error("the subscription is inactive")]
    Inactive,
}

/// Changes the subscription; duplicate events count once. What was queued goes to the present URL.
pub async fn change_subscription(
    subscriptions: &dyn SubscriptionStore,
    seller: SellerId,
    client_id: ClientId,
    subscription: SubscriptionId,
    change: &SubscriptionChange,
) -> Result<Subscription, Failure<ChangeRefusal>> {
    let change = SubscriptionChange {
        url: change.url.clone(),
        events: change.events.as_deref().map(without_duplicates),
    };
    let changed = subscriptions.change_subscription(seller, client_id, subscription, change);
    match changed.await? {
        Some(changed) if changed.active => Ok(changed),
        // The refusal rolls the change back.
        Some(_) => refuse(ChangeRefusal::Inactive),
        None => refuse(ChangeRefusal::NotFound),
    }
}

/// A subscription's new secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rotated {
    pub id: SubscriptionId,
    pub secret: WebhookSecret,
    /// The end of the overlap.
    pub active_from: DateTime<Utc>,
}

/// Gives the subscription a new secret, active after `overlap` and returned only here. One that is not active yet is
/// dropped.
pub async fn rotate_secret(
    subscriptions: &dyn SubscriptionStore,
    randomness: &dyn Randomness,
    seller: SellerId,
    client_id: ClientId,
    id: SubscriptionId,
    overlap: TimeDelta,
    now: DateTime<Utc>,
) -> Result<Rotated, Failure<ChangeRefusal>> {
    let secrets = match subscriptions.lock_secrets(seller, client_id, id).await? {
        None => return refuse(ChangeRefusal::NotFound),
        Some((_, false)) => return refuse(ChangeRefusal::Inactive),
        Some((secrets, true)) => secrets,
    };
    let secret = WebhookSecret::from_random(&randomness.secret());
    let rotated = secrets.rotate(secret.clone(), now, overlap);
    subscriptions.replace_secrets(seller, id, &rotated).await?;
    Ok(Rotated {
        id,
        secret,
        active_from: now + overlap,
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no such subscription")]
pub struct NoSuchSubscription;

/// Deletes a subscription of any application, with its deliveries, for the seller whose events it gets: who
/// made it may have had a stolen token.
pub async fn delete_for_seller(
    subscriptions: &dyn SubscriptionStore,
    accounts: &dyn AccountStore,
    by: ActingSeller,
    id: SubscriptionId,
) -> Result<(), Failure<NoSuchSubscription>> {
    let found = subscriptions.subscription(by.seller, id).await?;
    let client_id = present(found, NoSuchSubscription)?.client_id;
    let removed = subscriptions.remove_subscription(by.seller, client_id, id);
    ensure(removed.await?, NoSuchSubscription)?;
    by.log(accounts, Action::SubscriptionDeleted, id).await?;
    Ok(())
}
