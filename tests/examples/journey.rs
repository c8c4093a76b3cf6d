//! Events that an example has to handle, one after another. After each, its order is shipped, or rightly not
//! shipped.

use std::os::unix::fs::PermissionsExt as _;
use std::{fs, sync::Arc, time::Duration};

use blackbox::{Disturbance, Exchange, Expect as _, eventually, until};
use reqwest::Method;
use serde_json::json;
use tokio::sync::Notify;

use crate::consent::{self, key};
use crate::program::Example;
use crate::shop::{BEGINNING, CATCHING_UP, Shop};

const BATCH: &str = "/v1/offers/batch";

/// Orders from before the example's start: it ships its own and leaves the one that the marketplace ships.
pub(crate) async fn earlier_orders(shop: &Shop, example: &Example) {
    let others = shop.seller(0)["examples"]["multi_seller_order"].as_str().unwrap();
    let reading = shop.calls.has(1, "GET", BEGINNING).await;
    let waiting = reading[0].answered().json()["items"].clone();
    let waiting = waiting.as_array().unwrap().iter();
    let waiting: Vec<_> = waiting.map(|order| order["id"].as_str().unwrap()).collect();
    assert!(waiting.len() > 1 && waiting.contains(&others), "{waiting:?}");
    for order in waiting.into_iter().filter(|order| *order != others) {
        is_done(example, order).await;
        assert_eq!(shop.status(order).await, "shipped");
    }
    wait_for_output(example, &format!("order {others} is shipped by the marketplace")).await;
    assert!(shipments(shop, others).is_empty(), "it is not packed");
}

/// The example has not read that the marketplace ships an order: it is refused (409).
pub(crate) async fn an_order_of_several_sellers(shop: &Shop, example: &Example) {
    let order = shop.placed_order(&[0, 1]).await;
    let hidden = Disturbance::Edited("\"marketplace\"", "\"seller\"");
    shop.calls.disturb("GET", &order, hidden);
    shop.pay(&order).await;
    let refused = shop.calls.has(1, "POST", &format!("{order}/shipments")).await;
    assert_eq!(refused[0].answered().code(), "multi_seller_order");
    // The example reads the order again before it decides.
    shop.calls.has(1, "GET", &format!("/v1/orders/{order}")).await;
    wait_for_output(example, "holds other sellers' items too").await;
    assert_eq!(shop.status(&order).await, "processing");
    // A later event does not have it packed again: the very same parcel is reported.
    let shipment = json!({"carrier": "other", "tracking_number": "FROM-THE-MARKETPLACE"});
    let shipped = shop.office(&format!("/orders/{order}/shipment"), &shipment).await;
    shipped.expect(201);
    let delivered = shop
        .office(&format!("/orders/{order}/delivery"), &json!({}))
        .await;
    delivered.expect(200);
    shop.calls.has(2, "POST", &format!("{order}/shipments")).await;
    shipments(shop, &order);
}

async fn wait_for_output(example: &Example, words: &str) {
    until(words, async || example.output().contains(words)).await;
}

/// Waits until the example has shipped an order and is idle.
async fn is_done(example: &Example, order: &str) {
    wait_for_output(example, &format!("order {order} is shipped: Other PARCEL-")).await;
}

/// The delivery of `order.paid` for an order.
async fn paid_delivery(shop: &Shop, order: &str) -> Exchange {
    eventually("the delivery", async || {
        let deliveries = shop.events.exchanges("POST", "/hooks");
        deliveries.into_iter().find(|exchange| {
            let body = exchange.request.json();
            exchange.answer.is_some() && body["event"] == "order.paid" && body["data"]["order_id"] == order
        })
    })
    .await
}

