//! Forms of the Authorization header, and the contents of a 401 and a 403.

use blackbox::{Expect, offer_id};
use serde_json::json;

use crate::world;

/// Other wrong credentials are in the matrix of routes and credentials.
#[tokio::test]
async fn a_changed_or_malformed_token_is_401_with_a_challenge() {
    let world = world().await;
    let app = world.application(&world.seller().await, &["offers:read"]).await;
    let token = world.token(&app).await;
    let with = |value: &str| world.at("GET", "/v1/me").header("authorization", value).send();
    for scheme in ["Bearer", "bearer", "BEARER", "bEaReR"] {
        with(&format!("{scheme} {token}")).await.expect(200);
    }
    let mut answers = vec![world.visit("/v1/me").await];
    for changed in [
        token.to_uppercase(),
        token[..token.len() - 1].to_owned(),
        format!("{token}A"),
        format!("{token},"),
        format!("\"{token}\""),
        token.replace("ps_at_", "ps_rt_"),
        token.replace("ps_at_", "ps_pt_"),
        "ps_at_".to_owned(),
        "ps_at_żółw".to_owned(),
        format!("ps_at_{}", "A".repeat(4000)),
    ] {
        answers.push(with(&format!("Bearer {changed}")).await);
    }
    answers.push(with(&format!("Bearer{token}")).await);
    for answer in answers {
        answer.refused(401, "unauthorized");
        let challenge = answer.must("www-authenticate");
        let realm = challenge.strip_prefix("Bearer realm=\"").unwrap();
        let realm = realm.strip_suffix("\", error=\"invalid_token\"").unwrap();
        assert!(!realm.is_empty() && !realm.contains('"'), "{challenge}");
    }
}

#[tokio::test]
async fn a_missing_scope_is_named_in_message_and_challenge() {
    let world = world().await;
    let seller = world.seller().await;
    world.offer(&seller, 1, json!({})).await;
    let others = "offers:write orders:read shipments:write settings:read settings:write messaging";
    let others: Vec<_> = others.split(' ').collect();
    let token = world.personal_token(&seller, &others).await.token;
    for path in ["/v1/offers".to_owned(), format!("/v1/offers/{}", offer_id(1))] {
        let answer = world.get(&token, &path).await;
        answer.refused(403, "insufficient_scope");
        let message = &answer.json()["errors"][0]["message"];
        assert!(message.as_str().unwrap().contains("offers:read"), "{message}");
        let challenge = answer.must("www-authenticate");
        let end = "\", error=\"insufficient_scope\", scope=\"offers:read\"";
        let is_whole = challenge.starts_with("Bearer realm=\"") && challenge.ends_with(end);
        assert!(is_whole, "{challenge}");
    }
    world.get(&token, "/v1/me").await.expect(200);
}
