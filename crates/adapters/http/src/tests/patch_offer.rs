//! `PATCH /v1/offers/{id}`: what it changes and what it answers.

use offers::{OfferEvent, PriceSource, SellerStatus};

use super::fixture::{Answered, Fixture, OFFER, offer};
use super::trade::{Notes, finding, later, patch};

/// Patches the offer; gives the answer and what was saved.
async fn patched(body: &str) -> (Answered, Vec<String>) {
    let (notes, seen) = (Notes::default(), Notes::default());
    let mut transaction = finding(Some(offer()));
    transaction.expect_save_offers().returning({
        let notes = notes.clone();
        move |_, changes| {
            for change in changes {
                let (price, events) = (change.after.price.unwrap(), change.events);
                let manual = price.source == PriceSource::Manual;
                let moved = change.after.updated_at == later();
                let amount = price.money.amount();
                notes.add(format!(
                    "{amount} manual={manual} moved={moved} {}",
                    names(&events)
                ));
            }
            Ok(())
        }
    });
    transaction.expect_commit().once().returning({
        let seen = seen.clone();
        move || {
            seen.add("committed");
            Ok(())
        }
    });
    let answered = Fixture::writing()
        .transactions(vec![transaction])
        .send(patch(body))
        .await;
    assert_eq!(answered.status, 200, "{}", answered.text());
    assert_eq!(seen.all(), ["committed"]);
    (answered, notes.all())
}

fn names(events: &[OfferEvent]) -> String {
    let name = |event: &OfferEvent| match event {
        OfferEvent::PriceChanged { .. } => "price",
        OfferEvent::StockChanged { .. } => "stock",
        OfferEvent::StatusChanged { .. } => "status",
        OfferEvent::Rejected { .. } => "rejected",
    };
    events.iter().map(name).collect::<Vec<_>>().join(",")
}

#[actix_web::test]
async fn all_that_is_sent_changes_and_the_whole_offer_comes_back() {
    let body = r#"{"price":{"amount":17900,"currency":"PLN"},"stock":0,"status":"draft"}"#;
    let (answered, saved) = patched(body).await;
    assert_eq!(saved, ["17900 manual=true moved=true price,stock,status"]);
    insta::assert_snapshot!(answered.text(), @r#"{"id":"0197a5c4-8b1e-7c3a-9d2f-4e5b6a7c8d9e","title":"Czajnik \"Żółw\"","handle":"czajnik-zolw","status":"draft","price":{"amount":17900,"currency":"PLN"},"stock":0,"ean":"5901234123457","brand":null,"signature":null,"thumbnail":null,"url":"https://shop.example/p/czajnik-zolw","created_at":"2023-11-14T22:13:20.000000Z","updated_at":"2023-11-15T01:13:20.000000Z"}"#);
    assert_eq!(answered.header("x-ratelimit-remaining"), Some("597"));
    assert_eq!(answered.header("cache-control"), Some("no-store"));
    assert_eq!(answered.header("idempotent-replayed"), None);
}

#[actix_web::test]
async fn what_is_not_sent_stays() {
    let (answered, saved) = patched(r#"{"stock":2147483647}"#).await;
    assert_eq!(saved, ["19900 manual=true moved=true stock"]);
    let json = answered.json();
    assert_eq!(
        (&json["stock"], &json["status"], &json["price"]["amount"]),
        (&2_147_483_647_i64.into(), &"published".into(), &19_900.into())
    );
}

#[actix_web::test]
async fn the_same_again_is_fine_and_moves_nothing() {
    let same = r#"{"price":{"currency":"PLN","amount":19900},"stock":7,"status":"published"}"#;
    let (answered, saved) = patched(same).await;
    assert!(saved.is_empty());
    assert_eq!(answered.json()["updated_at"], "2023-11-14T22:13:20.000001Z");
}

#[actix_web::test]
async fn the_answer_takes_fields_and_the_id_any_escape() {
    let url = format!("/v1/offers/{}?fields=stock", OFFER.replace('-', "%2d"));
    let mut transaction = finding(Some(offer()));
    transaction.expect_save_offers().returning(|_, _| Ok(()));
    transaction.expect_commit().returning(|| Ok(()));
    let answered = Fixture::writing()
        .transactions(vec![transaction])
        .send(patch(r#"{"stock":1}"#).uri(&url))
        .await;
    assert_eq!(answered.text(), format!(r#"{{"id":"{OFFER}","stock":1}}"#));
}

#[actix_web::test]
async fn both_statuses_of_a_seller_are_taken() {
    for status in SellerStatus::ALL {
        let status = status.status().as_str();
        let (answered, _) = patched(&format!(r#"{{"status":"{status}"}}"#)).await;
        assert_eq!(answered.json()["status"], status);
    }
}