/// A webhook leads to a shipment, its repetition to nothing, and a forged one is rejected. The first of a row of
/// these is logged.
pub(crate) async fn a_webhook_delivery(shop: &Shop, example: &Example) {
    let order = shop.paid_order().await;
    let delivery = paid_delivery(shop, &order).await;
    assert_eq!(delivery.answered().status, 204);
    shop.is_shipped(&order).await;
    is_done(example, &order).await;
    let counts = || ["GET", "POST"].map(|method| shop.calls.exchanges(method, &order).len());
    let before = counts();
    assert_eq!(before[1], 1, "one shipment");

    let again = shop.events.repeat(&delivery, |_| ()).await;
    assert_eq!(again.status, 204);
    let forged = shop.events.repeat(&delivery, |body| body.push(b' ')).await;
    assert_eq!(forged.status, 401);
    let mut unsigned = delivery.clone();
    unsigned
        .request
        .headers
        .retain(|(name, _)| name != "webhook-signature");
    assert_eq!(shop.events.repeat(&unsigned, |_| ()).await.status, 401);
    for (minutes, wrong, expected) in [(0, "", 204), (0, "wrong", 401), (-6, "", 401), (6, "", 401)] {
        let repeated = shop.repeat_signed(&delivery, minutes, wrong).await;
        assert_eq!(repeated.status, expected, "{minutes} {wrong}");
    }
    assert_eq!(example.output().matches("a delivery was rejected").count(), 2);
    // By the time a later order is shipped, the repeated delivery would have had its effect.
    let later = shop.paid_order().await;
    is_done(example, &later).await;
    assert_eq!(counts(), before, "a known delivery has no effect");
    assert!(example.output().contains("came again"), "{}", example.output());
}

fn error(code: &str) -> serde_json::Value {
    json!({"traceId": "0000000000000000", "errors": [{"code": code, "message": "made up by a test"}]})
}

/// 429 for a read and a write: both wait as long as requested, and continue.
pub(crate) async fn too_many_requests(shop: &Shop, example: &Example) {
    for (method, part) in [("GET", "/v1/orders?ids="), ("POST", "/shipments")] {
        let limited = Disturbance::Instead(429, 1, error("rate_limited"));
        shop.calls.disturb(method, part, limited);
        let order = shop.paid_order().await;
        is_done(example, &order).await;
        let sent = shop.calls.exchanges(method, &order);
        assert_eq!(sent[0].answered().status, 429);
        let waited = sent[1].request.at - sent[0].request.at;
        assert!(waited >= Duration::from_secs(1), "{method}: {waited:?}");
    }
}

/// The requests that report the order's shipment. Asserts that they are equal.
fn shipments(shop: &Shop, order: &str) -> Vec<Exchange> {
    let sent = shop.calls.exchanges("POST", &format!("{order}/shipments"));
    for again in &sent {
        assert_eq!(key(again), key(&sent[0]));
        assert_eq!(again.request.body, sent[0].request.body);
    }
    sent
}

/// 500: the same request again after `Retry-After`.
pub(crate) async fn a_failure(shop: &Shop, example: &Example) {
    let failure = Disturbance::Instead(500, 1, error("internal_error"));
    shop.calls.disturb("POST", "/shipments", failure);
    let order = shop.paid_order().await;
    is_done(example, &order).await;
    let sent = shipments(shop, &order);
    assert_eq!(sent.len(), 2);
    assert!(sent[1].request.at - sent[0].request.at >= Duration::from_secs(1));
}

/// The connection closes after the shipment was recorded, or something between puts a page in the answer's place: the
/// repeat gets the first request's answer.
pub(crate) async fn a_lost_answer(shop: &Shop, example: &Example) {
    for loss in [Disturbance::Lost, Disturbance::Page] {
        shop.calls.disturb("POST", "/shipments", loss);
        let order = shop.paid_order().await;
        shop.calls.has(2, "POST", &format!("{order}/shipments")).await;
        let sent = shipments(shop, &order);
        let answer = sent[1].answered().clone().expect(201);
        assert!(answer.is_replayed(), "{sent:?}");
        is_done(example, &order).await;
    }
}

/// The header with the access token that the example used last.
fn last_authorization(shop: &Shop) -> String {
    let calls = shop.calls.exchanges("GET", "/v1/");
    calls.last().unwrap().request.header("authorization").to_owned()
}

