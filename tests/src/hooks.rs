//! Webhooks in a world: applications that subscribe, and what they are told of their deliveries.

use reqwest::Method;
use serde_json::{Value, json};
use testkit::{Answer, Request, ServerOptions};

use crate::{Application, Receiver, Seller, Trader, World, eventually, items, text};

/// The scopes of a program that trades and has webhooks.
pub const HOOK_SCOPES: [&str; 6] = [
    "offers:read",
    "offers:write",
    "orders:read",
    "shipments:write",
    "settings:read",
    "settings:write",
];

/// Every event that can be subscribed to, in the contract's order.
pub const EVENTS: [&str; 6] = [
    "order.created",
    "order.paid",
    "order.shipped",
    "order.delivered",
    "order.cancelled",
    "offer.rejected",
];

/// An application at its owner, with a token for everything.
#[derive(Debug, Clone)]
pub struct Integration {
    /// The owner.
    pub seller: Seller,
    /// The application.
    pub application: Application,
    /// An access token with [`HOOK_SCOPES`].
    pub token: String,
}

/// A subscription.
#[derive(Debug, Clone)]
pub struct Hook {
    /// The id.
    pub id: String,
    /// What deliveries are signed with.
    pub secret: String,
}

/// Settings under which deliveries reach a [`Receiver`], and a test may ask after them as often as it likes.
pub fn local_receivers(options: ServerOptions) -> ServerOptions {
    options
        .set("SELLER_API__WEBHOOKS__ADDRESSES", "any")
        .set("SELLER_API__RATE_LIMIT__DEFAULT", 1_000_000)
}

/// Settings under which failed deliveries come again soon.
pub fn soon_again(options: ServerOptions) -> ServerOptions {
    local_receivers(options).set(
        "SELLER_API__WEBHOOKS__RETRY_DELAYS",
        "100ms,100ms,100ms,100ms,100ms",
    )
}

impl AsRef<str> for Hook {
    fn as_ref(&self) -> &str {
        &self.id
    }
}

impl Integration {
    /// As one who trades.
    pub fn trader(&self) -> Trader {
        Trader {
            seller: self.seller.clone(),
            token: self.token.clone(),
        }
    }
}

impl World {
    /// A new seller with an application that may do everything.
    pub async fn integration(&self) -> Integration {
        self.integration_of(self.seller().await).await
    }

    /// One more application of a seller's that may do everything.
    pub async fn integration_of(&self, seller: Seller) -> Integration {
        let application = self.application(&seller, &HOOK_SCOPES).await;
        let token = self.token(&application).await;
        Integration {
            seller,
            application,
            token,
        }
    }

    /// An application that may do everything, a receiver, and its subscription to every event.
    pub async fn subscribed(&self) -> (Integration, Receiver, Hook) {
        let (own, receiver) = (self.integration().await, Receiver::start().await);
        let hook = self.hook(&own.token, &receiver).await;
        (own, receiver, hook)
    }

    /// A subscription in the making.
    pub fn subscribing(&self, token: &str, body: &Value) -> Request {
        let url = self.url("/v1/webhooks");
        self.client.post(&url).bearer(token).json(body)
    }

    /// Subscribes, whatever the answer is.
    pub async fn subscribe_to(&self, token: &str, url: &str, events: &[&str]) -> Answer {
        self.subscribing(token, &json!({"url": url, "events": events}))
            .send()
            .await
    }

    /// Subscribes, and gives what was made.
    pub async fn subscription(&self, token: &str, url: &str, events: &[&str]) -> Value {
        self.subscribe_to(token, url, events).await.expect(201).json()
    }

    /// Subscribes a receiver to every event.
    pub async fn hook(&self, token: &str, receiver: &Receiver) -> Hook {
        let made = self.subscription(token, &receiver.url, &EVENTS).await;
        Hook {
            id: text(&made, "id"),
            secret: text(&made, "secret"),
        }
    }

    /// The end of a subscription in the making.
    pub fn unsubscribing(&self, token: &str, id: &str) -> Request {
        let url = self.url(&format!("/v1/webhooks/{id}"));
        self.client.request(Method::DELETE, &url).bearer(token)
    }

    /// Ends a subscription, whatever the answer is.
    pub async fn unsubscribe(&self, token: &str, id: &str) -> Answer {
        self.unsubscribing(token, id).send().await
    }

    /// The deliveries of a subscription, newest first.
    pub async fn history(&self, token: &str, id: &str) -> Vec<Value> {
        let list = self.read(token, &format!("/v1/webhooks/{id}/deliveries")).await;
        items(&list).to_vec()
    }

    /// The only delivery of a subscription.
    pub async fn delivery(&self, token: &str, id: &str) -> Value {
        let history = self.history(token, id).await;
        assert_eq!(history.len(), 1, "{history:?}");
        history[0].clone()
    }

    /// The first delivery of a subscription, once so many attempts of it have ended.
    pub async fn attempted(&self, token: &str, hook: impl AsRef<str>, attempts: u8) -> Value {
        eventually(&format!("the end of attempt {attempts}"), async || {
            let delivery = self.history(token, hook.as_ref()).await.pop()?;
            (delivery["attempt"] == attempts).then_some(delivery)
        })
        .await
    }

    /// How many deliveries of a subscription wait to be sent.
    pub async fn waiting(&self, id: &str) -> i64 {
        let waiting =
            "select count(*) from deliveries where subscription_id::text = $1 and due_at is not null";
        self.count(waiting, id).await
    }
}
