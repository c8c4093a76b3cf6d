//! Where subscriptions and deliveries are kept, and who carries deliveries out.

use std::sync::Arc;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use kernel::{SellerId, StoreError};
use oauth::ClientId;
use uuid::Uuid;

use crate::{
    AttemptRecord, Capacity, Claimed, Delivery, DeliveryId, NewSubscription, Refill, Refilled, Release, Sent,
    Subscription, SubscriptionId, WebhookEvent, WebhookUrl,
};

/// The host cannot be sent to: its name does not resolve, or an address of it is none that deliveries may go to. Which of
/// both is not told, so that nobody learns names of the service's own network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the host does not resolve to public addresses alone")]
pub struct HostRefused;

/// Looks at the host of a new subscription (contract: Address rules).
///
/// An adapter MUST resolve the name absolutely and within 2 s, MUST refuse the host when any of its addresses is refused by
/// the address rules, and MUST NOT be called while a connection or a transaction is held.
#[cfg_attr(any(test, feature = "mocks"), mockall::automock)]
#[async_trait]
pub trait HostCheck: Send + Sync {
    /// Whether deliveries could go there now.
    async fn check(&self, url: &WebhookUrl) -> Result<(), HostRefused>;
}

/// What is sent in one attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Whose subscription it goes to. It is not sent.
    pub application: ClientId,
    /// `X-Delivery-Id`.
    pub delivery: DeliveryId,
    /// `X-Event`.
    pub event: WebhookEvent,
    /// Where it goes.
    pub url: WebhookUrl,
    /// The body.
    pub body: Arc<[u8]>,
    /// `X-Signature`.
    pub signature: String,
}

/// Carries out an attempt.
///
/// An adapter MUST keep every deadline of an attempt itself, MUST connect to no address that it has not vetted in this very
/// attempt, MUST follow no redirect, and MUST turn every failure into an outcome. It MUST NOT wait for other attempts to end:
/// an attempt's time is the receiver's, and a worker's slot is not for waiting.
#[cfg_attr(any(test, feature = "mocks"), mockall::automock)]
#[async_trait]
pub trait WebhookSender: Send + Sync {
    /// Sends, and tells how that ended, or that it cannot begin now. Dropped half-way, it ends the connection.
    async fn send(&self, message: &Message) -> Sent;
}

/// A delivery that is queued by hand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewDelivery {
    /// Its own id.
    pub id: DeliveryId,
    /// What happened.
    pub event: WebhookEvent,
    /// Its bytes, with the id in them.
    pub body: Vec<u8>,
    /// When it is queued, and due.
    pub created_at: DateTime<Utc>,
}

/// Changes subscriptions within a transaction.
#[async_trait]
pub trait SubscriptionStore: Send + Sync {
    /// Takes one of the places that the pair of application and seller has; false when all
    /// [`crate::MOST_SUBSCRIPTIONS`] are taken. Inactive subscriptions keep their places. An adapter MUST be exact however
    /// many ask at once.
    async fn take_subscription_place(
        &self,
        seller: SellerId,
        client_id: ClientId,
    ) -> Result<bool, StoreError>;

    /// Keeps a new subscription whose place was taken. An adapter MUST seal its secret and MUST bind it to the seller's
    /// present connection with the application, where there is one: the subscription ends with it.
    async fn add_subscription(&self, subscription: NewSubscription) -> Result<(), StoreError>;

    /// Removes an application's subscription, stops its pending deliveries, forgets its history, and frees its place; false
    /// when there is no such subscription.
    async fn remove_subscription(
        &self,
        seller: SellerId,
        client_id: ClientId,
        subscription: SubscriptionId,
    ) -> Result<bool, StoreError>;

    /// A seller's subscription, whichever application's.
    async fn subscription(
        &self,
        seller: SellerId,
        subscription: SubscriptionId,
    ) -> Result<Option<Subscription>, StoreError>;

    /// What a delivery of a seller's subscription told, and its bytes.
    async fn delivery_body(
        &self,
        seller: SellerId,
        subscription: SubscriptionId,
        delivery: DeliveryId,
    ) -> Result<Option<(WebhookEvent, Vec<u8>)>, StoreError>;

    /// Queues a delivery and wakes the queue; false, and nothing is queued, when the subscription is gone or inactive or its
    /// application suspended or gone.
    async fn queue_delivery(
        &self,
        seller: SellerId,
        subscription: SubscriptionId,
        delivery: NewDelivery,
    ) -> Result<bool, StoreError>;
}

/// A subscription as its seller sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubscriptionOfSeller {
    /// The subscription.
    pub subscription: Subscription,
    /// The name of its application.
    pub app_name: String,
}