/// Revokes the access token that the example used last; returns how many it has asked for.
async fn revoke_the_last(shop: &Shop) -> usize {
    let bearer = last_authorization(shop);
    let tokens = shop.calls.exchanges("POST", "/oauth/token");
    let credentials = tokens[0].request.header("authorization");
    let token = bearer.strip_prefix("Bearer ").unwrap();
    let revoke = shop.client.post(&format!("{}/oauth/revoke", shop.base_url()));
    let revoked = revoke
        .header("authorization", credentials)
        .form(&format!("token={token}"));
    revoked.send().await.expect(200);
    tokens.len()
}

/// The token is revoked: the example gets another one, once, and continues.
pub(crate) async fn a_revoked_token(shop: &Shop, example: &Example, grant: &str) {
    let before = shop.calls.exchanges("GET", "/v1/").len();
    let tokens = revoke_the_last(shop).await;
    let order = shop.paid_order().await;
    is_done(example, &order).await;
    // Its regular list of orders may be what is refused, not the order.
    let reads = shop.calls.exchanges("GET", "/v1/").split_off(before);
    let refused = |exchange: &Exchange| {
        exchange
            .answer
            .as_ref()
            .is_some_and(|answer| answer.status == 401)
    };
    assert!(reads.iter().any(refused), "{reads:?}");
    let read = shop.calls.exchanges("GET", &order);
    assert_eq!(read.last().unwrap().answered().status, 200);
    let got = shop.calls.exchanges("POST", "/oauth/token");
    assert_eq!(got.len(), tokens + 1, "one token for one that has ended");
    let form = String::from_utf8_lossy(&got[tokens].request.body).into_owned();
    assert!(form.contains(&format!("grant_type={grant}")));
}

/// A refresh gets a proxy's 502, or its answer is lost: it is repeated under its key. After 401 for its secret the
/// example continues with the old access token.
pub(crate) async fn a_lost_refresh(shop: &Shop, example: &Example) {
    let bad_gateway = Disturbance::Instead(502, 1, error("internal_error"));
    let refused = Disturbance::Instead(
        401,
        1,
        json!({"error": "invalid_client", "traceId": "0000000000000000"}),
    );
    for (loss, calls) in [(bad_gateway, 3), (Disturbance::Lost, 3), (refused, 2)] {
        let short = Disturbance::Edited("\"expires_in\":43200", "\"expires_in\":3600");
        shop.calls.disturb("POST", "/oauth/token", short);
        shop.calls.disturb("POST", "/oauth/token", loss);
        let tokens = revoke_the_last(shop).await;
        for _ in 0..2 {
            let order = shop.paid_order().await;
            is_done(example, &order).await;
        }
        let got = shop.calls.exchanges("POST", "/oauth/token").split_off(tokens);
        assert_eq!(
            got.len(),
            calls,
            "a new pair, and a refresh at half of its life: {got:?}"
        );
        consent::is_under_one_key(&got[1..]);
    }
}

/// The marketplace's database was set back: the last refresh token is unknown, and the refresh before is repeated under
/// its key.
pub(crate) async fn a_database_set_back(shop: &Shop, example: &Example) {
    let unknown = json!({"error": "invalid_grant", "reason": "unknown", "traceId": "0000000000000000"});
    let short = Disturbance::Edited("\"expires_in\":43200", "\"expires_in\":3600");
    for disturbance in [short, Disturbance::Instead(400, 1, unknown)] {
        shop.calls.disturb("POST", "/oauth/token", disturbance);
    }
    let tokens = revoke_the_last(shop).await;
    let order = shop.paid_order().await;
    is_done(example, &order).await;
    // A new pair, and two tries to refresh it.
    let got = shop.calls.has(tokens + 3, "POST", "/oauth/token").await;
    let got = &got[tokens..];
    assert_eq!(got[1].answered().status, 400);
    consent::is_under_one_key(&[got[0].clone(), got[2].clone()]);
}

