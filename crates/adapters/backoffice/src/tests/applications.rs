//! Applications: registered, moved, adjusted, deleted.

use actix_web::http::Method;
use serde_json::{Value, json};

use super::fixture::{Answer, Office, uuid};

fn registration() -> Value {
    json!({
        "name": "Stock Sync", "documentation_url": "https://docs.example", "purpose": "for_other_sellers",
        "client_type": "confidential", "redirect_uris": ["https://app.example/cb"],
        "scopes": ["orders:read", "offers:read"], "accept_terms": true,
    })
}

async fn register(office: &Office, seller: &str, body: &Value) -> Answer {
    office
        .post(&format!("/sellers/{seller}/applications"), &body.to_string())
        .await
}

/// An office with a pending application, and its path.
async fn with_application() -> (Office, String) {
    let (office, seller) = Office::with_seller().await;
    let answer = register(&office, &seller, &registration()).await;
    let path = format!("/applications/{}", answer.json()["client_id"].as_str().unwrap());
    (office, path)
}

#[actix_web::test]
async fn a_registration_is_answered_with_its_id_secret_and_status() {
    let (office, seller) = Office::with_seller().await;
    let answer = register(&office, &seller, &registration()).await;
    assert_eq!(answer.status, 201);
    let body = answer.json();
    assert!(body["client_id"].as_str().unwrap().starts_with("psa_"));
    assert!(body["client_secret"].as_str().unwrap().starts_with("pss_"));
    assert_eq!(body["status"], "pending");
    let mut public = registration();
    public["name"] = json!("Price Watch");
    public["client_type"] = json!("public");
    public["purpose"] = json!("own_use");
    public.as_object_mut().unwrap().remove("redirect_uris");
    let body = register(&office, &seller, &public).await.json();
    assert_eq!(
        (&body["client_secret"], &body["status"]),
        (&Value::Null, &json!("active"))
    );
}

#[actix_web::test]
async fn the_rules_of_the_panel_hold_and_all_that_breaks_them_is_reported() {
    let (office, seller) = Office::with_seller().await;
    let wrong = json!({
        "name": 5, "documentation_url": "http://x", "purpose": "fun", "client_type": "x",
        "redirect_uris": ["https://localhost/"], "scopes": ["offers:read", "no:such"], "accept_terms": false, "x": 1,
    });
    let fields = [
        "name",
        "documentation_url",
        "purpose",
        "client_type",
        "redirect_uris[0]",
        "scopes[1]",
        "accept_terms",
        "x",
    ];
    let expected = fields.map(|field| format!("validation_error {field}")).join(", ");
    assert_eq!(
        register(&office, &seller, &wrong).await.errors(),
        format!("400 {expected}")
    );
    let all = [
        "name",
        "documentation_url",
        "purpose",
        "client_type",
        "scopes",
        "accept_terms",
    ];
    let expected = all.map(|field| format!("validation_error {field}")).join(", ");
    assert_eq!(
        register(&office, &seller, &json!({})).await.errors(),
        format!("400 {expected}")
    );
}

#[actix_web::test]
async fn a_name_is_taken_for_good_and_a_closed_account_registers_nothing() {
    let (office, seller) = Office::with_seller().await;
    let first = register(&office, &seller, &registration()).await.json();
    let path = format!("/applications/{}", first["client_id"].as_str().unwrap());
    assert_eq!(office.call(Method::DELETE, &path, "").await.status, 204);
    assert_eq!(
        office.call(Method::DELETE, &path, "").await.errors(),
        "404 not_found"
    );
    let mut same = registration();
    same["name"] = json!("STOCK SYNC");
    assert_eq!(
        register(&office, &seller, &same).await.errors(),
        "409 conflict name"
    );
    assert_eq!(
        register(&office, &uuid(99), &registration()).await.errors(),
        "404 not_found"
    );
    office.post(&format!("/sellers/{seller}/closure"), "").await;
    same["name"] = json!("Another");
    assert_eq!(register(&office, &seller, &same).await.errors(), "409 conflict");
}

