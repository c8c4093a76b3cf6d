//! `GET /v1/me`: who a token speaks for and what it may do.

use blackbox::Expect;
use serde_json::{Value, json};

use crate::world;

fn sorted(scopes: &Value) -> Vec<&str> {
    let mut names: Vec<_> = scopes
        .as_array()
        .unwrap()
        .iter()
        .map(|name| name.as_str().unwrap())
        .collect();
    names.sort_unstable();
    names
}

#[tokio::test]
async fn an_access_token_shows_seller_application_scopes_and_its_end() {
    let world = world().await;
    world.stop_clock("2040-01-01T12:00:30.000001Z").await;
    let seller = world.seller().await;
    let application = world.application(&seller, &["offers:write", "messaging"]).await;
    let token = world.token(&application).await;
    let me = world.get(&token, "/v1/me").await.expect(200).json();
    assert_eq!(sorted(&me["scopes"]), ["messaging", "offers:write"]);
    let expected = json!({
        "seller": {"id": seller.id, "seller_no": seller.seller_no},
        "app": {"client_id": application.client_id, "name": application.name},
        "scopes": me["scopes"],
        "token": {"kind": "access", "expires_at": "2040-01-02T00:00:30.000001Z"},
    });
    assert_eq!(me, expected);
    assert!(application.client_id.starts_with("psa_") && application.client_secret.starts_with("pss_"));
}

#[tokio::test]
async fn a_personal_token_has_a_built_in_application_and_may_last_for_ever() {
    let world = world().await;
    world.stop_clock("2040-01-01T12:00:30Z").await;
    let seller = world.seller().await;
    let lasting = world.personal_token(&seller, &["offers:read"]).await.token;
    assert!(lasting.starts_with("ps_pt_"));
    let me = world.get(&lasting, "/v1/me").await.expect(200).json();
    assert_eq!(me["token"], json!({"kind": "personal", "expires_at": null}));
    assert_eq!(
        me["seller"],
        json!({"id": seller.id, "seller_no": seller.seller_no})
    );
    assert!(me["app"]["client_id"].as_str().unwrap().starts_with("psa_"));
    assert!(!me["app"]["name"].as_str().unwrap().is_empty());

    let body =
        json!({"name": "ends", "scopes": ["offers:read"], "expires_at": "2040-01-01T14:00:30.5+01:00"});
    let made = world
        .office_post(&format!("/sellers/{}/personal-tokens", seller.id), &body)
        .await
        .expect(201)
        .json();
    let ending = world
        .get(made["token"].as_str().unwrap(), "/v1/me")
        .await
        .expect(200)
        .json();
    assert_eq!(
        ending["token"],
        json!({"kind": "personal", "expires_at": "2040-01-01T13:00:30.500000Z"})
    );
    assert_eq!(ending["app"], me["app"]);

    let other = world
        .personal_token(&world.seller().await, &["offers:read"])
        .await
        .token;
    assert_ne!(
        world.get(&other, "/v1/me").await.json()["app"]["client_id"],
        me["app"]["client_id"]
    );
}

#[tokio::test]
async fn scopes_are_those_of_the_token_that_the_application_still_has() {
    let world = world().await;
    let seller = world.seller().await;
    let application = world
        .application(&seller, &["offers:read", "orders:read", "messaging"])
        .await;
    let token = world.token(&application).await;
    for (now, effective) in [
        (vec!["offers:read", "messaging"], vec!["messaging", "offers:read"]),
        (vec!["billing:read"], vec![]),
        (
            vec!["billing:read", "orders:read", "offers:read", "messaging"],
            vec!["messaging", "offers:read", "orders:read"],
        ),
        (vec!["orders:read"], vec!["orders:read"]),
    ] {
        world
            .adjust(&application.client_id, &json!({"scopes": now}))
            .await
            .expect(200);
        let me = world.get(&token, "/v1/me").await.expect(200).json();
        assert_eq!(sorted(&me["scopes"]), effective);
        let offers = world.get(&token, "/v1/offers").await;
        assert_eq!(
            offers.status,
            if effective.contains(&"offers:read") {
                200
            } else {
                403
            }
        );
    }
}

#[tokio::test]
async fn fields_are_selected_and_no_other_parameter_is_known() {
    let world = world().await;
    let (_, token) = world.reader().await;
    let whole = world.get(&token, "/v1/me").await.expect(200).json();
    let some = world
        .get(&token, "/v1/me?fields=token,app,token")
        .await
        .expect(200)
        .json();
    assert_eq!(some, json!({"token": whole["token"], "app": whole["app"]}));
    for bad in ["", "nothing", "seller.id", "seller,", "id", "Token"] {
        world
            .get(&token, &format!("/v1/me?fields={bad}"))
            .await
            .invalid(&["fields"]);
    }
    world.get(&token, "/v1/me?limit=1").await.invalid(&["limit"]);
    world
        .get(&token, "/v1/me?x=1&fields=nothing")
        .await
        .invalid(&["fields", "x"]);
}