/// The example is killed while it waits for a new pair: its next run gets the same one.
pub(crate) async fn a_crash_in_a_refresh(shop: &Shop, example: &mut Example) {
    shop.calls.disturb("POST", "/oauth/token", Disturbance::Silence);
    let tokens = revoke_the_last(shop).await;
    let order = shop.paid_order().await;
    shop.calls.has(tokens + 1, "POST", "/oauth/token").await;
    example.crash();
    shop.start_again(example).await;
    is_done(example, &order).await;
    let got = shop.calls.exchanges("POST", "/oauth/token").split_off(tokens);
    assert_eq!(got.len(), 2, "{got:?}");
    consent::is_under_one_key(&got);
}

/// The token lacks a scope: the example does not try one order after another. When it is started again, with the
/// scope, it goes on.
pub(crate) async fn a_missing_scope(shop: &Shop, example: &mut Example) {
    let refused = Disturbance::Instead(403, 1, error("insufficient_scope"));
    shop.calls.disturb("POST", "/shipments", refused);
    let order = shop.paid_order().await;
    wait_for_output(example, "insufficient_scope").await;
    assert!(!example.output().contains(&format!("order {order}: ")));
    example.crash();
    shop.start_again(example).await;
    is_done(example, &order).await;
    assert_eq!(shipments(shop, &order).len(), 2);
}

/// The buyer cancels the order at the moment of its shipment (409): the parcel is held back, and the next
/// order continues.
pub(crate) async fn a_cancelled_order(shop: &Shop, example: &Example) {
    let gate = Arc::new(Notify::new());
    let held = Disturbance::Delayed(Arc::clone(&gate));
    shop.calls.disturb("POST", "/shipments", held);
    let order = shop.paid_order().await;
    let is_sent = async || !shipments(shop, &order).is_empty();
    until("the shipment on its way", is_sent).await;
    let cancellation = format!("/orders/{order}/cancellation");
    shop.office(&cancellation, &json!({})).await.expect(200);
    gate.notify_one();

    let next = shop.paid_order().await;
    is_done(example, &next).await;
    let sent = shipments(shop, &order);
    assert_eq!(sent.len(), 1, "it is not tried again");
    assert_eq!(sent[0].answered().code(), "order_cancelled");
    wait_for_output(example, "was cancelled: keep its parcel back").await;
    assert_eq!(shop.status(&order).await, "cancelled");
}

/// The example is killed while it waits for an answer: its next run sends the same request, and nothing is
/// shipped twice. Nobody else on this machine may read what it has stored.
pub(crate) async fn a_crash(shop: &Shop, example: &mut Example) {
    shop.calls.disturb("POST", "/shipments", Disturbance::Silence);
    let order = shop.paid_order().await;
    shop.calls.has(1, "POST", &format!("{order}/shipments")).await;
    example.crash();
    for file in shop.state() {
        let mode = fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{}", file.display());
    }
    let subscriptions = shop.calls.exchanges("POST", "/v1/webhooks").len();
    shop.start_again(example).await;
    shop.calls.has(2, "POST", &format!("{order}/shipments")).await;
    let sent = shipments(shop, &order);
    let answer = sent[1].answered().clone().expect(201);
    assert!(answer.is_replayed(), "{sent:?}");
    let present = shop.calls.exchanges("POST", "/v1/webhooks").len();
    assert_eq!(present, subscriptions, "it has its subscription");
}