#[actix_web::test]
async fn an_application_reads_back_without_its_secret() {
    let (office, path) = with_application().await;
    let answer = office.get(&path).await;
    assert_eq!(answer.status, 200);
    let mut body = answer.json();
    let object = body.as_object_mut().unwrap();
    assert_eq!(
        format!(
            "/applications/{}",
            object.remove("client_id").unwrap().as_str().unwrap()
        ),
        path
    );
    assert!(object.remove("seller_id").is_some());
    let expected = json!({
        "name": "Stock Sync", "description": null, "documentation_url": "https://docs.example",
        "purpose": "for_other_sellers", "client_type": "confidential", "redirect_uris": ["https://app.example/cb"],
        "scopes": ["offers:read", "orders:read"], "status": "pending", "rate_limit": 600,
        "created_at": "2023-11-14T22:13:20.000000Z",
    });
    assert_eq!(body, expected);
}

#[actix_web::test]
async fn moves_follow_the_machine_and_may_be_repeated() {
    let (office, path) = with_application().await;
    for (step, outcome) in [
        ("suspension", Err("409 conflict")),
        ("reinstatement", Err("409 conflict")),
        ("acceptance", Ok("active")),
        ("acceptance", Ok("active")),
        ("reinstatement", Ok("active")),
        ("suspension", Ok("suspended")),
        ("suspension", Ok("suspended")),
        ("acceptance", Err("409 conflict")),
        ("reinstatement", Ok("active")),
    ] {
        let answer = office.post(&format!("{path}/{step}"), "").await;
        match outcome {
            Err(errors) => assert_eq!(answer.errors(), errors, "{step}"),
            Ok(status) => {
                assert_eq!(answer.status, 200, "{step}");
                assert_eq!(answer.json()["status"], status);
                assert_eq!(answer.json(), office.get(&path).await.json());
            }
        }
    }
    let nobody = format!("/applications/psa_{}", "0".repeat(32));
    for id in [nobody.as_str(), "/applications/psa_x"] {
        let answer = office.post(&format!("{id}/acceptance"), "").await;
        assert_eq!(answer.errors(), "404 not_found");
    }
}

#[actix_web::test]
async fn limit_and_scopes_are_set_together_or_each_by_itself() {
    let (office, path) = with_application().await;
    let patch = async |body: &str| office.call(Method::PATCH, &path, body).await;
    let both = patch(r#"{"rate_limit": 10000000, "scopes": ["messaging", "offers:read"]}"#).await;
    assert_eq!(both.status, 200);
    assert_eq!(both.json()["rate_limit"], 10_000_000);
    assert_eq!(both.json()["scopes"], json!(["offers:read", "messaging"]));
    let one = patch(r#"{"rate_limit": 1}"#).await.json();
    assert_eq!(
        (&one["rate_limit"], &one["scopes"]),
        (&json!(1), &json!(["offers:read", "messaging"]))
    );
    for (body, errors) in [
        ("{}", "400 validation_error"),
        (
            r#"{"rate_limit": 0, "scopes": []}"#,
            "400 validation_error rate_limit, validation_error scopes",
        ),
        (
            r#"{"rate_limit": 10000001, "scopes": ["offers:read", "x"], "name": "n"}"#,
            "400 validation_error rate_limit, validation_error scopes[1], validation_error name",
        ),
        (r#"{"rate_limit": "600"}"#, "400 validation_error rate_limit"),
    ] {
        assert_eq!(patch(body).await.errors(), errors, "{body}");
    }
    assert_eq!(office.get(&path).await.json()["rate_limit"], 1);
    let reset = patch(r#"{"rate_limit": null}"#).await.json();
    assert_eq!(
        (&reset["rate_limit"], &reset["scopes"]),
        (&json!(600), &json!(["offers:read", "messaging"]))
    );
}

#[actix_web::test]
async fn the_application_behind_personal_tokens_stays() {
    let (office, _) = Office::with_seller().await;
    let id = *office.store.rows().applications.keys().next().unwrap();
    let answer = office
        .call(Method::DELETE, &format!("/applications/{id}"), "")
        .await;
    assert_eq!(answer.errors(), "409 conflict");
}
