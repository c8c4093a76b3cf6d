//! Trade in a world: orders that are placed, paid, shipped, and what sellers change.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use reqwest::Method;
use serde_json::{Value, json};
use testkit::{Answer, Request};

use crate::{Seller, World, merged, number_of, offer_body, offer_id, text};

/// The scopes of everything a seller does in trade.
pub const TRADE_SCOPES: [&str; 4] = ["offers:read", "offers:write", "orders:read", "shipments:write"];

const PATIENCE: Duration = Duration::from_secs(20);

static OFFERS: AtomicUsize = AtomicUsize::new(1_000);

/// A seller with a token for everything it does in trade.
#[derive(Debug, Clone)]
pub struct Trader {
    /// The seller.
    pub seller: Seller,
    /// A personal token with [`TRADE_SCOPES`].
    pub token: String,
}

/// A placed order.
#[derive(Debug, Clone)]
pub struct Order {
    /// The id.
    pub id: String,
    /// The number people use.
    pub number: String,
}

/// A line of an order with a price and texts.
pub fn line(seller: &Seller, offer: &str, quantity: u32) -> Value {
    json!({
        "seller_id": seller.id,
        "offer_id": offer,
        "quantity": quantity,
        "unit_price": {"amount": 12_900, "currency": "PLN"},
        "title": "Kettle",
        "sku": "K-1",
    })
}

/// An order of these lines with a value in every field, `changes` put over it.
pub fn order_body(lines: &[Value], changes: Value) -> Value {
    let order = json!({
        "payment_method": "blik",
        "delivery_method": "parcel locker",
        "buyer": {"name": "Ewa Żak", "email": "ewa@buyer.example", "phone": "+48 600 100 200"},
        "shipping_address": {
            "line1": "Długa 1", "line2": "m. 2", "postal_code": "00-001", "city": "Warszawa", "country": "PL",
        },
        "items": lines,
    });
    merged(order, changes)
}

/// A shipment by DPD, which no test asks.
pub fn parcel(number: &str) -> Value {
    json!({"carrier": "dpd", "tracking_number": number})
}

/// Waits until something is so; panics when it takes too long.
pub async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    eventually(what, async || is_so().await.then_some(())).await;
}

