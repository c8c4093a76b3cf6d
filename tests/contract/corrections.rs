//! `PATCH /v1/orders/{id}/shipments/{shipment_id}`: corrections, their effects, and rejections.

use blackbox::{
    Expect, Order, Trader, World, all_invalid, assert_members, at_once, count_of, keyed, line, merged,
    offer_id, parcel, text, whole,
};
use serde_json::{Value, json};
use testkit::{Answer, Request};

use crate::world_of_trade;

/// A shipment of a trader.
struct Sent {
    world: World,
    trader: Trader,
    order: Order,
    shipment: Value,
}

impl Sent {
    async fn new() -> Self {
        let (world, trader, _) = world_of_trade().await;
        Self::of(world, trader, json!({})).await
    }

    async fn of(world: World, trader: Trader, order: Value) -> Self {
        let offer = world.any_offer(&trader.seller, json!({})).await;
        let order = world.paid(&[line(&trader.seller, &offer, 1)], order).await;
        let shipment = world.shipped(&trader.token, &order.id, &parcel("AAAA1")).await;
        Self {
            world,
            trader,
            order,
            shipment,
        }
    }

    fn correcting(&self, body: &Value) -> Request {
        let shipment = text(&self.shipment, "id");
        self.world
            .correcting(&self.trader.token, &self.order.id, &shipment, body)
    }

    async fn correct(&self, body: Value) -> Answer {
        self.correcting(&body).send().await
    }

    async fn seen(&self) -> Value {
        self.world.order(&self.trader.token, &self.order.id).await
    }

    /// How many mails the buyer got, and corrections the marketplace heard of.
    async fn told(&self) -> (i64, usize) {
        let mails = self.world.mails(&self.order.id).await;
        let kind = "shipment.corrected";
        (mails, self.world.count_in_feed(kind, &self.order.id).await)
    }
}

#[tokio::test]
async fn three_corrections_replace_carrier_and_number_and_each_is_told_once() {
    let sent = Sent::new().await;
    let page = "https://tracktrace.dpd.com.pl/parcelDetails?typ=1&p1=BBBB2";
    let number = json!({"tracking_number": "BBBB2", "tracking_url": page});
    let carrier = json!({
        "carrier": "gls", "carrier_name": "GLS", "carrier_code": "gls",
        "tracking_url": "https://gls-group.com/PL/pl/sledzenie-paczek?match=BBBB2",
    });
    let back = json!({
        "carrier": "dpd", "carrier_name": "DPD", "carrier_code": "dpd", "tracking_number": "AAAA1",
        "tracking_url": sent.shipment["tracking_url"],
    });
    let (mut expected, mut before) = (sent.shipment.clone(), sent.seen().await);
    for (n, (body, changes)) in (1..).zip([
        (json!({"tracking_number": "BBBB2"}), number),
        (json!({"carrier": "gls"}), carrier),
        (parcel("AAAA1"), back),
    ]) {
        expected = merged(expected, changes);
        let corrected = sent.correct(body.clone()).await.expect(200).json();
        assert_eq!(corrected, expected);
        let after = sent.seen().await;
        let shipment = json!({
            "carrier": expected["carrier_name"], "carrier_code": expected["carrier"],
            "tracking_number": expected["tracking_number"], "tracking_url": expected["tracking_url"],
            "tracking_status": null,
        });
        let updated_at = &after["updated_at"];
        assert!(updated_at.as_str() > before["updated_at"].as_str());
        let same_but = json!({"shipment": shipment, "updated_at": updated_at});
        assert_eq!(after, merged(before, same_but), "nothing else changes");
        assert_eq!(sent.told().await, (1 + n, usize::try_from(n).unwrap()));
        // What it has already changes nothing.
        assert_eq!(sent.correct(body).await.expect(200).json(), expected);
        assert_eq!(sent.seen().await, after);
        before = after;
    }
    let fourth = sent.correct(json!({"tracking_number": "CCCC3"})).await;
    fourth.is_problem(409, &[whole("shipment_locked")]);
    let same = sent.correct(parcel("AAAA1")).await.expect(200).json();
    assert_eq!(same, expected);
    assert_eq!(sent.told().await, (4, 3));
    let path = format!("/v1/orders/{}/shipments", sent.order.number);
    let listed = sent.world.read(&sent.trader.token, &path).await;
    assert_eq!(listed["items"], json!([expected]));
}

