//! `POST /oauth/token`: how a client says who it is, and which clients are let in.

use blackbox::{Expect, World};
use reqwest::Method;
use serde_json::json;

use crate::{
    token_endpoint::{asking, basic, credentials, form, form_with_basic, proper},
    world, world_of_many_tokens,
};

const GRANT: &str = "grant_type=client_credentials";

#[tokio::test]
async fn basic_and_body_credentials_are_accepted_each_alone() {
    let world = world().await;
    let application = world.application(&world.seller().await, &["offers:read"]).await;
    let credentials = credentials(&application);
    form(&world, &proper(&application)).await.expect(200);
    form_with_basic(&world, &credentials, GRANT).await.expect(200);
    for scheme in ["basic", "BASIC"] {
        let header = basic(&credentials).replace("Basic", scheme);
        asking(&world)
            .header("authorization", &header)
            .form(GRANT)
            .send()
            .await
            .expect(200);
    }
    let as_json = asking(&world).header("authorization", &basic(&credentials));
    as_json
        .json(&json!({"grant_type": "client_credentials"}))
        .send()
        .await
        .expect(200);
    let with_the_same_id = format!("{GRANT}&client_id={}", application.client_id);
    form_with_basic(&world, &credentials, &with_the_same_id)
        .await
        .expect(200);
}

/// Libraries that follow RFC 6749 §2.3.1 to the letter encode every `_` and `-`.
#[tokio::test]
async fn basic_credentials_may_be_form_encoded() {
    let world = world().await;
    let application = world.application(&world.seller().await, &["offers:read"]).await;
    let plain = credentials(&application);
    let encoded = plain.replace('_', "%5F").replace('-', "%2D");
    form_with_basic(&world, &encoded, GRANT).await.expect(200);
    let with_the_same_id = format!("{GRANT}&client_id={}", application.client_id);
    form_with_basic(&world, &encoded, &with_the_same_id)
        .await
        .expect(200);
    for broken in [
        format!("{plain}%"),
        format!("{plain}%5"),
        plain.replace('_', "%255F"),
    ] {
        form_with_basic(&world, &broken, GRANT)
            .await
            .oauth_error(401, "invalid_client");
    }
}

#[tokio::test]
async fn basic_and_body_credentials_together_are_an_invalid_request() {
    let world = world().await;
    let seller = world.seller().await;
    let (one, other) = (
        world.application(&seller, &["offers:read"]).await,
        world.application(&seller, &["offers:read"]).await,
    );
    let bodies = [
        proper(&one),
        format!("{GRANT}&client_secret={}", one.client_secret),
        format!("{GRANT}&client_id={}", other.client_id),
        format!("{GRANT}&client_id=psa_nobody"),
    ];
    for body in bodies {
        form_with_basic(&world, &credentials(&one), &body)
            .await
            .oauth_error(400, "invalid_request");
    }
    let empty = format!("{GRANT}&client_id=&client_secret=");
    form_with_basic(&world, &credentials(&one), &empty)
        .await
        .expect(200);
}

