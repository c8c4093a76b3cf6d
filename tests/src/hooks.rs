//! Webhooks in a world: subscriptions of applications, and their deliveries.

use serde_json::{Value, json};
use testkit::{Answer, Request, ServerOptions};
use tokio::task::JoinHandle;

use crate::{Application, Receiver, Seller, Trader, World, eventually, items, text, until};

/// The scopes of an application that trades and has webhooks.
pub const HOOK_SCOPES: [&str; 7] = [
    "offers:read",
    "offers:write",
    "orders:read",
    "shipments:write",
    "settings:read",
    "settings:write",
    "shipments:read",
];

/// Every event type, in the contract's order.
pub const EVENTS: [&str; 7] = [
    "order.created",
    "order.paid",
    "order.shipped",
    "order.delivered",
    "order.cancelled",
    "offer.rejected",
    "connection.ended",
];

/// Those of orders and offers.
pub const TRADE_EVENTS: &[&str] = EVENTS.split_at(6).0;

/// An application of its owner, with a token for [`HOOK_SCOPES`].
#[derive(Debug, Clone)]
pub struct Integration {
    pub seller: Seller,
    pub application: Application,
    /// An access token with [`HOOK_SCOPES`].
    pub token: String,
}

#[derive(Debug, Clone)]
pub struct Hook {
    pub id: String,
    /// Deliveries are signed with it.
    pub secret: String,
}

/// Settings that allow deliveries to a [`Receiver`] and any number of API requests.
pub fn local_receivers(options: ServerOptions) -> ServerOptions {
    options
        .set("SELLER_API__WEBHOOKS__ADDRESSES", "any")
        .set("SELLER_API__RATE_LIMIT__DEFAULT", 1_000_000)
}

/// Settings with a short retry delay for failed deliveries.
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
    /// The owner with this token.
    pub fn trader(&self) -> Trader {
        Trader {
            seller: self.seller.clone(),
            token: self.token.clone(),
        }
    }
}

impl World {
    /// A new seller with an application that has all of [`HOOK_SCOPES`].
    pub async fn integration(&self) -> Integration {
        self.integration_of(self.seller().await).await
    }

    /// Another application of a seller that has all of [`HOOK_SCOPES`].
    pub async fn integration_of(&self, seller: Seller) -> Integration {
        let application = self.application(&seller, &HOOK_SCOPES).await;
        let token = self.token(&application).await;
        Integration {
            seller,
            application,
            token,
        }
    }

    /// An application with all of [`HOOK_SCOPES`], a receiver, and a subscription of the receiver to
    /// [`TRADE_EVENTS`].
    pub async fn subscribed(&self) -> (Integration, Receiver, Hook) {
        let (own, receiver) = (self.integration().await, Receiver::start().await);
        let hook = self.hook(&own.token, &receiver).await;
        (own, receiver, hook)
    }

    /// The request that creates a subscription.
    pub fn subscribing(&self, token: &str, body: &Value) -> Request {
        self.at("POST", "/v1/webhooks").bearer(token).json(body)
    }

    /// Creates a subscription and returns the answer, of any status.
    pub async fn subscribe_to(&self, token: &str, url: &str, events: &[&str]) -> Answer {
        self.subscribing(token, &json!({"url": url, "events": events}))
            .send()
            .await
    }

    /// Creates a subscription; asserts 201 and returns the body.
    pub async fn subscription(&self, token: &str, url: &str, events: &[&str]) -> Value {
        self.subscribe_to(token, url, events).await.expect(201).json()
    }

    /// Subscribes a receiver to [`TRADE_EVENTS`].
    pub async fn hook(&self, token: &str, receiver: &Receiver) -> Hook {
        let made = self.subscription(token, &receiver.url, TRADE_EVENTS).await;
        Hook {
            id: text(&made, "id"),
            secret: text(&made, "secret"),
        }
    }

    /// The request that changes a subscription.
    pub fn changing(&self, token: &str, id: &str, body: &Value) -> Request {
        let request = self.at("PATCH", &format!("/v1/webhooks/{id}"));
        request.bearer(token).json(body)
    }

    /// The request that sends a test event, without a body.
    pub fn testing(&self, token: &str, id: &str) -> Request {
        let request = self.at("POST", &format!("/v1/webhooks/{id}/test"));
        request.bearer(token)
    }

    /// The request that makes a delivery again.
    pub fn redelivering(&self, token: &str, id: &str, delivery: &str) -> Request {
        let path = format!("/v1/webhooks/{id}/deliveries/{delivery}/redelivery");
        self.at("POST", &path).bearer(token)
    }

    /// The request that deletes a subscription.
    pub fn unsubscribing(&self, token: &str, id: &str) -> Request {
        self.at("DELETE", &format!("/v1/webhooks/{id}")).bearer(token)
    }

    /// Deletes a subscription and returns the answer, of any status.
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

    /// The first delivery of a subscription, once this number of its attempts have ended.
    pub async fn attempted(&self, token: &str, hook: impl AsRef<str>, attempts: u8) -> Value {
        eventually(&format!("the end of attempt {attempts}"), async || {
            let delivery = self.history(token, hook.as_ref()).await.pop()?;
            (delivery["attempt"] == attempts).then_some(delivery)
        })
        .await
    }

    /// Sends requests for the journal and waits until all are counted: each token has been looked up then.
    pub async fn admitted_to_journal(
        &self,
        requests: impl IntoIterator<Item = Request>,
    ) -> Vec<JoinHandle<Answer>> {
        // `Limiter::Events`.
        let counted = "select coalesce(sum(used), 0)::bigint from rate_windows where kind = 12";
        let before = self.count(counted, &[]).await;
        let requests = requests.into_iter();
        let sent: Vec<_> = requests.map(|request| tokio::spawn(request.send())).collect();
        let all = before + i64::try_from(sent.len()).expect("few requests");
        until("all are counted", async || self.count(counted, &[]).await >= all).await;
        sent
    }

    /// The number of a subscription's deliveries that wait to be sent.
    pub async fn waiting(&self, id: &str) -> i64 {
        let waiting =
            "select count(*) from deliveries where subscription_id::text = $1 and due_at is not null";
        self.count(waiting, &[&id]).await
    }
}
