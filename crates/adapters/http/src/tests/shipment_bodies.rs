//! `POST /v1/orders/{id}/shipments`: what is wrong with a body, with the shape of it or with what it names.

use super::fixture::{Answered, Fixture, OFFER};
use super::trade::{SHIPMENTS, paid, post, unpaid};

async fn send(body: &str) -> Answered {
    Fixture::writing().send(post(SHIPMENTS, body)).await
}

fn with_items(items: &str) -> String {
    format!(r#"{{"carrier":"dpd","tracking_number":"ABCD","item_ids":{items}}}"#)
}

#[actix_web::test]
async fn each_field_has_its_rule() {
    let number = |number: &str| format!(r#"{{"carrier":"dpd","tracking_number":{number}}}"#);
    let carrier = |carrier: &str| format!(r#"{{"carrier":{carrier},"tracking_number":"ABCD"}}"#);
    let long = format!("\"{}\"", "x".repeat(65));
    for (body, paths) in [
        ("{}".to_owned(), vec!["carrier", "tracking_number"]),
        (carrier("null"), vec!["carrier"]),
        (carrier("\"InPost\""), vec!["carrier"]),
        (carrier("\"fed_ex\""), vec!["carrier"]),
        (carrier("17"), vec!["carrier"]),
        (number("null"), vec!["tracking_number"]),
        (number("1234"), vec!["tracking_number"]),
        (number("\"\""), vec!["tracking_number"]),
        (number("\"ABC\""), vec!["tracking_number"]),
        (number("\" ABCD\""), vec!["tracking_number"]),
        (number("\"AB CD\""), vec!["tracking_number"]),
        (number("\"AB_CD\""), vec!["tracking_number"]),
        (number("\"ABCD\\n\""), vec!["tracking_number"]),
        (number("\"ŻÓŁW\""), vec!["tracking_number"]),
        (number(&long), vec!["tracking_number"]),
        (with_items("null"), vec!["item_ids"]),
        (with_items("[]"), vec!["item_ids"]),
        (with_items("\"x\""), vec!["item_ids"]),
        (with_items("{}"), vec!["item_ids"]),
        (
            with_items(r#"["a",null,17,"a","b","b"]"#),
            vec!["item_ids[1]", "item_ids[2]", "item_ids[3]", "item_ids[5]"],
        ),
        (
            r#"{"x":1,"item_ids":[],"tracking_number":"","carrier":"","y":2}"#.to_owned(),
            vec!["carrier", "tracking_number", "item_ids", "x", "y"],
        ),
    ] {
        assert_eq!(send(&body).await.paths(), paths, "{body}");
    }
}

#[actix_web::test]
async fn at_most_1000_items_can_be_named() {
    let ids = |count: usize| {
        let ids: Vec<_> = (0..count).map(|n| format!("\"{n}\"")).collect();
        with_items(&format!("[{}]", ids.join(",")))
    };
    assert_eq!(send(&ids(1_001)).await.paths(), ["item_ids"]);
    // As many as can be named are looked at when the order is found, and at most 20 of them are told.
    let fixture = Fixture::writing().with_order(Some(paid()));
    let answered = fixture.send(post(SHIPMENTS, &ids(1_000))).await;
    assert_eq!(answered.paths().len(), 20);
}

#[actix_web::test]
async fn items_of_others_are_refused_once_the_order_is_found_and_before_its_state() {
    let body = with_items(&format!(
        r#"["{OFFER}","x","0197a5c4-8b1e-7c3a-9d2f-000000000000"]"#
    ));
    let absent = Fixture::writing().with_order(None);
    let answered = absent.send(post(SHIPMENTS, &body)).await;
    assert_eq!(answered.refusal(), (404, "not_found".to_owned()));
    for order in [unpaid(), paid()] {
        let fixture = Fixture::writing().with_order(Some(order));
        let answered = fixture.send(post(SHIPMENTS, &body)).await;
        assert_eq!(answered.paths(), ["item_ids[1]", "item_ids[2]"]);
        let message = answered.json()["errors"][0]["message"].clone();
        assert_eq!(message, "Must be one of your own items in this order.");
    }
}

#[actix_web::test]
async fn the_answer_takes_fields_of_a_shipment() {
    let url = format!("{SHIPMENTS}?fields=order_number");
    let answered = Fixture::writing().send(post(&url, "{}")).await;
    assert_eq!(answered.paths(), ["fields", "carrier", "tracking_number"]);
}