/// The example is killed while it waits for the secret of its subscription. Its next run replaces that, or makes another
/// one if it was deleted meanwhile.
pub(crate) async fn a_lost_secret(shop: &Shop, example: &mut Example) {
    let authorization = last_authorization(shop);
    let call = |method, path: &str| {
        let request = shop.client.request(method, &format!("{}{path}", shop.base_url()));
        request.header("authorization", &authorization).send()
    };
    let the_only_one = async || {
        let list = call(Method::GET, "/v1/webhooks").await.expect(200).json();
        assert_eq!(list["items"].as_array().unwrap().len(), 1, "{list}");
        list["items"][0]["id"].as_str().unwrap().to_owned()
    };
    let delete_it = async || {
        let path = format!("/v1/webhooks/{}", the_only_one().await);
        call(Method::DELETE, &path).await.expect(204);
    };
    for is_deleted in [false, true] {
        example.crash();
        delete_it().await;
        let made = shop.calls.exchanges("POST", "/v1/webhooks").len();
        shop.calls.disturb("POST", "/v1/webhooks", Disturbance::Silence);
        example.start();
        shop.calls.has(made + 1, "POST", "/v1/webhooks").await;
        example.crash();
        if is_deleted {
            delete_it().await;
        }
        shop.start_again(example).await;
        let made = shop.calls.has(made + 2, "POST", "/v1/webhooks").await;
        let known = made.last().unwrap().answered().json();
        assert_eq!(known["id"], the_only_one().await);
    }
}

/// Prices and stock are changed by batches, in the order of the file. A batch whose answer is lost, also by a crash,
/// is repeated: its adjustments are made once. What is refused is reported.
pub(crate) async fn changes_of_offers(shop: &Shop, example: &mut Example) {
    let before = shop.offer().await;
    let id = &before["id"];
    let stock = before["stock"].as_i64().unwrap();
    shop.calls.disturb("POST", BATCH, Disturbance::Lost);
    let price = json!({"id": id, "price": {"amount": 4321, "currency": "PLN"}, "stock_adjustment": 20});
    let gone = json!({"id": "gone", "stock_adjustment": 3});
    let [first, second] = [-3, 9].map(|pieces| json!({"id": id, "stock_adjustment": pieces}));
    shop.change(&format!("{price}\n{gone}\n{first}\n{}", &second.to_string()[..9]));
    let sent = shop.calls.has(3, "POST", BATCH).await;
    is_repeated(&sent[..2]);
    assert_eq!(sent[1].request.json()["items"], json!([price, gone]));
    assert_eq!(sent[2].request.json()["items"], json!([first]));
    wait_for_output(example, "offer gone was not changed").await;

    shop.calls.disturb("POST", BATCH, Disturbance::Silence);
    shop.change(&format!("{}\n", &second.to_string()[9..]));
    shop.calls.has(4, "POST", BATCH).await;
    example.crash();
    shop.start_again(example).await;
    let sent = shop.calls.has(5, "POST", BATCH).await;
    is_repeated(&sent[3..]);
    assert_eq!(sent[4].request.json()["items"], json!([second]));
    let after = shop.offer().await;
    assert_eq!(
        (&after["price"]["amount"], &after["stock"]),
        (&json!(4321), &json!(stock + 26))
    );

    // A batch ends before its body is too long. What was oversold is sold out, and has its new price.
    let changes = (0..100).map(|n| json!({"id": format!("{n}{}", "ł".repeat(350)), "stock": 1}));
    let price = json!({"amount": 1234, "currency": "PLN"});
    let oversold = json!({"id": id, "price": price, "stock_adjustment": -1000});
    let changes: Vec<_> = changes.chain([oversold]).collect();
    let lines: Vec<_> = changes.iter().map(|change| format!("{change}\n")).collect();
    shop.change(&lines.concat());
    let sent = shop.calls.has(8, "POST", BATCH).await;
    let items = |batch: &Exchange| batch.request.json()["items"].as_array().unwrap().clone();
    assert_eq!([items(&sent[5]), items(&sent[6])].concat(), changes);
    assert_eq!(items(&sent[7]), [json!({"id": id, "price": price, "stock": 0})]);
    assert_eq!(shop.offer().await["stock"], 0);
    // What stands before a line that is no change is sent.
    let whole = shop.change(&format!("{}\n", json!({"id": id, "stock": 100})));
    shop.change("{}\n");
    shop.calls.has(9, "POST", BATCH).await;
    assert_eq!(shop.offer().await["stock"], 100);
    wait_for_output(example, &format!("no change of an offer at byte {whole}")).await;
    example.crash();
    shop.truncate_changes(whole);
    shop.start_again(example).await;

    // Nothing of a malformed batch is done.
    let malformed = json!({"id": id, "price": {"amount": -1, "currency": "PLN"}});
    shop.change(&format!("{malformed}\n"));
    wait_for_output(example, "items[0].price.amount").await;
}

