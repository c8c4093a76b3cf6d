//! Sellers: registered, listed, read, closed.

use actix_web::http::Method;
use serde_json::{Value, json};

use super::fixture::{Office, uuid};

#[actix_web::test]
async fn a_new_seller_is_answered_with_its_id_and_number_and_reads_back_whole() {
    let office = Office::new();
    let body = r#"{"name": "Kettles", "email": "shop@example.com", "password": "correct horse"}"#;
    let answer = office.post("/sellers", body).await;
    assert_eq!(answer.status, 201);
    let id = answer.json()["id"].as_str().unwrap().to_owned();
    assert_eq!(answer.json(), json!({ "id": id, "seller_no": 1 }));
    let read = office.get(&format!("/sellers/{id}")).await;
    assert_eq!(read.status, 200);
    let expected = json!({
        "id": id,
        "seller_no": 1,
        "name": "Kettles",
        "email": "shop@example.com",
        "created_at": "2023-11-14T22:13:20.000000Z",
        "closed_at": null,
    });
    assert_eq!(read.json(), expected);
    let stored = office.store.rows().passwords.values().next().cloned().unwrap();
    assert_eq!(stored.as_deref(), Some("hash of correct horse"));
}

#[actix_web::test]
async fn a_seller_may_have_no_password() {
    for body in [
        r#"{"name": "Kettles", "email": "shop@example.com"}"#,
        r#"{"name": "Kettles", "email": "shop@example.com", "password": null}"#,
    ] {
        let office = Office::new();
        assert_eq!(office.post("/sellers", body).await.status, 201, "{body}");
        assert_eq!(office.store.rows().passwords.values().next(), Some(&None));
    }
}

#[actix_web::test]
async fn an_address_is_taken_without_regard_to_case() {
    let (office, _) = Office::with_seller().await;
    let again = office
        .post("/sellers", r#"{"name": "Pots", "email": "SHOP@example.com"}"#)
        .await;
    assert_eq!(again.errors(), "409 conflict email");
    assert_eq!(office.store.rows().sellers.len(), 1);
}

#[actix_web::test]
async fn everything_wrong_with_a_seller_is_reported() {
    let office = Office::new();
    for (body, errors) in [
        (
            r#"{"x": 1, "password": "123456789", "email": "e", "name": " "}"#,
            "400 validation_error name, validation_error email, validation_error password, validation_error x",
        ),
        (
            r#"{"name": 5, "password": null}"#,
            "400 validation_error name, validation_error email",
        ),
        ("[]", "400 validation_error"),
        (r#"{"name": "n", "name": "n"}"#, "400 validation_error"),
        ("{", "400 validation_error"),
    ] {
        assert_eq!(office.post("/sellers", body).await.errors(), errors, "{body}");
    }
    let long = format!(
        r#"{{"name": "n", "email": "a@b", "password": "{}"}}"#,
        "żą".repeat(65)
    );
    assert_eq!(
        office.post("/sellers", &long).await.errors(),
        "400 validation_error password"
    );
    assert!(office.store.rows().sellers.is_empty());
}

#[actix_web::test]
async fn a_list_is_read_page_by_page_without_an_empty_one_at_its_end() {
    let office = Office::new();
    for n in 1..=4 {
        let body = format!(r#"{{"name": "Shop {n}", "email": "{n}@example.com"}}"#);
        assert_eq!(office.post("/sellers", &body).await.status, 201);
    }
    let numbers = |page: &Value| -> Vec<i64> {
        let items = page["items"].as_array().unwrap();
        items
            .iter()
            .map(|seller| seller["seller_no"].as_i64().unwrap())
            .collect()
    };
    let first = office.get("/sellers?limit=2").await.json();
    assert_eq!(numbers(&first), [1, 2]);
    let next = first["next"].as_str().unwrap();
    let last = office.get(&format!("/sellers?limit=2&after={next}")).await.json();
    assert_eq!(numbers(&last), [3, 4]);
    assert_eq!(last["next"], Value::Null);
    assert_eq!(numbers(&office.get("/sellers").await.json()), [1, 2, 3, 4]);
    assert_eq!(numbers(&office.get("/sellers?limit=-7").await.json()), [1]);
}

#[actix_web::test]
async fn parameters_of_the_list_are_judged_together() {
    let office = Office::new();
    for after in ["", "x", "-1", "+1", "1.5", "99999999999"] {
        let answer = office
            .get(&format!("/sellers?after={after}&limit=x&colour=red"))
            .await;
        let errors = "400 validation_error limit, validation_error after, validation_error colour";
        assert_eq!(answer.errors(), errors, "{after}");
    }
}

#[actix_web::test]
async fn closing_is_answered_with_the_account_and_may_be_repeated() {
    let (office, id) = Office::with_seller().await;
    for body in ["", "{}", ""] {
        let answer = office.post(&format!("/sellers/{id}/closure"), body).await;
        assert_eq!(answer.status, 200);
        assert_eq!(answer.json()["closed_at"], "2023-11-14T22:13:20.000000Z");
    }
    let wrong = office
        .post(&format!("/sellers/{id}/closure"), r#"{"why": "x"}"#)
        .await;
    assert_eq!(wrong.errors(), "400 validation_error why");
}

#[actix_web::test]
async fn who_is_not_there_is_not_found() {
    let office = Office::new();
    for seller in [uuid(7), "7".to_owned(), uuid(0xabc).to_uppercase()] {
        let read = office.get(&format!("/sellers/{seller}")).await;
        assert_eq!(read.errors(), "404 not_found");
        let closed = office
            .call(Method::POST, &format!("/sellers/{seller}/closure"), "")
            .await;
        assert_eq!(closed.errors(), "404 not_found");
    }
}
