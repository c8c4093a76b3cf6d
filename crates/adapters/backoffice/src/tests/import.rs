//! The import over HTTP. What becomes of lines is tested with the importer.

use actix_web::http::Method;
use serde_json::{Value, json};

use super::fixture::{Answer, Office, authorized, uuid};

const TYPE: &str = "application/x-ndjson";

fn line(id: u128, title: &str) -> String {
    let id = uuid(id);
    format!(
        r#"{{"id":"{id}","title":"{title}","handle":"h","status":"draft","url":"https://shop.example/h"}}"#
    )
}

async fn import(office: &Office, seller: &str, content_type: &str, body: String) -> Answer {
    let request = authorized(Method::POST, &format!("/sellers/{seller}/offers:import"))
        .insert_header(("content-type", content_type))
        .set_payload(body);
    office.send(request).await
}

#[actix_web::test]
async fn good_lines_apply_though_others_are_rejected() {
    let (office, seller) = Office::with_seller().await;
    let body = [
        &line(1, "a"),
        "",
        "{",
        &line(2, "b"),
        &line(1, "c"),
        &line(1, "c"),
    ]
    .join("\r\n");
    let answer = import(&office, &seller, TYPE, body).await;
    assert_eq!(answer.status, 200);
    let mut report = answer.json();
    let rejected = report.as_object_mut().unwrap().remove("rejected").unwrap();
    assert_eq!(
        report,
        json!({"created": 2, "updated": 1, "unchanged": 1, "rejected_total": 1})
    );
    assert_eq!(rejected[0]["line"], 3);
    assert_eq!(rejected[0]["errors"][0]["code"], "validation_error");
    assert_eq!(rejected[0]["errors"][0].get("path"), None::<&Value>);
    let titles: Vec<_> = office
        .store
        .rows()
        .offers
        .values()
        .map(|offer| offer.title.clone())
        .collect();
    assert_eq!(titles, ["c", "b"]);
}

#[actix_web::test]
async fn the_body_may_be_of_any_size_and_empty_too() {
    let (office, seller) = Office::with_seller().await;
    let large: String = (0..20_000).map(|n| line(n, "a") + "\n").collect();
    assert!(large.len() > 2 * 1024 * 1024);
    let answer = import(&office, &seller, TYPE, large).await.json();
    assert_eq!(
        (&answer["created"], &answer["rejected"]),
        (&json!(20_000), &json!([]))
    );
    let none = import(&office, &seller, TYPE, String::new()).await;
    assert_eq!(none.status, 200);
    let nothing = json!({"created": 0, "updated": 0, "unchanged": 0, "rejected_total": 0, "rejected": []});
    assert_eq!(none.json(), nothing);
}

#[actix_web::test]
async fn only_a_bad_request_as_such_is_refused() {
    let (office, seller) = Office::with_seller().await;
    let good = line(1, "a");
    for content_type in ["application/ndjson", "Application/JSONL; charset=UTF-8"] {
        assert_eq!(
            import(&office, &seller, content_type, good.clone()).await.status,
            200
        );
    }
    for content_type in [
        "application/json",
        "text/plain",
        "application/x-ndjson; charset=latin1",
    ] {
        let answer = import(&office, &seller, content_type, good.clone()).await;
        assert_eq!(
            answer.errors(),
            "400 validation_error Content-Type",
            "{content_type}"
        );
    }
    let nobody = import(&office, &uuid(99), TYPE, good).await;
    assert_eq!(nobody.errors(), "404 not_found");
    let query = format!("/sellers/{seller}/offers:import?dry=1");
    let query = office
        .send(authorized(Method::POST, &query).insert_header(("content-type", TYPE)))
        .await;
    assert_eq!(query.errors(), "400 validation_error dry");
}

#[actix_web::test]
async fn a_store_that_is_away_is_a_500() {
    let (office, seller) = Office::with_seller().await;
    office.store.goes_away();
    let answer = import(&office, &seller, TYPE, line(1, "a")).await;
    assert_eq!(
        (answer.errors().as_str(), answer.header("retry-after")),
        ("500 internal_error", "1")
    );
}
