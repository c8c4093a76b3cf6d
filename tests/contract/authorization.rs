//! Forms of the Authorization header, and what a 401 and a 403 say.

use blackbox::{Expect, Wire, request};
use reqwest::Method;
use serde_json::json;

use crate::world;

#[tokio::test]
async fn the_scheme_is_read_without_regard_to_case() {
    let world = world().await;
    let (_, token) = world.reader().await;
    for scheme in ["Bearer", "bearer", "BEARER", "bEaReR"] {
        let request = world
            .client
            .get(&world.url("/v1/me"))
            .header("authorization", &format!("{scheme} {token}"));
        request.send().await.expect(200);
    }
}

#[tokio::test]
async fn whatever_is_no_living_token_is_401_with_a_challenge() {
    let world = world().await;
    let seller = world.seller().await;
    let application = world.application(&seller, &["offers:read"]).await;
    let token = world.token(&application).await;
    let (shorter, longer) = (token[..token.len() - 1].to_owned(), format!("{token}A"));
    let refresh = token.replace("ps_at_", "ps_rt_");
    let personal = token.replace("ps_at_", "ps_pt_");
    let basic = format!("Basic {token}");
    let secret = format!("Bearer {}", application.client_secret);
    let operator = format!("Bearer {}", world.server.operator_token);
    let other_case = format!("Bearer {}", token.to_uppercase());
    let bad = [
        "",
        "Bearer",
        "Bearer ",
        &token,
        &basic,
        &secret,
        &operator,
        &other_case,
        &format!("Token {token}"),
        &format!("Bearer{token}"),
        &format!("Bearer {shorter}"),
        &format!("Bearer {longer}"),
        &format!("Bearer {refresh}"),
        &format!("Bearer {personal}"),
        &format!("Bearer {token} {token}"),
        &format!("Bearer {token},"),
        &format!("Bearer \"{token}\""),
        "Bearer ps_at_",
        "Bearer ps_at_x",
        "Bearer ps_at_żółw",
        &format!("Bearer ps_at_{}", "A".repeat(64)),
        &format!("Bearer ps_at_{}", "A".repeat(4000)),
    ];
    for value in bad {
        let answer = world
            .client
            .get(&world.url("/v1/me"))
            .header("authorization", value)
            .send()
            .await;
        assert_eq!(answer.status, 401, "{value}");
        answer.refused(401, "unauthorized");
        let challenge = answer.must("www-authenticate");
        let realm = challenge
            .strip_prefix("Bearer realm=\"")
            .and_then(|c| c.strip_suffix("\", error=\"invalid_token\""));
        assert!(
            realm.is_some_and(|realm| !realm.is_empty() && !realm.contains('"')),
            "{challenge}"
        );
    }
    let absent = world.client.get(&world.url("/v1/me")).send().await;
    absent.refused(401, "unauthorized");
    assert!(
        absent
            .must("www-authenticate")
            .ends_with(", error=\"invalid_token\"")
    );
}

#[tokio::test]
async fn two_authorization_headers_are_401_though_both_are_good() {
    let world = world().await;
    let (_, token) = world.reader().await;
    let bearer = format!("Bearer {token}");
    let once = [("user-agent", "App/1.0"), ("authorization", bearer.as_str())];
    let twice = [once.as_slice(), &[("Authorization", bearer.as_str())]].concat();
    Wire::exchange(&world.server.base_url, request("GET", "/v1/me", &once))
        .await
        .expect(200);
    Wire::exchange(&world.server.base_url, request("GET", "/v1/me", &twice))
        .await
        .refused(401, "unauthorized");
}

#[tokio::test]
async fn a_token_elsewhere_than_in_the_header_is_none() {
    let world = world().await;
    let (_, token) = world.reader().await;
    let in_the_url = world
        .client
        .get(&world.url(&format!("/v1/me?access_token={token}")))
        .send()
        .await;
    in_the_url.refused(401, "unauthorized");
    let in_the_body = world
        .client
        .request(Method::GET, &world.url("/v1/me"))
        .form(&format!("access_token={token}"));
    in_the_body.send().await.refused(401, "unauthorized");
}

#[tokio::test]
async fn a_missing_scope_is_named_in_message_and_challenge() {
    let world = world().await;
    let seller = world.seller().await;
    world.offer(&seller, 1, json!({})).await;
    let all_but_it = [
        "offers:write",
        "orders:read",
        "shipments:write",
        "settings:read",
        "settings:write",
        "messaging",
    ];
    let token = world.personal_token(&seller, &all_but_it).await.token;
    for path in ["/v1/offers", "/v1/offers/01900000-0000-7000-8000-000000000001"] {
        let answer = world.get(&token, path).await;
        answer.refused(403, "insufficient_scope");
        assert!(
            answer.json()["errors"][0]["message"]
                .as_str()
                .unwrap()
                .contains("offers:read")
        );
        let challenge = answer.must("www-authenticate");
        assert!(challenge.starts_with("Bearer realm=\""), "{challenge}");
        assert!(
            challenge.ends_with("\", error=\"insufficient_scope\", scope=\"offers:read\""),
            "{challenge}"
        );
    }
    world.get(&token, "/v1/me").await.expect(200);
}
