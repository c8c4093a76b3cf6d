//! Orders in a world: placed, paid and shipped; and sellers' changes.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use testkit::{Answer, Request};
use tokio::task::JoinHandle;
use tokio_postgres::types::ToSql;

use crate::{Seller, World, merged, number_of, offer_body, offer_id, text};

/// The scopes for everything that a seller does with orders and offers.
pub const TRADE_SCOPES: [&str; 5] = [
    "offers:read",
    "offers:write",
    "orders:read",
    "shipments:write",
    "shipments:read",
];

const PATIENCE: Duration = Duration::from_mins(1);

static OFFERS: AtomicUsize = AtomicUsize::new(1_000);

/// A seller with a token that has [`TRADE_SCOPES`].
#[derive(Debug, Clone)]
pub struct Trader {
    pub seller: Seller,
    /// A personal token with [`TRADE_SCOPES`].
    pub token: String,
}

#[derive(Debug, Clone)]
pub struct Order {
    pub id: String,
    /// The number that people use.
    pub number: String,
}

/// A line of an order, with price and texts.
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

/// An order of these lines with every field set; `changes` override its fields.
pub fn order_body(lines: &[Value], changes: Value) -> Value {
    let order = json!({
        "payment_method": "blik",
        "delivery_method": "parcel locker",
        "buyer": {"name": "Ewa Żak", "email": "ewa@buyer.example", "phone": "+48 600 100 200"},
        "shipping_address": {
            "line1": "Długa 1", "line2": "m. 2", "postal_code": "00-001", "city": "Warszawa", "country": "PL",
        },
        "delivery_point": {
            "id": "WAW01M", "name": "Paczkomat WAW01M", "line1": "Prosta 3", "line2": "by the shop", "postal_code": "00-838",
            "city": "Warszawa", "country": "PL",
        },
        "invoice": {
            "company": "Żak i Syn", "tax_id": "5260250274", "line1": "Krótka 4", "line2": "lok. 5", "postal_code": "00-002",
            "city": "Warszawa", "country": "PL",
        },
        "items": lines,
    });
    merged(order, changes)
}

/// A shipment with DPD, which tests never query.
pub fn parcel(number: &str) -> Value {
    json!({"carrier": "dpd", "tracking_number": number})
}

/// Waits until `is_so` returns true; panics on a timeout.
pub async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    eventually(what, async || is_so().await.then_some(())).await;
}