/// A delivery as the seller sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryOfSeller {
    /// To which subscription.
    pub subscription: SubscriptionId,
    /// The delivery.
    pub delivery: Delivery,
}

/// Which of a seller's deliveries are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DeliveryFilter {
    /// Only those to this subscription.
    pub subscription: Option<SubscriptionId>,
    /// Only those whose last attempt failed.
    pub failed: bool,
}

/// Reads subscriptions and deliveries outside a transaction.
///
/// An adapter MUST read what is committed on the primary.
#[cfg_attr(any(test, feature = "mocks"), mockall::automock)]
#[async_trait]
pub trait SubscriptionReader: Send + Sync {
    /// An application's subscriptions at a seller, inactive ones too, oldest first.
    async fn subscriptions(
        &self,
        seller: SellerId,
        client_id: ClientId,
    ) -> Result<Vec<Subscription>, StoreError>;

    /// The last 100 deliveries of an application's subscription, newest first; nothing when there is no such subscription.
    async fn history(
        &self,
        seller: SellerId,
        client_id: ClientId,
        subscription: SubscriptionId,
    ) -> Result<Option<Vec<Delivery>>, StoreError>;

    /// Every subscription at a seller, oldest first.
    async fn subscriptions_of_seller(
        &self,
        seller: SellerId,
    ) -> Result<Vec<SubscriptionOfSeller>, StoreError>;

    /// A seller's deliveries, newest first, at most `limit`.
    async fn deliveries_of_seller(
        &self,
        seller: SellerId,
        filter: DeliveryFilter,
        limit: u16,
    ) -> Result<Vec<DeliveryOfSeller>, StoreError>;
}

/// Gives queues out to workers and takes the ends of attempts in.
///
/// - A claim holds for 30 s, longer than any attempt takes; a queue whose claim has run out is given out again, and what was
///   in its worker's hands comes back with [`crate::Due::lost`] counted.
/// - Each claim and refill MUST look at the subscription anew: a suspended application's queues are left alone, those of one
///   that is gone, disconnected or inactive are stopped.
/// - Times MUST be the database's.
/// - No connection is held between calls.
#[cfg_attr(any(test, feature = "mocks"), mockall::automock)]
#[async_trait]
pub trait SubscriptionQueues: Send + Sync {
    /// Claims queues that are due under `fence`, those first that have waited longest, with deliveries that are due: first
    /// attempts before repeated ones, so that they never wait behind them, yet a few of these too. It MUST give out no more
    /// than there is capacity for, and queues of an application for which there is none MUST NOT hold up those of others. Repeated
    /// attempts MUST leave one of a queue's places to a first one, where it has more than one.
    async fn claim(&self, fence: Uuid, capacity: Capacity) -> Result<Claimed, StoreError>;

    /// Prolongs claims, and gives out what else is due in their queues, none of what is still running. A queue that is not in
    /// the answer is held no more: its attempts end, and nothing else begins.
    async fn refill(&self, held: &[Refill]) -> Result<Vec<Refilled>, StoreError>;

    /// Records the ends of attempts, then gives queues back: asleep where nothing waits, due when the next delivery is, and
    /// where more is due now, at the back of the queue; none before its rest is over. A record counts only under the queue's present fence, and while
    /// as many attempts have ended as it says: sent twice, it changes nothing twice.
    async fn settle(&self, records: &[AttemptRecord], released: &[Release]) -> Result<(), StoreError>;

    /// Wakes queues that sleep though something is due in them, and returns how many; called once a minute. None ever should.
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

/// Which deliveries are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UndeliveredFilter {
    /// Why they have not arrived.
    pub why: Undelivered,
    /// Only those to this seller's subscriptions.
    pub seller: Option<SellerId>,
    /// Only those to this subscription.
    pub subscription: Option<SubscriptionId>,
}

/// A delivery with all that names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryOfAny {
    /// Whose events the subscription hears of.
    pub seller: SellerId,
    /// To which subscription.
    pub subscription: SubscriptionId,
    /// The delivery.
    pub delivery: Delivery,
}

/// Looks up deliveries of any seller, outside a transaction.
#[cfg_attr(any(test, feature = "mocks"), mockall::automock)]
#[async_trait]
pub trait DeliveryDirectory: Send + Sync {
    /// True when there is such a subscription, an ended one too, and it is to this seller's events, where one is given.
    async fn has_subscription(
        &self,
        seller: Option<SellerId>,
        subscription: SubscriptionId,
    ) -> Result<bool, StoreError>;

    /// Up to `limit` deliveries whose id is below `before`, newest first.
    async fn undelivered(
        &self,
        filter: UndeliveredFilter,
        before: Option<DeliveryId>,
        limit: u16,
    ) -> Result<Vec<DeliveryOfAny>, StoreError>;
}
