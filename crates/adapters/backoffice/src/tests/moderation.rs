//! Moderation, and the pricing engine's price.

use ::offers::{Price, PriceSource};
use kernel::{Money, OfferId, SellerId};
use serde_json::json;

use super::fixture::{Office, uuid};

const PRICE: &str = r#"{"price": {"amount": 500, "currency": "PLN"}}"#;

#[actix_web::test]
async fn each_decision_leads_to_its_status_and_repeating_saves_nothing() {
    let (office, seller) = Office::with_seller().await;
    let offer = office.with_offer(&seller, 7, None, None).await;
    let path = format!("/sellers/{seller}/offers/{offer}/moderation");
    for (decision, status) in [
        ("propose", "proposed"),
        ("reject", "rejected"),
        ("approve", "published"),
    ] {
        let body = json!({ "decision": decision }).to_string();
        for _ in 0..2 {
            let answer = office.post(&path, &body).await;
            assert_eq!(answer.status, 200);
            assert_eq!(answer.json()["status"], status);
            assert_eq!(answer.json()["price_source"], json!(null));
        }
    }
    assert_eq!(office.store.rows().saved, [1, 1, 1, 1]);
}

#[actix_web::test]
async fn only_known_decisions_over_known_offers() {
    let (office, seller) = Office::with_seller().await;
    let offer = office.with_offer(&seller, 7, None, None).await;
    let path = format!("/sellers/{seller}/offers/{offer}/moderation");
    for body in [r#"{"decision": "publish"}"#, r#"{"decision": null}"#, "{}"] {
        let answer = office.post(&path, body).await;
        assert_eq!(answer.errors(), "400 validation_error decision", "{body}");
    }
    for path in [
        format!("/sellers/{seller}/offers/{}/moderation", uuid(8)),
        format!("/sellers/{}/offers/{offer}/moderation", uuid(99)),
        format!("/sellers/{seller}/offers/7/moderation"),
    ] {
        let answer = office.post(&path, r#"{"decision": "approve"}"#).await;
        assert_eq!(answer.errors(), "404 not_found", "{path}");
    }
}

#[actix_web::test]
async fn the_engine_sets_prices_that_nobody_set_by_hand() {
    let (office, seller) = Office::with_seller().await;
    let offer = office.with_offer(&seller, 7, Some(1999), None).await;
    let path = format!("/sellers/{seller}/offers/{offer}/automatic-price");
    let answer = office.post(&path, PRICE).await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.json()["price"], json!({"amount": 500, "currency": "PLN"}));
    assert_eq!(answer.json()["price_source"], "automatic");
    let key: (SellerId, OfferId) = (seller.parse().unwrap(), offer.parse().unwrap());
    office.store.rows().offers.get_mut(&key).unwrap().price = Some(Price {
        money: Money::pln(700).unwrap(),
        source: PriceSource::Manual,
    });
    let manual = office.post(&path, PRICE).await;
    assert_eq!(manual.errors(), "409 price_is_manual price");
    let unpriced = office.with_offer(&seller, 8, None, None).await;
    let path = format!("/sellers/{seller}/offers/{unpriced}/automatic-price");
    assert_eq!(office.post(&path, PRICE).await.errors(), "422 no_price_row price");
    let wrong = office
        .post(&path, r#"{"price": {"amount": -1, "currency": "EUR"}}"#)
        .await;
    assert_eq!(
        wrong.errors(),
        "400 validation_error price.amount, validation_error price.currency"
    );
}
