//! Storage of subscriptions and deliveries, and sending of deliveries.

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use kernel::{SellerId, StoreError};
use oauth::ClientId;
use orders::OrderId;
use uuid::Uuid;

use crate::{
    AttemptRecord, Capacity, ClaimedQueues, Delivery, DeliveryId, Lease, NewSubscription, Refill, Refilled,
    Release, Sent, SigningSecrets, Subscription, SubscriptionChange, SubscriptionId, WebhookEvent,
    WebhookUrl,
};

/// No delivery can be sent to the host: its name does not resolve, or one of its addresses is forbidden. The
/// two cases are indistinguishable, so that names in the service's own network are not revealed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the host does not resolve to public addresses only")]
pub struct HostRefused;

/// Checks the host of a new subscription (contract: Address rules).
///
/// An adapter MUST resolve the name absolutely and within 2 s, and MUST refuse the host if any of its
/// addresses violates the address rules. A caller MUST NOT hold a connection or a transaction meanwhile.
#[cfg_attr(any(test, feature = "mocks"), mockall::automock)]
#[async_trait]
pub trait HostCheck: Send + Sync {
    /// Whether deliveries to this URL are possible now.
    async fn check(&self, url: &WebhookUrl) -> Result<(), HostRefused>;
}

/// The message of one attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// The subscription's application. It is not sent.
    pub application: ClientId,
    /// When the attempt was due, likewise.
    pub due_at: DateTime<Utc>,
    /// `X-Webhook-Id`.
    pub subscription: SubscriptionId,
    /// `X-Delivery-Id`.
    pub delivery: DeliveryId,
    /// `X-Event`.
    pub event: WebhookEvent,
    pub url: WebhookUrl,
    pub body: Arc<[u8]>,
    /// The keys of its signatures at the time of the attempt.
    pub secrets: Arc<SigningSecrets>,
}

/// Sends the message of an attempt.
///
/// An adapter MUST enforce every deadline of an attempt itself, MUST connect only to addresses that it has
/// vetted in the same attempt, MUST follow no redirect, and MUST turn every failure into an outcome. It MUST
/// NOT wait for other attempts to end: an attempt's time belongs to the receiver, and a worker's slot must
/// not be spent waiting.
#[async_trait]
pub trait WebhookSender: Send + Sync {
    /// Sends it and returns the outcome, or that it cannot begin now. Dropping the future closes the
    /// connection.
    async fn send(&self, message: &Message) -> Sent;
}

/// A delivery while its queue is locked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockedDelivery {
    pub delivery: Delivery,
    /// Its subscription is active, and its application exists and is not suspended.
    pub is_live: bool,
    /// A worker has it in hand, under a lease that is valid.
    pub is_under_way: bool,
}

/// Changes subscriptions within a transaction.
#[async_trait]
pub trait SubscriptionStore: Send + Sync {
    /// Stores a new subscription in one of its application's [`crate::MAX_SUBSCRIPTIONS`] places at the
    /// seller; false if all are taken. Inactive subscriptions keep their places. True, without an effect, if
    /// the application has been deleted or an account closed meanwhile: it would have ended by now.
    ///
    /// An adapter MUST be exact under concurrency, MUST seal the secret, and MUST bind it to the seller's
    /// current connection with the application, if there is one: the subscription ends with it.
    async fn add_subscription(&self, subscription: NewSubscription) -> Result<bool, StoreError>;

    /// Changes an application's subscription and returns it as it is then, active or not; None if there is no
    /// such subscription. Deliveries that begin after the commit go to the new URL.
    async fn change_subscription(
        &self,
        seller: SellerId,
        client_id: ClientId,
        subscription: SubscriptionId,
        change: SubscriptionChange,
    ) -> Result<Option<Subscription>, StoreError>;

    /// The secrets of an application's subscription, and whether it is active. Until the transaction ends,
    /// nobody else replaces them.
    async fn lock_secrets(
        &self,
        seller: SellerId,
        client_id: ClientId,
        subscription: SubscriptionId,
    ) -> Result<Option<(SigningSecrets, bool)>, StoreError>;

