//! Forms of the Authorization header, and the contents of a 401 and a 403.

use blackbox::{Expect, offer_id};
use serde_json::json;

use crate::world;

#[tokio::test]
async fn whatever_is_no_living_token_is_401_with_a_challenge() {
    let world = world().await;
    let app = world.application(&world.seller().await, &["offers:read"]).await;
    let token = world.token(&app).await;
    let with = |value: &str| world.at("GET", "/v1/me").header("authorization", value).send();
    for scheme in ["Bearer", "bearer", "BEARER", "bEaReR"] {
        with(&format!("{scheme} {token}")).await.expect(200);
    }
    let bad = [
        String::new(),
        "Bearer".to_owned(),
        "Bearer ".to_owned(),
        token.clone(),
        format!("Basic {token}"),
        format!("Bearer {}", app.client_secret),
        format!("Bearer {}", world.server.operator_token),
        format!("Bearer {}", token.to_uppercase()),
        format!("Token {token}"),
        format!("Bearer{token}"),
        format!("Bearer {}", &token[..token.len() - 1]),
        format!("Bearer {token}A"),
        format!("Bearer {}", token.replace("ps_at_", "ps_rt_")),
        format!("Bearer {}", token.replace("ps_at_", "ps_pt_")),
        format!("Bearer {token} {token}"),
        format!("Bearer {token},"),
        format!("Bearer \"{token}\""),
        "Bearer ps_at_".to_owned(),
        "Bearer ps_at_x".to_owned(),
        "Bearer ps_at_żółw".to_owned(),
        format!("Bearer ps_at_{}", "A".repeat(64)),
        format!("Bearer ps_at_{}", "A".repeat(4000)),
    ];
    let mut answers = vec![world.visit("/v1/me").await];
    for value in &bad {
        answers.push(with(value).await);
    }
    for (answer, value) in answers.iter().zip([String::new()].iter().chain(&bad)) {
        assert_eq!(answer.status, 401, "{value}");
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
    let all_but_it = "offers:write orders:read shipments:write settings:read settings:write messaging";
    let all_but_it: Vec<_> = all_but_it.split(' ').collect();
    let token = world.personal_token(&seller, &all_but_it).await.token;
    for path in ["/v1/offers".to_owned(), format!("/v1/offers/{}", offer_id(1))] {
        let answer = world.get(&token, &path).await;
        answer.refused(403, "insufficient_scope");
        let message = &answer.json()["errors"][0]["message"];
        assert!(message.as_str().unwrap().contains("offers:read"), "{message}");
        let challenge = answer.must("www-authenticate");
        let end = "\", error=\"insufficient_scope\", scope=\"offers:read\"";
        assert!(
            challenge.starts_with("Bearer realm=\"") && challenge.ends_with(end),
            "{challenge}"
        );
    }
    world.get(&token, "/v1/me").await.expect(200);
}
