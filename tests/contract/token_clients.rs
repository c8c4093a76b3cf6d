//! `POST /oauth/token`: how clients authenticate, and which clients are accepted.

use blackbox::Expect;
use serde_json::json;

use crate::token_endpoint::{asking, basic, credentials, form, form_with_basic, proper};
use crate::world_of_consent;

const GRANT: &str = "grant_type=client_credentials";

#[tokio::test]
async fn basic_and_body_credentials_are_accepted_but_not_together() {
    let world = world_of_consent().await;
    let seller = world.seller().await;
    let one = world.application(&seller, &["offers:read"]).await;
    let other = world.application(&seller, &["offers:read"]).await;
    let plain = credentials(&one);
    form(&world, &proper(&one)).await.expect(200);
    let lower_case = basic(&plain).replace("Basic", "basic");
    let request = asking(&world).header("authorization", &lower_case);
    // Only a refresh may be repeated under a key: another grant does not look at it.
    let keyed = request.header("idempotency-key", "short");
    keyed.form(GRANT).send().await.expect(200);
    let as_json = asking(&world).header("authorization", &basic(&plain));
    let as_json = as_json.json(&json!({"grant_type": "client_credentials"}));
    as_json.send().await.expect(200);
    // Libraries that follow RFC 6749 §2.3.1 strictly encode every `_` and `-`.
    let encoded = plain.replace('_', "%5F").replace('-', "%2D");
    let with_the_same_id = format!("{GRANT}&client_id={}", one.client_id);
    for credentials in [&plain, &encoded] {
        for body in [
            GRANT,
            &with_the_same_id,
            &format!("{GRANT}&client_id=&client_secret="),
        ] {
            form_with_basic(&world, credentials, body).await.expect(200);
        }
    }
    let broken = form_with_basic(&world, &format!("{plain}%5"), GRANT).await;
    broken.oauth_error(401, "invalid_client");
    // Both methods in one request are invalid.
    for body in [
        proper(&one),
        format!("{GRANT}&client_secret={}", one.client_secret),
        format!("{GRANT}&client_id={}", other.client_id),
    ] {
        let answer = form_with_basic(&world, &plain, &body).await;
        answer.oauth_error(400, "invalid_request");
    }
    // Authentication is checked before the scope.
    let body = format!("{GRANT}&scope=nothing");
    let nobody = form_with_basic(&world, "psa_nobody:x", &body).await;
    nobody.oauth_error(401, "invalid_client");
    let somebody = form_with_basic(&world, &plain, &body).await;
    somebody.oauth_error(400, "invalid_scope");
}

#[tokio::test]
async fn wrong_or_missing_credentials_are_invalid_client() {
    let world = world_of_consent().await;
    let seller = world.seller().await;
    let one = world.application(&seller, &["offers:read"]).await;
    let other = world.application(&seller, &["offers:read"]).await;
    let public = world.register(&seller, json!({"client_type": "public"})).await;
    assert_eq!(public.client_secret, "");
    let (id, secret) = (&one.client_id, &one.client_secret);
    for body in [
        String::new(),
        format!("client_id={id}"),
        format!("client_id={id}&client_secret={}", other.client_secret),
        format!("client_id=psa_nobody&client_secret={secret}"),
        // A public client has no client credentials.
        format!("client_id={}", public.client_id),
    ] {
        let answer = form(&world, &format!("{GRANT}&{body}")).await;
        answer.oauth_error(401, "invalid_client");
    }
    let in_the_url = format!("/oauth/token?client_id={id}&client_secret={secret}");
    let in_the_url = world.at("POST", &in_the_url).form(GRANT).send().await;
    in_the_url.oauth_error(401, "invalid_client");
    for header in [
        basic(&format!("{id}:{}", other.client_secret)),
        basic(&format!("{id}:")),
        basic(id),
        "Basic ???".to_owned(),
    ] {
        let request = asking(&world).header("authorization", &header);
        let answer = request.form(GRANT).send().await;
        assert_eq!(answer.status, 401, "{header}");
        answer.oauth_error(401, "invalid_client");
        assert!(answer.must("www-authenticate").starts_with("Basic"), "{answer:?}");
    }
}
