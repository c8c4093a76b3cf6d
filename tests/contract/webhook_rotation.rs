//! A subscription's secret is rotated (contract: POST /v1/webhooks/{id}/secret-rotation).

use base64::{Engine as _, prelude::BASE64_STANDARD};
use blackbox::{Expect, Integration, Received, World, all_invalid, keyed, text, until, whole};
use chrono::{DateTime, TimeDelta, Utc};
use ring::hmac;
use serde_json::{Value, json};
use testkit::Request;

use crate::{idempotency_keys::replays, instant, world, world_of_hooks};

fn rotating(world: &World, token: &str, hook: &str) -> Request {
    let path = format!("/v1/webhooks/{hook}/secret-rotation");
    world.at("POST", &path).bearer(token)
}

async fn rotate(
    world: &World,
    own: &Integration,
    hook: &str,
    seconds: Option<i64>,
) -> (String, DateTime<Utc>) {
    let request = rotating(world, &own.token, hook);
    let request = match seconds {
        Some(seconds) => request.json(&json!({"overlap_seconds": seconds})),
        None => request,
    };
    let rotated = request.send().await.expect(200).json();
    let (secret, standard) = (text(&rotated, "secret"), text(&rotated, "standard_secret"));
    assert_eq!(standard, format!("whsec_{}", BASE64_STANDARD.encode(&secret)));
    assert_eq!(rotated["id"], hook);
    (secret, instant(&text(&rotated, "active_from")))
}

/// The secrets, of these, that `webhook-signature` is made with, in its order.
fn standard_signers<'s>(delivery: &Received, secrets: &[&'s str]) -> Vec<&'s str> {
    let id = delivery.header("webhook-id");
    let timestamp = delivery.header("webhook-timestamp");
    let signed = [format!("{id}.{timestamp}.").as_bytes(), delivery.body.as_slice()].concat();
    let made = |secret: &&&str| {
        let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
        format!("v1,{}", BASE64_STANDARD.encode(hmac::sign(&key, &signed)))
    };
    let by = |signature: &str| *secrets.iter().find(|secret| made(secret) == signature).unwrap();
    delivery.header("webhook-signature").split(' ').map(by).collect()
}

#[tokio::test]
async fn the_new_secret_takes_over_at_the_end_of_the_overlap() {
    let world = world_of_hooks(&[]).await;
    let clock = world.database.control_clock().await;
    let (own, receiver, hook) = world.subscribed().await;
    let first = hook.secret.as_str();
    let before = clock.now().await;
    let (replaced, active_from) = rotate(&world, &own, &hook.id, None).await;
    let overlap = active_from - before;
    assert!(overlap >= TimeDelta::days(1) && overlap < TimeDelta::days(1) + TimeDelta::minutes(1));
    let (second, active_from) = rotate(&world, &own, &hook.id, Some(3_600)).await;
    let next = async |secrets: &[&str], signing: &str, standard: &[&str]| {
        let known = receiver.count();
        world.any_order(&own.seller).await;
        let arrived = receiver.has(known + 1).await.remove(known);
        arrived.is_signed_by(signing).await;
        assert_eq!(standard_signers(&arrived, secrets), standard);
    };
    let all = [first, &replaced, &second];
    next(&all, first, &[first, &second]).await;
    // While a result is not recorded, the end of its lease is a lost attempt, which is repeated.
    let recorded = async || world.waiting(&hook.id).await == 0;
    until("the last result", recorded).await;
    clock
        .advance(active_from - clock.now().await + TimeDelta::seconds(1))
        .await;
    next(&all, &second, &[&second]).await;
    // At once, and nothing earlier is left.
    let (third, from) = rotate(&world, &own, &hook.id, Some(0)).await;
    assert!(clock.now().await - from < TimeDelta::minutes(1));
    next(&[&second, &third], &third, &[&third]).await;
}

#[tokio::test]
async fn a_rotation_is_replayed_and_of_the_applications_own_subscription() {
    let world = world().await;
    let own = world.integration().await;
    let made = world
        .subscription(&own.token, "https://1.1.1.1/", &["order.paid"])
        .await;
    let hook = text(&made, "id");
    let week = json!({"overlap_seconds": 604_800});
    let request = || keyed(rotating(&world, &own.token, &hook).json(&week), "k").send();
    let first = request().await.expect(200);
    replays(&first, &request().await);
    let path = format!("/v1/webhooks/{hook}/secret-rotation?fields=active_from");
    let selecting = world.at("POST", &path).bearer(&own.token).send();
    let selected = selecting.await.expect(200).json();
    let fields: Vec<_> = selected.as_object().unwrap().keys().collect();
    assert_eq!(fields, ["active_from", "id", "secret", "standard_secret"]);
    let send = async |body: &str| {
        let body: Value = body.parse().unwrap();
        rotating(&world, &own.token, &hook).json(&body).send().await
    };
    let table = r#"
        {"overlap_seconds":-1}      => overlap_seconds
        {"overlap_seconds":604801}  => overlap_seconds
        {"overlap_seconds":1.5}     => overlap_seconds
        {"overlap_seconds":null}    => overlap_seconds
        {"overlap":1}               => overlap"#;
    all_invalid(table, send).await;
    send("[]").await.is_problem(400, &[whole("validation_error")]);
    for other in [
        world.integration_of(own.seller.clone()).await,
        world.integration().await,
    ] {
        let answer = rotating(&world, &other.token, &hook).send().await;
        answer.refused(404, "not_found");
    }
}
