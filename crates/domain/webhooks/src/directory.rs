//! Everybody's deliveries that have not arrived, as the operator looks them up.

use async_trait::async_trait;
use kernel::{SellerId, StoreError};

use crate::{Delivery, DeliveryId, SubscriptionId};

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