#[tokio::test]
async fn who_does_not_prove_who_it_is_is_an_invalid_client() {
    let world = world_of_many_tokens().await;
    let seller = world.seller().await;
    let (one, other) = (
        world.application(&seller, &["offers:read"]).await,
        world.application(&seller, &["offers:read"]).await,
    );
    let (id, secret) = (&one.client_id, &one.client_secret);
    let shorter = &secret[..secret.len() - 1];
    let in_body = [
        String::new(),
        format!("client_id={id}"),
        format!("client_id={id}&client_secret="),
        format!("client_secret={secret}"),
        format!("client_id={id}&client_secret={shorter}"),
        format!("client_id={id}&client_secret={secret}A"),
        format!("client_id={id}&client_secret={}", other.client_secret),
        format!("client_id={id}&client_secret={id}"),
        format!("client_id=psa_nobody&client_secret={secret}"),
        format!("client_id={}&client_secret={secret}", id.to_uppercase()),
    ];
    for body in in_body {
        form(&world, &format!("{GRANT}&{body}"))
            .await
            .oauth_error(401, "invalid_client");
    }
    let in_the_url = world.url(&format!("/oauth/token?client_id={id}&client_secret={secret}"));
    world
        .client
        .post(&in_the_url)
        .form(GRANT)
        .send()
        .await
        .oauth_error(401, "invalid_client");
    let in_basic = [
        basic(&format!("{id}:{shorter}")),
        basic(&format!("{id}:")),
        basic(&format!(":{secret}")),
        basic(id),
        basic(""),
        basic(&format!("nobody:{secret}")),
        "Basic".to_owned(),
        "Basic ???".to_owned(),
        format!("Basic {id}:{secret}"),
    ];
    for header in in_basic {
        let answer = asking(&world)
            .header("authorization", &header)
            .form(GRANT)
            .send()
            .await;
        assert_eq!(answer.status, 401, "{header}");
        answer.oauth_error(401, "invalid_client");
        assert!(answer.must("www-authenticate").starts_with("Basic"), "{answer:?}");
    }
}

#[tokio::test]
async fn authentication_is_judged_before_the_scope() {
    let world = world().await;
    let application = world.application(&world.seller().await, &["offers:read"]).await;
    let body = format!("{GRANT}&scope=nothing");
    form_with_basic(&world, "psa_nobody:x", &body)
        .await
        .oauth_error(401, "invalid_client");
    form_with_basic(&world, &credentials(&application), &body)
        .await
        .oauth_error(400, "invalid_scope");
}

#[tokio::test]
async fn a_public_client_has_no_client_credentials() {
    let world = world().await;
    let seller = world.seller().await;
    let public = world.register(&seller, json!({"client_type": "public"})).await;
    assert_eq!(public.client_secret, "");
    let id = &public.client_id;
    form(&world, &format!("{GRANT}&client_id={id}"))
        .await
        .oauth_error(401, "invalid_client");
    form(&world, &format!("{GRANT}&client_id={id}&client_secret=pss_any"))
        .await
        .oauth_error(401, "invalid_client");
    form_with_basic(&world, &format!("{id}:"), GRANT)
        .await
        .oauth_error(401, "invalid_client");
}

#[tokio::test]
async fn a_pending_application_works_for_its_owner() {
    let world = world().await;
    let seller = world.seller().await;
    for purpose in ["for_other_sellers", "other"] {
        let pending = world.register(&seller, json!({"purpose": purpose})).await;
        assert_eq!(pending.status, "pending");
        let token = world.token(&pending).await;
        let me = world.get(&token, "/v1/me").await.expect(200).json();
        assert_eq!(
            (&me["seller"]["id"], &me["app"]["client_id"]),
            (&json!(seller.id), &json!(pending.client_id))
        );
    }
}

async fn refused(world: &World, body: &str) {
    form(world, body).await.oauth_error(401, "invalid_client");
}

#[tokio::test]
async fn suspended_deleted_and_closed_clients_get_nothing() {
    let world = world().await;
    let seller = world.seller().await;
    let [suspended, deleted, closed] = [
        world.application(&seller, &["offers:read"]).await,
        world.application(&seller, &["offers:read"]).await,
        world.application(&world.seller().await, &["offers:read"]).await,
    ];
    world
        .move_application(&suspended.client_id, "suspension")
        .await
        .expect(200);
    refused(&world, &proper(&suspended)).await;
    world
        .move_application(&suspended.client_id, "reinstatement")
        .await
        .expect(200);
    form(&world, &proper(&suspended)).await.expect(200);
    let path = format!("/applications/{}", deleted.client_id);
    world.office(Method::DELETE, &path).send().await.expect(204);
    refused(&world, &proper(&deleted)).await;
    let token = world.token(&closed).await;
    let owner = world.get(&token, "/v1/me").await.json()["seller"]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    world
        .office(Method::POST, &format!("/sellers/{owner}/closure"))
        .send()
        .await
        .expect(200);
    refused(&world, &proper(&closed)).await;
}
