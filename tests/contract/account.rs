//! `GET /v1/me`: a token's seller, application and scopes.

use blackbox::{all_invalid, sorted, text};
use serde_json::json;

use crate::world;

#[tokio::test]
async fn me_shows_an_access_tokens_seller_application_scopes_and_expiry() {
    let world = world().await;
    world.stop_clock("2040-01-01T12:00:30.000001Z").await;
    let seller = world.seller().await;
    let app = world.application(&seller, &["offers:write", "messaging"]).await;
    let me = world.read(&world.token(&app).await, "/v1/me").await;
    assert_eq!(sorted(&me["scopes"]), ["messaging", "offers:write"]);
    let expected = json!({
        "seller": {"id": seller.id, "seller_no": seller.seller_no},
        "seller_name": "Kettles & Co",
        "app": {"client_id": app.client_id, "name": app.name},
        "scopes": me["scopes"],
        "token": {"kind": "access", "expires_at": "2040-01-02T00:00:30.000001Z"},
    });
    assert_eq!(me, expected);
    assert!(app.client_id.starts_with("psa_") && app.client_secret.starts_with("pss_"));
}

#[tokio::test]
async fn a_personal_token_has_a_built_in_application_and_may_not_expire() {
    let world = world().await;
    world.stop_clock("2040-01-01T12:00:30Z").await;
    let seller = world.seller().await;
    let lasting = world.personal_token(&seller, &["offers:read"]).await.token;
    assert!(lasting.starts_with("ps_pt_"));
    let me = world.read(&lasting, "/v1/me").await;
    assert_eq!(me["token"], json!({"kind": "personal", "expires_at": null}));
    let shown = json!({"id": seller.id, "seller_no": seller.seller_no});
    assert_eq!(me["seller"], shown);
    assert!(text(&me["app"], "client_id").starts_with("psa_") && !text(&me["app"], "name").is_empty());
    let ending = world.issuing(&seller, json!({"expires_at": "2040-01-01T14:00:30.5+01:00"}));
    let made = ending.send().await.expect(201).json();
    let ending = world.read(&text(&made, "token"), "/v1/me").await;
    let token = json!({"kind": "personal", "expires_at": "2040-01-01T13:00:30.500000Z"});
    assert_eq!((&ending["token"], &ending["app"]), (&token, &me["app"]));
    let (_, other) = world.reader().await;
    assert_ne!(world.read(&other, "/v1/me").await["app"], me["app"]);
}

#[tokio::test]
async fn fields_are_selected_and_no_other_parameter_is_known() {
    let world = world().await;
    let (_, token) = world.reader().await;
    let whole = world.read(&token, "/v1/me").await;
    let some = world.read(&token, "/v1/me?fields=token,app,token").await;
    assert_eq!(some, json!({"token": whole["token"], "app": whole["app"]}));
    let table = "
        fields=            => fields
        fields=nothing     => fields
        fields=seller.id   => fields
        fields=id          => fields
        limit=1            => limit
        x=1&fields=nothing => fields x";
    let get = async |query: &str| world.get(&token, &format!("/v1/me?{query}")).await;
    all_invalid(table, get).await;
}
