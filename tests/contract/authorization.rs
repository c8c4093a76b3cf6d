//! Forms of the Authorization header, and the contents of a 401 and a 403.

use std::collections::BTreeSet;

use blackbox::Expect;

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
        token.replace("ps_at_", "ps_pt_"),
        format!("ps_at_{}", "A".repeat(4000)),
    ] {
        answers.push(with(&format!("Bearer {changed}")).await);
    }
    for answer in answers {
        answer.refused(401, "unauthorized");
        let challenge = answer.must("www-authenticate");
        let realm = challenge.strip_prefix("Bearer realm=\"").unwrap();
        let realm = realm.strip_suffix("\", error=\"invalid_token\"").unwrap();
        assert!(!realm.is_empty() && !realm.contains('"'), "{challenge}");
    }
}

/// The contract's table of scopes: what needs which. The matrix sends every scope to every route.
const NEEDED: &str = "
    GET /v1/offers => offers:read
    GET /v1/offers/{id} => offers:read
    PATCH /v1/offers/{id} => offers:write
    POST /v1/offers/batch => offers:write
    GET /v1/orders => orders:read
    GET /v1/orders/{id} => orders:read
    GET /v1/orders/{id}/shipments => shipments:read
    POST /v1/orders/{id}/shipments => shipments:write
    PATCH /v1/orders/{id}/shipments/{shipment_id} => shipments:write
    GET /v1/webhooks => settings:read
    GET /v1/webhooks/{id} => settings:read
    GET /v1/webhooks/{id}/deliveries => settings:read
    GET /v1/webhooks/{id}/deliveries/{delivery_id} => settings:read
    POST /v1/webhooks => settings:write
    PATCH /v1/webhooks/{id} => settings:write
    DELETE /v1/webhooks/{id} => settings:write
    POST /v1/webhooks/{id}/test => settings:write
    POST /v1/webhooks/{id}/secret-rotation => settings:write
    POST /v1/webhooks/{id}/deliveries/{delivery_id}/redelivery => settings:write";

#[test]
fn each_operation_needs_the_contracts_scope() {
    let needed: BTreeSet<_> = NEEDED.trim().lines().map(str::trim).collect();
    // The journal takes any of two.
    let guarded = adapter_http::TABLE.iter().filter(|route| route.scope.len() == 1);
    let declared: BTreeSet<_> = guarded
        .map(|route| format!("{} {} => {}", route.method, route.path, route.scope[0].as_str()))
        .collect();
    assert!(declared.iter().eq(needed), "{declared:#?}");
}