    /// Replaces the secrets of a locked subscription. An adapter MUST seal them. Attempts that begin after
    /// the commit are signed with the new ones.
    async fn replace_secrets(
        &self,
        seller: SellerId,
        subscription: SubscriptionId,
        secrets: &SigningSecrets,
    ) -> Result<(), StoreError>;

    /// Deletes an application's subscription with its history, stops its pending deliveries, and frees its
    /// place; false if there is no such subscription (D57).
    async fn remove_subscription(
        &self,
        seller: SellerId,
        client_id: ClientId,
        subscription: SubscriptionId,
    ) -> Result<bool, StoreError>;

    /// A seller's subscription of any application.
    async fn subscription(
        &self,
        seller: SellerId,
        subscription: SubscriptionId,
    ) -> Result<Option<Subscription>, StoreError>;

    /// Queues a new delivery and wakes the queue. False, without an effect, unless the subscription is active
    /// and its application exists and is not suspended.
    async fn queue_delivery(
        &self,
        seller: SellerId,
        subscription: SubscriptionId,
        delivery: &Delivery,
    ) -> Result<bool, StoreError>;

    /// A delivery of a seller's subscription, of this application if one is given. Until the transaction
    /// ends, no worker takes a delivery of the subscription, and none records an attempt.
    async fn lock_delivery(
        &self,
        seller: SellerId,
        client_id: Option<ClientId>,
        subscription: SubscriptionId,
        delivery: DeliveryId,
    ) -> Result<Option<LockedDelivery>, StoreError>;

    /// Changes a locked delivery by [`Delivery::again`], and wakes the queue. False if the delivery is no longer kept, or
    /// [`DeliveryState::has_ended`](crate::DeliveryState::has_ended) of it is not `has_ended`. A record of an earlier
    /// attempt that arrives once more MUST NOT change it.
    async fn requeue_delivery(
        &self,
        seller: SellerId,
        subscription: SubscriptionId,
        delivery: DeliveryId,
        has_ended: bool,
        now: DateTime<Utc>,
    ) -> Result<bool, StoreError>;
}

/// A subscription as shown to its seller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SellerSubscription {
    pub subscription: Subscription,
    pub app_name: String,
    /// The URL, as far as the seller sees it.
    pub receiver: String,
    /// From when on the secret of the last rotation signs, if that had an overlap.
    pub new_secret_from: Option<DateTime<Utc>>,
    /// Whether the application is suspended: deliveries wait until it is reinstated.
    pub is_suspended: bool,
}

/// A delivery as shown to its seller or an operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SellerDelivery {
    /// The seller whose events the subscription receives.
    pub seller: SellerId,
    pub subscription: SubscriptionId,
    pub app_name: String,
    /// The URL, as far as its reader sees it.
    pub receiver: String,
    /// Whether it may be queued again.
    pub active: bool,
    /// Whether it waits until the application is reinstated.
    pub is_suspended: bool,
    pub delivery: Delivery,
}

/// A filter of a seller's deliveries. By event or order it is for operators alone, since it may cost all that is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DeliveryFilter {
    /// Only deliveries to this subscription.
    pub subscription: Option<SubscriptionId>,
    /// Only deliveries whose last attempt failed.
    pub failed: bool,
    /// Only deliveries of this event.
    pub event: Option<WebhookEvent>,
    /// Only deliveries about this order.
    pub order: Option<OrderId>,
}

/// Reads subscriptions and deliveries outside a transaction.
///
/// An adapter MUST read committed data from the primary.
#[cfg_attr(any(test, feature = "mocks"), mockall::automock)]
#[async_trait]
pub trait SubscriptionReader: Send + Sync {
    /// An application's subscriptions at a seller, including inactive ones, oldest first.
    async fn subscriptions(
        &self,
        seller: SellerId,
        client_id: ClientId,
    ) -> Result<Vec<Subscription>, StoreError>;