#[tokio::test]
async fn each_invalid_value_is_named_by_its_path_and_nothing_is_corrected() {
    let sent = Sent::new().await;
    let table = r#"
        {"carrier":"DPD"}                            => carrier
        {"carrier":null,"tracking_number":"BBBB2"}   => carrier
        {"carrier":"gls","tracking_number":"BBBB 2"} => tracking_number
        {"tracking_number":"abc"}                    => tracking_number
        {"tracking_number":null}                     => tracking_number
        {"carrier":"gls","item_ids":["x"]}           => item_ids
        {"x":1,"tracking_number":7,"carrier":""}     => carrier tracking_number x"#;
    all_invalid(table, async |body: &str| {
        sent.correct(body.parse().unwrap()).await
    })
    .await;
    let empty = sent.correct(json!({})).await;
    empty.is_problem(400, &[whole("validation_error")]);
    assert_eq!(sent.told().await, (1, 0));
    let path = format!(
        "/v1/orders/{}/shipments/{}",
        sent.order.number,
        text(&sent.shipment, "id")
    );
    let selecting = async |fields: &str| {
        let request = sent.world.at("PATCH", &format!("{path}?fields={fields}"));
        let request = request.bearer(&sent.trader.token);
        request.json(&json!({"carrier": "ups"})).send().await
    };
    selecting("nothing").await.invalid("fields");
    let some = selecting("carrier").await.expect(200).json();
    assert_eq!(some, json!({"id": sent.shipment["id"], "carrier": "ups"}));
}

#[tokio::test]
async fn only_ones_own_shipment_in_transit_can_be_corrected() {
    let sent = Sent::new().await;
    let (world, trader) = (&sent.world, &sent.trader);
    let body = json!({"tracking_number": "BBBB2"});
    let correct = async |token: &str, order: &str, shipment: &str| {
        world.correcting(token, order, shipment, &body).send().await
    };
    let id = text(&sent.shipment, "id");
    let other = world.paid_order(trader).await;
    let stranger = world.trader().await;
    let (own, upper) = (sent.order.id.as_str(), id.to_uppercase());
    for (token, order, shipment) in [
        (&trader.token, own, offer_id(1).as_str()),
        (&trader.token, own, "no-uuid"),
        (&trader.token, own, upper.as_str()),
        (&trader.token, other.id.as_str(), id.as_str()),
        (&stranger.token, own, id.as_str()),
    ] {
        let answer = correct(token, order, shipment).await;
        answer.is_problem(404, &[whole("not_found")]);
    }
    world.order_moved(&sent.order.id, "delivery").await;
    let late = correct(&trader.token, &sent.order.id, &id).await;
    late.is_problem(409, &[whole("shipment_locked")]);
    let same = sent.correct(parcel("AAAA1")).await.expect(200).json();
    assert_eq!(same, sent.shipment);
    assert_eq!(sent.told().await, (1, 0));
    // A shipment of the marketplace.
    let made = world.market_ship(&other.id, &parcel("AAAA1")).await;
    let id = text(&made.expect(201).json()["shipments"][0], "id");
    let locked = correct(&trader.token, &other.id, &id).await;
    locked.is_problem(409, &[whole("shipment_locked")]);
    let same = world.correcting(&trader.token, &other.id, &id, &parcel("AAAA1"));
    same.send().await.expect(200);
}

#[tokio::test]
async fn a_repeat_under_its_key_is_the_first_answer_and_corrects_nothing_again() {
    let sent = Sent::new().await;
    let correct = async |number: &str| {
        let request = sent.correcting(&json!({"tracking_number": number}));
        keyed(request, number).send().await
    };
    let first = correct("BBBB2").await.expect(200);
    correct("CCCC3").await.expect(200);
    let again = correct("BBBB2").await.expect(200);
    assert!(again.is_replayed() && again.bytes == first.bytes);
    assert_eq!(sent.told().await, (3, 2));
    // A refusal is not remembered: it is decided anew.
    sent.world.order_moved(&sent.order.id, "delivery").await;
    for _ in 0..2 {
        let late = correct("DDDD4").await;
        late.is_problem(409, &[whole("shipment_locked")]);
    }
}

#[tokio::test]
async fn three_of_ten_concurrent_corrections_are_made() {
    let sent = Sent::new().await;
    let requests = (0..10).map(|n| sent.correcting(&json!({"tracking_number": format!("NEW-{n}")})));
    let answers = at_once(requests).await;
    assert_eq!((count_of(&answers, 200), count_of(&answers, 409)), (3, 7));
    assert_eq!(sent.told().await, (4, 3));
}

#[tokio::test]
async fn no_mail_goes_to_the_buyer_of_a_test_order_or_to_one_who_was_erased() {
    let (world, trader, _) = world_of_trade().await;
    let test = Sent::of(world, trader, json!({"is_test": true})).await;
    test.correct(json!({"carrier": "ups"})).await.expect(200);
    assert_eq!(test.told().await, (0, 1));
    let sent = Sent::of(test.world, test.trader, json!({})).await;
    sent.world.order_moved(&sent.order.id, "buyer-erasure").await;
    let corrected = sent.correct(json!({"carrier": "ups"})).await.expect(200).json();
    assert_members(&corrected, json!({"carrier": "ups", "buyer_notified": true}));
    assert_eq!(sent.told().await, (0, 1));
}