/// Asserts that the second of two requests is the first one's repeat, with its answer.
fn is_repeated(sent: &[Exchange]) {
    assert_eq!(sent.len(), 2, "{sent:?}");
    let (first, second) = (&sent[0], &sent[1]);
    assert_eq!(key(first), key(second));
    assert_eq!(first.request.body, second.request.body);
    assert!(second.answered().is_replayed());
    assert_eq!(first.answered().bytes, second.answered().bytes);
}

/// Orders are paid while the example is down: its next run finds them long before the next delivery, and reads
/// them with one request.
pub(crate) async fn missed_events(shop: &Shop, example: &mut Example) {
    let readings = shop.calls.exchanges("GET", CATCHING_UP).len();
    example.crash();
    let orders = [shop.paid_order().await, shop.paid_order().await];
    shop.start_again(example).await;
    for order in &orders {
        shop.is_shipped(order).await;
    }
    let reading = &shop.calls.exchanges("GET", CATCHING_UP)[readings];
    assert!(reading.target.contains("after="), "{}", reading.target);
    let [one, other] = orders.map(|order| shop.calls.exchanges("GET", &order)[0].target.clone());
    assert_eq!(one, other);
    assert_eq!(shop.calls.exchanges("GET", BEGINNING).len(), 1);
}

/// An order is paid while the example is down, and the journal no longer has its event: the example finds it among
/// all orders. So it does an order whose parcel was refused (400), and packs it again.
pub(crate) async fn a_gap(shop: &Shop, example: &mut Example) {
    let mut wrong = error("validation_error");
    wrong["errors"][0]["path"] = json!("tracking_number");
    let refused = Disturbance::Instead(400, 1, wrong);
    shop.calls.disturb("POST", "/shipments", refused);
    let packed_again = shop.paid_order().await;
    wait_for_output(example, &format!("order {packed_again}: ")).await;
    example.crash();
    let order = shop.paid_order().await;
    let unknown = Disturbance::Instead(400, 1, error("validation_error"));
    shop.calls.disturb("GET", CATCHING_UP, unknown);
    shop.start_again(example).await;
    shop.calls.has(2, "GET", BEGINNING).await;
    for order in [&order, &packed_again] {
        shop.is_shipped(order).await;
    }
    let sent = shop.calls.exchanges("POST", &packed_again);
    assert_ne!(key(&sent[0]), key(&sent[1]));
}

/// While one seller's shipment waits for its answer, another seller's orders are shipped.
pub(crate) async fn two_sellers(shop: &Shop, example: &Example) {
    let gate = Arc::new(Notify::new());
    let held = Disturbance::Delayed(Arc::clone(&gate));
    let waiting = shop.placed_order(&[0]).await;
    let shipment = format!("{waiting}/shipments");
    shop.calls.disturb("POST", &shipment, held);
    shop.pay(&waiting).await;
    let is_sent = async || !shop.calls.exchanges("POST", &shipment).is_empty();
    until("the shipment on its way", is_sent).await;
    let order = shop.placed_order(&[1]).await;
    shop.pay(&order).await;
    is_done(example, &order).await;
    gate.notify_one();
    is_done(example, &waiting).await;
}

/// The second seller's store cannot be read: the first one's orders are shipped.
pub(crate) async fn an_unreadable_store(shop: &Shop, example: &mut Example) {
    example.crash();
    for file in shop.state() {
        if file.to_string_lossy().contains("seller-1.") {
            fs::write(file, "garbage").unwrap();
        }
    }
    shop.start_again(example).await;
    let order = shop.paid_order().await;
    is_done(example, &order).await;
    assert!(example.output().contains("seller-1 is left out"));
}
