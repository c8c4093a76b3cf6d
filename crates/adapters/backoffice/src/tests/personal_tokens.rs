//! Personal tokens: issued and revoked.

use actix_web::http::Method;

use super::fixture::{Office, uuid};

#[actix_web::test]
async fn a_token_is_shown_once_and_revoked_by_its_id() {
    let (office, seller) = Office::with_seller().await;
    let path = format!("/sellers/{seller}/personal-tokens");
    let body =
        r#"{"name": "script", "scopes": ["offers:read", "messaging"], "expires_at": "2023-11-14T22:13:21Z"}"#;
    let issued = office.post(&path, body).await;
    assert_eq!(issued.status, 201);
    let body = issued.json();
    assert!(body["token"].as_str().unwrap().starts_with("ps_pt_"));
    let one = format!("{path}/{}", body["id"].as_str().unwrap());
    let theirs = one.replace(&seller, &uuid(99));
    assert_eq!(
        office.call(Method::DELETE, &theirs, "").await.errors(),
        "404 not_found"
    );
    let revoked = office.call(Method::DELETE, &one, "").await;
    assert_eq!((revoked.status.as_u16(), revoked.body.len()), (204, 0));
    assert_eq!(revoked.header("content-type"), "");
    let unknown = office.call(Method::DELETE, &format!("{path}/x"), "").await;
    assert_eq!(unknown.errors(), "404 not_found");
}

#[actix_web::test]
async fn the_twenty_first_is_a_conflict() {
    let (office, seller) = Office::with_seller().await;
    let path = format!("/sellers/{seller}/personal-tokens");
    let body = r#"{"name": "script", "scopes": ["offers:read"], "expires_at": null}"#;
    for _ in 0..20 {
        assert_eq!(office.post(&path, body).await.status, 201);
    }
    assert_eq!(office.post(&path, body).await.errors(), "409 conflict");
}

#[actix_web::test]
async fn rules_are_reported_with_their_paths() {
    let (office, seller) = Office::with_seller().await;
    let path = format!("/sellers/{seller}/personal-tokens");
    for (body, errors) in [
        (
            r#"{"name": " ", "scopes": ["x"], "expires_at": "tomorrow", "y": 1}"#,
            "400 validation_error name, validation_error scopes[0], validation_error expires_at, validation_error y",
        ),
        ("{}", "400 validation_error name, validation_error scopes"),
        (
            r#"{"name": 1, "scopes": []}"#,
            "400 validation_error name, validation_error scopes",
        ),
        (
            r#"{"name": "n", "scopes": ["offers:read"], "expires_at": "2023-11-14T22:13:20Z"}"#,
            "400 validation_error expires_at",
        ),
    ] {
        assert_eq!(office.post(&path, body).await.errors(), errors, "{body}");
    }
    let good = r#"{"name": "n", "scopes": ["offers:read"]}"#;
    let nobody = format!("/sellers/{}/personal-tokens", uuid(99));
    assert_eq!(office.post(&nobody, good).await.errors(), "404 not_found");
    office.post(&format!("/sellers/{seller}/closure"), "").await;
    assert_eq!(office.post(&path, good).await.errors(), "409 conflict");
}
