//! `POST /oauth/token`: which scopes a token gets.

use std::collections::BTreeSet;

use blackbox::{Application, Expect, World};
use serde_json::{Value, json};

use crate::{
    token_endpoint::{form, proper},
    world, world_of_many_tokens,
};

const ALL: [&str; 17] = [
    "offers:read",
    "offers:write",
    "orders:read",
    "shipments:write",
    "settings:read",
    "settings:write",
    "orders:write",
    "shipments:read",
    "returns:read",
    "returns:write",
    "pricelists:read",
    "pricelists:write",
    "policies:read",
    "policies:write",
    "billing:read",
    "messaging",
    "profile:read",
];

async fn ask(world: &World, application: &Application, scope: &str) -> testkit::Answer {
    form(
        world,
        &format!("{}&scope={}", proper(application), scope.replace(' ', "+")),
    )
    .await
}

fn named(answer: &Value) -> BTreeSet<String> {
    let list = answer["scope"].as_str().expect("a scope");
    let names: Vec<_> = list.split(' ').map(str::to_owned).collect();
    let set: BTreeSet<_> = names.iter().cloned().collect();
    assert_eq!(set.len(), names.len(), "{list}");
    set
}

#[tokio::test]
async fn without_a_scope_a_token_gets_all_of_the_application() {
    let world = world().await;
    let application = world.application(&world.seller().await, &ALL).await;
    let all = ALL.map(str::to_owned).into();
    assert_eq!(
        named(&world.token_answer(&application).await.expect(200).json()),
        all
    );
    assert_eq!(
        named(&ask(&world, &application, "").await.expect(200).json()),
        all
    );
}

#[tokio::test]
async fn a_token_gets_the_scopes_it_asks_for() {
    let world = world_of_many_tokens().await;
    let application = world.application(&world.seller().await, &ALL).await;
    for scope in ALL {
        let answer = ask(&world, &application, scope).await.expect(200).json();
        assert_eq!(named(&answer), [scope.to_owned()].into());
        let me = world
            .get(answer["access_token"].as_str().unwrap(), "/v1/me")
            .await
            .expect(200)
            .json();
        assert_eq!(me["scopes"], json!([scope]));
    }
    let answer = ask(&world, &application, "messaging offers:read messaging")
        .await
        .expect(200)
        .json();
    assert_eq!(
        named(&answer),
        ["messaging".to_owned(), "offers:read".to_owned()].into()
    );
}

#[tokio::test]
async fn a_scope_that_is_none_or_not_the_applications_is_invalid() {
    let world = world().await;
    let application = world
        .application(&world.seller().await, &["offers:read", "messaging"])
        .await;
    let scopes = [
        "nothing",
        "Offers:Read",
        "offers:write",
        "offers:read offers:write",
        "offers:read nothing",
        "offers:read,messaging",
    ];
    for scope in scopes {
        ask(&world, &application, scope)
            .await
            .oauth_error(400, "invalid_scope");
    }
    world
        .adjust(&application.client_id, &json!({"scopes": ["messaging"]}))
        .await
        .expect(200);
    ask(&world, &application, "offers:read")
        .await
        .oauth_error(400, "invalid_scope");
    assert_eq!(
        named(&world.token_answer(&application).await.expect(200).json()),
        ["messaging".to_owned()].into()
    );
}
