//! Personal tokens that the marketplace issues.

use blackbox::{Expect, Seller, all_invalid, at_once, count_of, text, whole};
use chrono::TimeDelta;
use serde_json::json;

use crate::world;

#[tokio::test]
async fn every_field_is_validated() {
    let world = world().await;
    world.stop_clock("2040-01-01T12:00:00Z").await;
    let seller = world.seller().await;
    let table = r#"
        {"name": "", "scopes": []}                  => name scopes
        {"name": "LONG", "scopes": ["nothing"]}     => name scopes[0]
        {"scopes": "offers:read"}                   => scopes
        {"expires_at": "2040-01-01T12:00:00Z"}      => expires_at
        {"expires_at": "2041-01-01T00:00:00"}       => expires_at
        {"expires_at": 2556144000}                  => expires_at
        {"expires_at": "9999-12-31T23:59:59-00:01"} => expires_at
        {"seller": "y"}                             => seller"#;
    let issue = async |changes: &str| world.issuing(&seller, changes.parse().unwrap()).send().await;
    all_invalid(&table.replace("LONG", &"x".repeat(101)), issue).await;
    let path = format!("/sellers/{}/personal-tokens", seller.id);
    world.office_post(&path, &json!({})).await.invalid("name scopes");
    let made =
        issue(r#"{"scopes": ["billing:read", "messaging", "billing:read"], "expires_at": null}"#).await;
    let made = made.expect(201).json();
    assert_eq!(made.as_object().unwrap().len(), 2, "{made}");
    assert!(text(&made, "token").starts_with("ps_pt_"));
    let me = world.read(&text(&made, "token"), "/v1/me").await;
    assert_eq!(me["scopes"].as_array().unwrap().len(), 2);
    let soon = issue(r#"{"expires_at": "2040-01-01T12:00:00.000001Z"}"#).await;
    soon.expect(201);
}

#[tokio::test]
async fn a_seller_may_have_twenty_valid_tokens() {
    let world = world().await;
    let clock = world.stop_clock("2040-01-01T12:00:00Z").await;
    let (seller, other) = (world.seller().await, world.seller().await);
    let ending = world.issuing(&seller, json!({"expires_at": "2040-01-01T12:00:10Z"}));
    ending.send().await.expect(201);
    let made = world.personal_token(&seller, &["offers:read"]).await;
    // Also with concurrent requests.
    let issuing = || world.issuing(&seller, json!({}));
    let answers = at_once((0..30).map(|_| issuing())).await;
    assert_eq!((count_of(&answers, 201), count_of(&answers, 409)), (18, 12));
    // Expired and revoked tokens free a place, each for its seller only.
    let one_more = async || {
        issuing().send().await.expect(201);
        let full = issuing().send().await;
        full.is_problem(409, &[whole("conflict")]);
    };
    clock.advance(TimeDelta::seconds(10)).await;
    one_more().await;
    let path = |seller: &Seller| format!("/sellers/{}/personal-tokens/{}", seller.id, made.id);
    let anothers = world.office_delete(&path(&other)).await;
    anothers.refused(404, "not_found");
    assert!(world.works(&made.token).await);
    let answer = world.office_delete(&path(&seller)).await.expect(204);
    assert!(answer.bytes.is_empty());
    let logged = "select count(*) from audit_log where actor = 'operator' and subject = $1
        and action in ('personal_token.made', 'personal_token.revoked')";
    assert_eq!(world.count(logged, &[&made.id]).await, 2);
    one_more().await;
    world.personal_token(&other, &["offers:read"]).await;
}

#[tokio::test]
async fn a_seller_whose_personal_tokens_are_suspended_gets_no_other() {
    let world = world().await;
    let seller = world.seller().await;
    let token = world.personal_token(&seller, &["offers:read"]).await.token;
    let me = world.read(&token, "/v1/me").await;
    let application = me["app"]["client_id"].as_str().unwrap();
    let moved = async |to: &str| {
        let path = format!("/applications/{application}/{to}");
        world.office_post(&path, &json!({})).await.expect(200);
    };
    let path = format!("/applications/{application}");
    let undeletable = world.office_delete(&path).await;
    undeletable.is_problem(409, &[whole("conflict")]);
    moved("suspension").await;
    assert!(!world.works(&token).await);
    let issuing = || world.issuing(&seller, json!({})).send();
    issuing().await.is_problem(409, &[whole("conflict")]);
    moved("reinstatement").await;
    assert!(world.works(&token).await);
    issuing().await.expect(201);
}
