//! Forms of the Authorization header, and the contents of a 401 and a 403.

use blackbox::{Expect, cases, offer_id};
use oauth::Scope;

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

/// The contract's table of scopes: what needs which.
const NEEDED: &str = "
    GET /v1/offers                  => offers:read
    GET /v1/offers/ID               => offers:read
    PATCH /v1/offers/ID             => offers:write
    POST /v1/offers/batch           => offers:write
    GET /v1/orders                  => orders:read
    GET /v1/orders/ID               => orders:read
    GET /v1/orders/ID/shipments     => shipments:read
    POST /v1/orders/ID/shipments    => shipments:write
    PATCH /v1/orders/ID/shipments/ID => shipments:write
    GET /v1/webhooks                => settings:read
    GET /v1/webhooks/ID             => settings:read
    GET /v1/webhooks/ID/deliveries  => settings:read
    GET /v1/webhooks/ID/deliveries/ID => settings:read
    POST /v1/webhooks               => settings:write
    PATCH /v1/webhooks/ID           => settings:write
    DELETE /v1/webhooks/ID          => settings:write
    POST /v1/webhooks/ID/test       => settings:write
    POST /v1/webhooks/ID/secret-rotation => settings:write
    POST /v1/webhooks/ID/deliveries/ID/redelivery => settings:write";

#[tokio::test]
async fn a_missing_scope_is_named_in_message_and_challenge() {
    let world = world().await;
    for (operation, scope) in cases(NEEDED) {
        let seller = world.seller().await;
        let all = Scope::ALL.iter().map(|scope| scope.as_str());
        let others: Vec<_> = all.filter(|other| *other != scope).collect();
        let ask = async |scopes: &[&str]| {
            let token = world.personal_token(&seller, scopes).await.token;
            let (method, path) = operation.split_once(' ').unwrap();
            let request = world.at(method, &path.replace("ID", &offer_id(1)));
            request.bearer(&token).send().await
        };
        let answer = ask(&others).await;
        answer.refused(403, "insufficient_scope");
        let message = &answer.json()["errors"][0]["message"];
        assert!(message.as_str().unwrap().contains(scope), "{message}");
        let challenge = answer.must("www-authenticate");
        let end = format!("\", error=\"insufficient_scope\", scope=\"{scope}\"");
        let is_whole = challenge.starts_with("Bearer realm=\"") && challenge.ends_with(&end);
        assert!(is_whole, "{challenge}");
        // Without a body, or without such a resource, it goes no further than this.
        let answer = ask(&[scope]).await;
        assert!(
            matches!(answer.status, 200 | 400 | 404),
            "{operation}: {answer:?}"
        );
    }
    let routes = adapter_http::TABLE.iter();
    // The journal takes any of two.
    let guarded = routes.filter(|route| route.scope.len() == 1).count();
    assert_eq!(cases(NEEDED).count(), guarded);
    let token = world.personal_token(&world.seller().await, &["messaging"]).await;
    world.get(&token.token, "/v1/me").await.expect(200);
}