    /// The last 100 deliveries of an application's subscription, newest first; None if there is no such
    /// subscription.
    async fn history(
        &self,
        seller: SellerId,
        client_id: ClientId,
        subscription: SubscriptionId,
    ) -> Result<Option<Vec<Delivery>>, StoreError>;

    /// A delivery of an application's subscription.
    async fn delivery(
        &self,
        seller: SellerId,
        client_id: ClientId,
        subscription: SubscriptionId,
        delivery: DeliveryId,
    ) -> Result<Option<Delivery>, StoreError>;

    /// A subscription at a seller.
    async fn subscription_of_seller(
        &self,
        seller: SellerId,
        subscription: SubscriptionId,
    ) -> Result<Option<SellerSubscription>, StoreError>;

    /// Up to `limit` subscriptions at a seller after this one, oldest first.
    async fn subscriptions_of_seller(
        &self,
        seller: SellerId,
        after: Option<SubscriptionId>,
        limit: u16,
    ) -> Result<Vec<SellerSubscription>, StoreError>;

    /// Up to `limit` of a seller's deliveries before this one, newest first.
    async fn deliveries_of_seller(
        &self,
        seller: SellerId,
        filter: DeliveryFilter,
        before: Option<DeliveryId>,
        limit: u16,
    ) -> Result<Vec<SellerDelivery>, StoreError>;
}

/// Leases queues to workers and records the ends of attempts.
///
/// - A claim is valid for 30 s, longer than any attempt takes. An expired one is given out again; the
///   deliveries that its worker had in hand are lost: see [`crate::Progress::lost`].
/// - Each claim and refill MUST check the subscription again: nothing is given out of queues whose
///   application is suspended, or whose subscription is deleted, disconnected or inactive.
/// - Times MUST be the database's.
/// - No connection is held between calls.
#[async_trait]
pub trait SubscriptionQueues: Send + Sync {
    /// Claims due queues under `fence`, the longest waiting first, with their due deliveries: first attempts
    /// before repeated ones, so they are never delayed, but also some repeated ones. A claim that passes over
    /// no owner of healthy queues, or of failing ones, begins a round of these, in which later ones may go on
    /// where the one before ended. It MUST NOT exceed the capacity, and queues of an application without capacity
    /// MUST NOT delay those of others. If a queue has more than one place, repeated attempts MUST leave one of
    /// them to a first attempt.
    async fn claim(&self, fence: Uuid, capacity: Capacity) -> Result<ClaimedQueues, StoreError>;

    /// Extends claims and returns what else is due in their queues, without the deliveries that are running,
    /// and the present URLs.
    /// A queue is missing from the result if its claim is lost, or if another transaction has locked it. An adapter MUST NOT
    /// wait for such a lock.
    async fn refill(&self, held: &[Refill]) -> Result<Vec<Refilled>, StoreError>;

    /// Records the ends of attempts, then releases queues: asleep if nothing waits, due with the next
    /// delivery, or at the back if one is due now; never before its pause is over. A record counts only under
    /// the queue's current fence and if the delivery is in the state that it was decided on, so sending it
    /// twice has no second effect. A delivery that was stopped meanwhile stays stopped.
    ///
    /// MUST NOT wait for a queue that another transaction has locked: its lease is in the result, and what belongs to it
    /// is to be sent again.
    async fn record(
        &self,
        records: &[AttemptRecord],
        releases: &[Release],
    ) -> Result<BTreeSet<Lease>, StoreError>;

    /// Wakes queues that have due deliveries which no claim sees: sleeping ones, and those in which a delivery
    /// was committed long after it was due. Returns their number; called once a minute. It should always be 0.
    async fn reconcile(&self) -> Result<usize, StoreError>;
}

/// Why a delivery has not arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Undelivered {
    /// Another attempt is due, now or later.
    Pending,
    /// All attempts failed.
    Exhausted,
}

/// A filter of undelivered deliveries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UndeliveredFilter {
    pub why: Undelivered,
    /// Only deliveries to this seller's subscriptions.
    pub seller: Option<SellerId>,
    /// Only those to this subscription.
    pub subscription: Option<SubscriptionId>,
}
