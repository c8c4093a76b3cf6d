//! Subscriptions: which application hears of which of a seller's events, and where (contract: Webhook).

use chrono::{DateTime, Utc};
use kernel::SellerId;
use oauth::ClientId;

use crate::{WebhookEvent, WebhookSecret, WebhookUrl};

/// How many subscriptions a pair of application and seller may have, inactive ones included (contract: Limits).
pub const MOST_SUBSCRIPTIONS: u32 = 20;

kernel::uuid_id! {
    /// A subscription, unique together with its seller.
    SubscriptionId
}

/// A subscription, without its secret, which nobody reads again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subscription {
    /// Its id.
    pub id: SubscriptionId,
    /// The application that made it.
    pub client_id: ClientId,
    /// Where its deliveries go.
    pub url: WebhookUrl,
    /// What it hears of: at least one event, each once, in the order in which they were given.
    pub events: Vec<WebhookEvent>,
    /// False once the seller has disconnected the application: nothing is queued for it any more.
    pub active: bool,
    /// When it was made.
    pub created_at: DateTime<Utc>,
}

/// A subscription that is being made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewSubscription {
    /// Whose events.
    pub seller: SellerId,
    /// The application that makes it.
    pub client_id: ClientId,
    /// Its id.
    pub id: SubscriptionId,
    /// Where its deliveries go.
    pub url: WebhookUrl,
    /// What it hears of: at least one event, each once.
    pub events: Vec<WebhookEvent>,
    /// The key of its signatures; kept sealed.
    pub secret: WebhookSecret,
    /// When it is made, by the database's clock.
    pub created_at: DateTime<Utc>,
}

impl NewSubscription {
    /// What others see of it, its maker included.
    pub fn subscription(&self) -> Subscription {
        Subscription {
            id: self.id,
            client_id: self.client_id,
            url: self.url.clone(),
            events: self.events.clone(),
            active: true,
            created_at: self.created_at,
        }
    }
}
