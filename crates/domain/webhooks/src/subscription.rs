//! Subscriptions: which application receives which of a seller's events, and where (contract: Webhook).

use chrono::{DateTime, Utc};
use kernel::SellerId;
use oauth::ClientId;

use crate::{WebhookEvent, WebhookSecret, WebhookUrl};

/// Maximum number of subscriptions of a pair of application and seller, including inactive ones (contract:
/// Limits).
pub const MAX_SUBSCRIPTIONS: u32 = 20;

kernel::uuid_id! {
    /// A subscription, unique together with its seller.
    SubscriptionId
}

/// A subscription without its secret, which can never be read again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subscription {
    pub id: SubscriptionId,
    /// The application that created it.
    pub client_id: ClientId,
    pub url: WebhookUrl,
    /// Its events: at least one, each once, in the order given.
    pub events: Vec<WebhookEvent>,
    /// False once the seller has disconnected the application: nothing more is queued for it.
    pub active: bool,
    pub created_at: DateTime<Utc>,
}

/// A subscription to be created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewSubscription {
    /// The seller whose events it receives.
    pub seller: SellerId,
    /// The application that creates it.
    pub client_id: ClientId,
    pub id: SubscriptionId,
    pub url: WebhookUrl,
    /// Its events: at least one, each once.
    pub events: Vec<WebhookEvent>,
    /// The key of its signatures; stored sealed.
    pub secret: WebhookSecret,
    /// The creation time, by the database's clock.
    pub created_at: DateTime<Utc>,
}

/// A change of a subscription; what is None stays.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubscriptionChange {
    pub url: Option<WebhookUrl>,
    /// At least one, each once.
    pub events: Option<Vec<WebhookEvent>>,
}