/// Waits until `look` gives something; panics when it takes too long.
pub async fn eventually<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let waiting = async {
        loop {
            if let Some(found) = look().await {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let found = tokio::time::timeout(PATIENCE, waiting).await;
    found.unwrap_or_else(|_| panic!("{what}: it does not come"))
}

impl World {
    /// A new seller with a token for trade.
    pub async fn trader(&self) -> Trader {
        let seller = self.seller().await;
        let token = self.personal_token(&seller, &TRADE_SCOPES).await.token;
        Trader { seller, token }
    }

    /// Feeds an offer under an id that no other test has, and returns the id.
    pub async fn any_offer(&self, seller: &Seller, changes: Value) -> String {
        let n = OFFERS.fetch_add(1, Ordering::Relaxed);
        self.offer(seller, n, changes).await;
        offer_id(n)
    }

    /// A change of an offer in the making.
    pub fn patching(&self, token: &str, offer: &str, body: &Value) -> Request {
        let url = self.url(&format!("/v1/offers/{offer}"));
        self.client.request(Method::PATCH, &url).bearer(token).json(body)
    }

    /// Changes an offer.
    pub async fn patch(&self, token: &str, offer: &str, body: &Value) -> Answer {
        self.patching(token, offer, body).send().await
    }

    /// Changes an offer, and gives what is answered.
    pub async fn patched(&self, token: &str, offer: &str, body: &Value) -> Value {
        self.patch(token, offer, body).await.expect(200).json()
    }

    /// A report of a shipment in the making.
    pub fn shipping(&self, token: &str, order: &str, body: &Value) -> Request {
        let url = self.url(&format!("/v1/orders/{order}/shipments"));
        self.client.post(&url).bearer(token).json(body)
    }

    /// Reports a shipment.
    pub async fn ship(&self, token: &str, order: &str, body: &Value) -> Answer {
        self.shipping(token, order, body).send().await
    }

    /// Reports a shipment, and gives what is answered.
    pub async fn shipped(&self, token: &str, order: &str, body: &Value) -> Value {
        self.ship(token, order, body).await.expect(201).json()
    }

    /// Places an order, whatever the answer is.
    pub async fn place(&self, body: &Value) -> Answer {
        self.office_post("/orders", body).await
    }

    /// An order of these lines, unpaid.
    pub async fn unpaid(&self, lines: &[Value], changes: Value) -> Order {
        let made = self.place(&order_body(lines, changes)).await.expect(201).json();
        Order {
            id: text(&made, "order_id"),
            number: text(&made, "order_number"),
        }
    }

    /// An unpaid order of one new offer of the seller's.
    pub async fn any_order(&self, seller: &Seller) -> Order {
        let offer = self.any_offer(seller, json!({})).await;
        self.unpaid(&[line(seller, &offer, 1)], json!({})).await
    }

    /// An order of these lines, paid.
    pub async fn paid(&self, lines: &[Value], changes: Value) -> Order {
        let order = self.unpaid(lines, changes).await;
        self.settle(&order.id, "payment").await.expect(200);
        order
    }

    /// A paid order of one new offer of the trader's.
    pub async fn paid_order(&self, trader: &Trader) -> Order {
        let offer = self.any_offer(&trader.seller, json!({})).await;
        self.paid(&[line(&trader.seller, &offer, 1)], json!({})).await
    }

    /// A move of the marketplace's: `payment`, `cancellation`, `delivery`, `buyer-erasure`.
    pub async fn settle(&self, order: &str, step: &str) -> Answer {
        self.office(Method::POST, &format!("/orders/{order}/{step}"))
            .send()
            .await
    }

    /// A move of the marketplace's that is made.
    pub async fn settled(&self, order: &str, step: &str) {
        self.settle(order, step).await.expect(200);
    }

    /// An order of one of each of these offers of a seller's, unpaid.
    pub async fn ordered(&self, seller: &Seller, offers: &[&str]) -> Order {
        let lines: Vec<_> = offers.iter().map(|offer| line(seller, offer, 1)).collect();
        self.unpaid(&lines, json!({})).await
    }

    /// The marketplace ships.
    pub async fn market_ship(&self, order: &str, body: &Value) -> Answer {
        self.office_post(&format!("/orders/{order}/shipment"), body).await
    }

    /// The order as the seller sees it.
    pub async fn order(&self, token: &str, order: &str) -> Value {
        self.read(token, &format!("/v1/orders/{order}")).await
    }

    /// The whole order as the marketplace sees it.
    pub async fn whole_order(&self, order: &str) -> Value {
        self.office_read(&format!("/orders/{order}")).await
    }

    /// The offer as the marketplace sees it.
    pub async fn fed_offer(&self, seller: &Seller, offer: &str) -> Value {
        let path = format!("/sellers/{}/offers/{offer}", seller.id);
        self.office_read(&path).await
    }

    /// The stock of an offer.
    pub async fn stock(&self, seller: &Seller, offer: &str) -> Value {
        self.fed_offer(seller, offer).await["stock"].take()
    }

    /// Feeds the offer as [`offer_body`] has it, with `changes`, over what it is.
    pub async fn feed_again(&self, seller: &Seller, offer: &str, changes: Value) {
        let body = offer_body(number_of(&json!(offer)), changes);
        self.put(seller, offer, &body).await.expect(200);
    }

    /// Every change that the feed has told so far, page by page, from the start.
    pub async fn feed(&self) -> Vec<Value> {
        let (mut items, mut after) = (Vec::new(), String::new());
        loop {
            let page = self.office_read(&format!("/changes?limit=1000{after}")).await;
            let new = page["items"].as_array().expect("items").clone();
            if new.is_empty() {
                return items;
            }
            items.extend(new);
            after = format!("&after={}", page["next"].as_str().expect("a cursor"));
        }
    }

    /// The same, once the feed has caught up with what is committed.
    pub async fn caught_up_feed(&self) -> Vec<Value> {
        let behind = "select count(*) from changes where $1 = '' and xid >= pg_snapshot_xmin(pg_current_snapshot())::text::bigint";
        let caught_up = async {
            while self.count(behind, "").await > 0 {
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            }
        };
        // Not to have caught up in time is for the caller's assertion to tell.
        drop(tokio::time::timeout(std::time::Duration::from_secs(15), caught_up).await);
        self.feed().await
    }

    /// How many changes of a kind the feed tells of an order or an offer. The feed lags behind while a transaction that
    /// began earlier is under way, be it one of another test on the same cluster, so it is read once it has caught up with
    /// what is committed; a test that holds such a transaction itself gets what the feed tells then.
    pub async fn told(&self, kind: &str, subject: &str) -> usize {
        let of_it = |item: &&Value| {
            item["kind"] == kind && (item["order_id"] == subject || item["offer_id"] == subject)
        };
        self.caught_up_feed().await.iter().filter(of_it).count()
    }

    /// How many rows a statement finds; `$1` is a text.
    pub async fn count(&self, statement: &str, text: &str) -> i64 {
        let client = self.database.connect().await;
        client
            .query_one(statement, &[&text])
            .await
            .expect("the rows are counted")
            .get(0)
    }

    /// How many mails are or were queued for an order.
    pub async fn mails(&self, order: &str) -> i64 {
        self.count("select count(*) from mails where order_id::text = $1", order)
            .await
    }
}