/// Waits until `look` returns a value; panics on a timeout.
pub async fn eventually<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let waiting = async {
        loop {
            if let Some(found) = look().await {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let found = tokio::time::timeout(PATIENCE, waiting).await;
    found.unwrap_or_else(|_| panic!("{what}: it does not come"))
}

impl World {
    /// A new seller with a token that has [`TRADE_SCOPES`].
    pub async fn trader(&self) -> Trader {
        let seller = self.seller().await;
        let token = self.personal_token(&seller, &TRADE_SCOPES).await.token;
        Trader { seller, token }
    }

    /// Feeds an offer with a unique id and returns the id.
    pub async fn any_offer(&self, seller: &Seller, changes: Value) -> String {
        let n = OFFERS.fetch_add(1, Ordering::Relaxed);
        self.offer(seller, n, changes).await;
        offer_id(n)
    }

    /// The request for a change of an offer.
    pub fn patching(&self, token: &str, offer: &str, body: &Value) -> Request {
        let request = self.at("PATCH", &format!("/v1/offers/{offer}"));
        request.bearer(token).json(body)
    }

    pub async fn patch(&self, token: &str, offer: &str, body: &Value) -> Answer {
        self.patching(token, offer, body).send().await
    }

    /// Changes an offer; asserts 200 and returns the body.
    pub async fn patched(&self, token: &str, offer: &str, body: &Value) -> Value {
        self.patch(token, offer, body).await.expect(200).json()
    }

    /// The request that reports a shipment.
    pub fn shipping(&self, token: &str, order: &str, body: &Value) -> Request {
        let path = format!("/v1/orders/{order}/shipments");
        self.at("POST", &path).bearer(token).json(body)
    }

    pub async fn ship(&self, token: &str, order: &str, body: &Value) -> Answer {
        self.shipping(token, order, body).send().await
    }

    /// Reports a shipment; asserts 201 and returns the body.
    pub async fn shipped(&self, token: &str, order: &str, body: &Value) -> Value {
        self.ship(token, order, body).await.expect(201).json()
    }

    /// The request that corrects a shipment.
    pub fn correcting(&self, token: &str, order: &str, shipment: &str, body: &Value) -> Request {
        let path = format!("/v1/orders/{order}/shipments/{shipment}");
        self.at("PATCH", &path).bearer(token).json(body)
    }

    /// Places an order and returns the answer, of any status.
    pub async fn place(&self, body: &Value) -> Answer {
        self.office_post("/orders", body).await
    }

    /// Places an order of these lines, unpaid.
    pub async fn unpaid(&self, lines: &[Value], changes: Value) -> Order {
        let made = self.place(&order_body(lines, changes)).await.expect(201).json();
        Order {
            id: text(&made, "order_id"),
            number: text(&made, "order_number"),
        }
    }

    /// Places an unpaid order of one new offer of the seller.
    pub async fn any_order(&self, seller: &Seller) -> Order {
        let offer = self.any_offer(seller, json!({})).await;
        self.unpaid(&[line(seller, &offer, 1)], json!({})).await
    }

    /// Places and pays an order of these lines.
    pub async fn paid(&self, lines: &[Value], changes: Value) -> Order {
        let order = self.unpaid(lines, changes).await;
        self.move_order(&order.id, "payment").await.expect(200);
        order
    }

    /// Places and pays an order of one new offer of the trader.
    pub async fn paid_order(&self, trader: &Trader) -> Order {
        let offer = self.any_offer(&trader.seller, json!({})).await;
        self.paid(&[line(&trader.seller, &offer, 1)], json!({})).await
    }

    /// A transition by the marketplace: `payment`, `cancellation`, `delivery`, `buyer-erasure`.
    pub async fn move_order(&self, order: &str, step: &str) -> Answer {
        self.office(Method::POST, &format!("/orders/{order}/{step}"))
            .send()
            .await
    }

    /// A transition by the marketplace; asserts 200.
    pub async fn order_moved(&self, order: &str, step: &str) {
        self.move_order(order, step).await.expect(200);
    }

    /// Places an unpaid order with one of each of these offers.
    pub async fn ordered(&self, seller: &Seller, offers: &[&str]) -> Order {
        let lines: Vec<_> = offers.iter().map(|offer| line(seller, offer, 1)).collect();
        self.unpaid(&lines, json!({})).await
    }

    /// The marketplace reports the shipment.
    pub async fn market_ship(&self, order: &str, body: &Value) -> Answer {
        self.office_post(&format!("/orders/{order}/shipment"), body).await
    }

    pub async fn order(&self, token: &str, order: &str) -> Value {
        self.read(token, &format!("/v1/orders/{order}")).await
    }

    pub async fn whole_order(&self, order: &str) -> Value {
        self.office_read(&format!("/orders/{order}")).await
    }

    pub async fn fed_offer(&self, seller: &Seller, offer: &str) -> Value {
        let path = format!("/sellers/{}/offers/{offer}", seller.id);
        self.office_read(&path).await
    }

    pub async fn stock(&self, seller: &Seller, offer: &str) -> Value {
        self.fed_offer(seller, offer).await["stock"].take()
    }

    /// The marketplace's decision about an offer's status.
    pub async fn moderate(&self, seller: &Seller, offer: &str, decision: &str) {
        let path = format!("/sellers/{}/offers/{offer}/moderation", seller.id);
        let body = json!({"decision": decision});
        self.office_post(&path, &body).await.expect(200);
    }

    /// Feeds the offer again, with the body [`offer_body`] and `changes`.
    pub async fn feed_again(&self, seller: &Seller, offer: &str, changes: Value) {
        let body = offer_body(number_of(&json!(offer)), changes);
        self.put(seller, offer, &body).await.expect(200);
    }

    /// All items of the change feed so far, page by page.
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

    /// Like [`Self::feed`], once the feed has caught up with what is committed.
    pub async fn caught_up_feed(&self) -> Vec<Value> {
        let behind =
            "select count(*) from changes where xid >= pg_snapshot_xmin(pg_current_snapshot())::text::bigint";
        self.until_count("the feed catches up", behind, &[], 0).await;
        self.feed().await
    }

    /// The number of changes of a kind that the feed lists for an order, an offer or an application. An older
    /// open transaction holds the feed back, even one of another test on the same cluster, so the feed is
    /// read after it has caught up with what is committed.
    pub async fn count_in_feed(&self, kind: &str, subject: &str) -> usize {
        let topics = ["order_id", "offer_id", "client_id"];
        let of_it = |item: &&Value| item["kind"] == kind && topics.iter().any(|topic| item[topic] == subject);
        self.caught_up_feed().await.iter().filter(of_it).count()
    }

    /// The count that a statement returns.
    pub async fn count(&self, statement: &str, parameters: &[&(dyn ToSql + Sync)]) -> i64 {
        let client = self.database.connect().await;
        let counted = client.query_one(statement, parameters).await;
        counted.expect("the rows are counted").get(0)
    }

    /// Waits until a request has claimed its idempotency key, or has ended.
    pub async fn until_claimed<T>(&self, key: &str, request: &JoinHandle<T>) {
        let client = self.database.connect().await;
        // A worker may wait for a lock too: a wait alone would not show that the key is claimed.
        let claimed = "select count(*) from idempotency where key = $1 and status is null";
        until("the claim", async || {
            let counted = client.query_one(claimed, &[&key]).await;
            request.is_finished() || counted.expect("the rows are counted").get::<_, i64>(0) == 1
        })
        .await;
    }

    /// Waits until a statement returns this count.
    pub async fn until_count(
        &self,
        what: &str,
        statement: &str,
        parameters: &[&(dyn ToSql + Sync)],
        expected: i64,
    ) {
        let client = self.database.connect().await;
        let statement = client.prepare(statement).await.expect("the statement is fine");
        until(what, async || {
            let counted = client.query_one(&statement, parameters).await;
            counted.expect("the rows are counted").get::<_, i64>(0) == expected
        })
        .await;
    }

    /// The number of mails that were ever queued for an order.
    pub async fn mails(&self, order: &str) -> i64 {
        self.count("select count(*) from mails where order_id::text = $1", &[&order])
            .await
    }
}
