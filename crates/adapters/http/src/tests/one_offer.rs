//! `GET /v1/offers/{id}`

use super::fixture::{Answered, Fixture, OFFER, offer, principal};

async fn read(query: &str) -> Answered {
    let mut fixture = Fixture::admitting(principal());
    fixture
        .offers
        .expect_offer()
        .once()
        .withf(|seller, id| *seller == principal().seller && id.to_string() == OFFER)
        .returning(|_, _| Ok(Some(offer())));
    fixture.get(&format!("/v1/offers/{query}")).await
}

#[actix_web::test]
async fn the_whole_offer() {
    let answered = read(OFFER).await;
    assert_eq!(answered.status, 200);
    insta::assert_snapshot!(answered.text(), @r#"{"id":"0197a5c4-8b1e-7c3a-9d2f-4e5b6a7c8d9e","title":"Czajnik \"Żółw\"","handle":"czajnik-zolw","status":"published","price":{"amount":19900,"currency":"PLN"},"stock":7,"ean":"5901234123457","brand":null,"signature":null,"thumbnail":null,"url":"https://shop.example/p/czajnik-zolw","created_at":"2023-11-14T22:13:20.000000Z","updated_at":"2023-11-14T22:13:20.000001Z"}"#);
}

#[actix_web::test]
async fn the_chosen_fields_in_the_contracts_order_and_always_the_id() {
    let answered = read(&format!("{OFFER}?fields=stock,price,stock")).await;
    let expected = format!(r#"{{"id":"{OFFER}","price":{{"amount":19900,"currency":"PLN"}},"stock":7}}"#);
    assert_eq!(answered.text(), expected);
    let answered = read(&format!("{OFFER}?fields=id")).await;
    assert_eq!(answered.text(), format!(r#"{{"id":"{OFFER}"}}"#));
}

#[actix_web::test]
async fn an_id_may_be_percent_encoded() {
    assert_eq!(read(&OFFER.replace('-', "%2D")).await.status, 200);
}

#[actix_web::test]
async fn an_offer_that_is_not_there_is_not_found() {
    let mut fixture = Fixture::admitting(principal());
    fixture.offers.expect_offer().once().returning(|_, _| Ok(None));
    let answered = fixture.get(&format!("/v1/offers/{OFFER}")).await;
    assert_eq!(answered.refusal(), (404, "not_found".to_owned()));
}

#[actix_web::test]
async fn what_can_be_no_id_is_not_found_without_asking_the_store() {
    for id in [
        "17",
        "%",
        "%zz",
        "%00",
        "a%2Fb",
        "..",
        &OFFER.to_uppercase(),
        &format!("{OFFER}%00"),
        &OFFER.replace('-', ""),
    ] {
        let answered = Fixture::admitting(principal())
            .get(&format!("/v1/offers/{id}"))
            .await;
        assert_eq!(answered.refusal(), (404, "not_found".to_owned()), "{id}");
    }
}

#[actix_web::test]
async fn a_bad_query_is_told_before_a_missing_offer() {
    let answered = Fixture::admitting(principal())
        .get("/v1/offers/17?fields=x&limit=1")
        .await;
    assert_eq!(answered.paths(), ["fields", "limit"]);
}
