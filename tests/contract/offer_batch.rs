//! `POST /v1/offers/batch`: many changes, each made whole or not at all, and answered together.

use blackbox::{Expect, Trader, World, all_invalid, assert_members, items, keyed, offer_id, text};
use serde_json::{Value, json};
use testkit::{Answer, Request};

use crate::world_of_trade;

fn batch(world: &World, trader: &Trader, items: &Value) -> Request {
    let request = world.at("POST", "/v1/offers/batch").bearer(&trader.token);
    request.json(&json!({"items": items}))
}

async fn send(world: &World, trader: &Trader, items: &Value) -> Answer {
    batch(world, trader, items).send().await
}

fn statuses(answer: &Answer) -> Vec<u64> {
    let items = items(&answer.json()).to_vec();
    items
        .iter()
        .map(|item| item["http_status"].as_u64().unwrap())
        .collect()
}

#[tokio::test]
async fn each_item_is_answered_as_a_single_change_would_be() {
    let (world, trader, first) = world_of_trade().await;
    let read = async |offer: &str| world.read(&trader.token, &format!("/v1/offers/{offer}")).await;
    let unpriced = world
        .any_offer(&trader.seller, json!({"price": null, "stock": null}))
        .await;
    let locked = world
        .any_offer(&trader.seller, json!({"status": "rejected", "stock": 1}))
        .await;
    let others = world.any_offer(&world.seller().await, json!({})).await;
    let kept = world.any_offer(&trader.seller, json!({"stock": 5})).await;
    let price = json!({"amount": 4_200, "currency": "PLN"});
    let before = read(&kept).await;
    let sent = json!([
        {"id": first, "price": price, "stock": 4},
        {"id": unpriced, "price": price, "stock_adjustment": 1},
        {"id": others, "stock": 1},
        {"id": "of no offer", "stock": 1},
        {"id": locked, "stock_adjustment": -2, "status": "draft"},
        {"id": kept, "stock": 6, "if_match": "\"other\""},
    ]);
    let answer = send(&world, &trader, &sent).await.expect(200);
    assert_eq!(statuses(&answer), [200, 422, 404, 404, 422, 412]);
    let answered = answer.json();
    let answered = items(&answered);
    assert_eq!(answered[0]["offer"], read(&first).await);
    assert_eq!(answered[0]["errors"], Value::Null);
    assert_members(&answered[0]["offer"], json!({"price": price, "stock": 4}));
    assert_eq!(answered[5]["offer"], before);
    assert_eq!(read(&kept).await, before);
    for (n, sent) in items(&json!({"items": sent})).iter().enumerate() {
        assert_eq!(answered[n]["id"], sent["id"]);
        if n == 0 {
            continue;
        }
        // The same entries as those of a single change.
        let (id, tag) = (text(sent, "id"), sent["if_match"].as_str());
        let mut change = sent.clone();
        change
            .as_object_mut()
            .unwrap()
            .retain(|name, _| !["id", "if_match"].contains(&name.as_str()));
        let single = world.patching(&trader.token, &id.replace(' ', "%20"), &change);
        let single = match tag {
            Some(tag) => single.header("if-match", tag),
            None => single,
        };
        let single = single.send().await;
        assert_eq!(answered[n]["errors"], single.json()["errors"]);
        assert_eq!(answered[n]["http_status"], single.status);
        assert_eq!(answered[n]["offer"].is_null(), single.status != 412);
    }
    assert_eq!(world.stock(&trader.seller, &locked).await, 1);
    // A tag that matches, `*`, and fields of the offers.
    let again = json!([
        {"id": kept, "stock": 7, "if_match": before["etag"]},
        {"id": first, "status": "draft", "if_match": "*"},
    ]);
    let path = "/v1/offers/batch?fields=stock";
    let request = world.at("POST", path).bearer(&trader.token);
    let answer = request.json(&json!({"items": again})).send().await.expect(200);
    let expected = json!({"items": [
        {"id": kept, "http_status": 200, "offer": {"id": kept, "stock": 7}, "errors": null},
        {"id": first, "http_status": 200, "offer": {"id": first, "stock": 4}, "errors": null},
    ]});
    assert_eq!(answer.json(), expected);
}

#[tokio::test]
async fn a_malformed_item_refuses_the_whole_request() {
    let (world, trader, offer) = world_of_trade().await;
    let good = json!({"id": offer, "stock": 1});
    let table = r#"
        {"stock": 1}                                            => items[1].id
        {"id": 5, "stock": 1}                                   => items[1].id
        {"id": "a"}                                             => items[1]
        {"id": "a", "if_match": "*"}                            => items[1]
        {"id": "a", "stock": 1, "if_match": "a, b"}             => items[1].if_match
        {"id": "a", "stock": 1, "if_match": null}               => items[1].if_match
        {"id": "a", "stock": 1, "stock_adjustment": 1}          => items[1].stock_adjustment
        {"id": "a", "stock_adjustment": 0}                      => items[1].stock_adjustment
        {"id": "a", "price": {"amount": -1, "currency": "PLN"}} => items[1].price.amount
        {"id": "a", "price": 1, "stock": 1, "stock_adjustment": 1} => items[1].price items[1].stock_adjustment
        {"id": "a", "stock": 1, "title": "b"}                   => items[1].title
        {"id": "a", "status": "rejected", "stock": null}        => items[1].stock items[1].status
        null                                                    => items[1]"#;
    all_invalid(table, async |item| {
        let item: Value = item.parse().unwrap();
        send(&world, &trader, &json!([good, item])).await
    })
    .await;
    let twice = json!([good, {"id": "a", "stock": 1}, good, {"id": "a", "status": "draft"}]);
    send(&world, &trader, &twice)
        .await
        .invalid("items[2].id items[3].id");
    let both = json!([good, {"id": "a", "stock": -1}, good]);
    send(&world, &trader, &both)
        .await
        .invalid("items[1].stock items[2].id");
    let many = |count| -> Value {
        (0..count)
            .map(|n| json!({"id": offer_id(n), "stock": 1}))
            .collect()
    };
    for items in [many(0), many(101), json!({}), Value::Null] {
        send(&world, &trader, &items).await.invalid("items");
    }
    let most = send(&world, &trader, &many(100)).await.expect(200);
    assert_eq!(statuses(&most).len(), 100);
}

#[tokio::test]
async fn a_repeat_gets_the_whole_answer_and_changes_nothing() {
    let (world, trader, _) = world_of_trade().await;
    let mut sent = Vec::new();
    for _ in 0..100 {
        let offer = world.any_offer(&trader.seller, json!({"stock": 9})).await;
        sent.push(json!({"id": offer, "stock_adjustment": -5}));
    }
    sent[50] = json!({"id": "absent", "stock": 1});
    let repeated = || keyed(batch(&world, &trader, &json!(sent)), "one-batch").send();
    let first = repeated().await.expect(200);
    let again = repeated().await.expect(200);
    assert!(again.is_replayed() && !first.is_replayed());
    assert_eq!(again.bytes, first.bytes);
    for item in [0, 49, 51, 99] {
        assert_eq!(world.stock(&trader.seller, &text(&sent[item], "id")).await, 4);
    }
    let sold = text(&sent[0], "id");
    assert_eq!(world.count_in_feed("offer.stock_changed", &sold).await, 1);
}
