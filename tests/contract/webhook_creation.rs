//! Creating subscriptions: the request, the answer, idempotency keys, and the secret, which is shown once
//! (contract: POST /v1/webhooks).

use blackbox::{EVENTS, Expect, Integration, World, all_invalid, items, keyed, local_receivers, text};
use serde_json::{Value, json};
use testkit::Answer;

use crate::{PROGRAM, idempotency_keys::replays, instant, world};

/// A public address to which these tests send nothing.
const PUBLIC: &str = "https://1.1.1.1/hooks";

#[tokio::test]
async fn a_created_subscription_is_returned_with_its_secret() {
    let world = world().await;
    let own = world.integration().await;
    let url = "https://1.1.1.1:8443/a%20b/../c?shop=%C5%BC&x=1;2";
    let events = ["order.paid", "offer.rejected"];
    let mut made = world.subscription(&own.token, url, &events).await;
    assert_eq!(made["url"], url, "the address comes back character for character");
    assert_eq!((&made["events"], &made["active"]), (&json!(events), &json!(true)));
    instant(&text(&made, "created_at"));
    let secret = text(&made, "secret");
    let random = secret.strip_prefix("ps_wh_").unwrap();
    assert!(random.len() >= 43, "256 bits at least");
    for secret in ["secret", "standard_secret"] {
        made.as_object_mut().unwrap().remove(secret);
    }
    let listed = world.read(&own.token, "/v1/webhooks").await;
    assert_eq!(listed["items"], json!([made]), "the secret is not returned again");
    // Events are stored sorted and without duplicates. Several subscriptions may have the same URL.
    let events = ["order.shipped", "order.created", "order.shipped", "order.created"];
    let mut secrets = vec![secret];
    for (events, kept) in [(&events[..], &events[..2]), (&EVENTS, &EVENTS)] {
        let made = world.subscription(&own.token, PUBLIC, events).await;
        assert_eq!(made["events"], json!(kept));
        assert!(!secrets.contains(&text(&made, "secret")));
        secrets.push(text(&made, "secret"));
    }
}

#[tokio::test]
async fn each_invalid_field_of_a_subscription_is_named() {
    let world = world().await;
    let own = world.integration().await;
    let post = async |query: &str, body: &str| -> Answer {
        let body: Value = body.replace("PUBLIC", PUBLIC).parse().unwrap();
        let request = world.at("POST", &format!("/v1/webhooks{query}"));
        request.bearer(&own.token).json(&body).send().await
    };
    let table = r#"
        {}                                                    => url events
        {"events":["order.paid"],"url":null}                  => url
        {"events":["order.paid"],"url":7}                     => url
        {"url":"PUBLIC","events":[]}                          => events
        {"url":"PUBLIC","events":"order.paid"}                => events
        {"url":"PUBLIC","events":["order.paid",7,"Order.paid"]}     => events[1] events[2]
        {"url":"http://1.1.1.1/","events":["order.lost"]}           => url events[0]
        {"url":"PUBLIC","events":["order.paid"],"active":false}     => active"#;
    all_invalid(table, async |body| post("", body).await).await;
    let fine = r#"{"url":"PUBLIC","events":["order.paid"]}"#;
    post("?fields=nothing", fine).await.invalid("fields");
    assert_eq!(world.read(&own.token, "/v1/webhooks").await["items"], json!([]));
    let chosen = post("?fields=secret,url", fine).await.expect(201).json();
    let names = chosen.as_object().unwrap().keys().collect::<Vec<_>>();
    let always = ["id", "secret", "standard_secret", "url"];
    assert_eq!(names, always, "id and secret are always there");
}

async fn subscribe(world: &World, own: &Integration, key: &str, body: &Value) -> Answer {
    keyed(world.subscribing(&own.token, body), key).send().await
}

#[tokio::test]
async fn a_repeat_gets_the_same_secret_and_another_application_none() {
    let world = World::with(PROGRAM, local_receivers).await;
    let own = world.integration().await;
    let body = json!({"url": "http://127.0.0.1:9/", "events": ["order.paid"]});
    let first = subscribe(&world, &own, "k", &body).await.expect(201);
    replays(&first, &subscribe(&world, &own, "k", &body).await);
    assert_eq!(items(&world.read(&own.token, "/v1/webhooks").await).len(), 1);
    let sister = world.integration_of(own.seller.clone()).await;
    let reused = subscribe(&world, &sister, "k", &body).await;
    reused.refused(422, "idempotency_key_reused");
    // Rejections are not stored: the same key works for the corrected request.
    let wrong = json!({"url": "x", "events": []});
    subscribe(&world, &own, "l", &wrong).await.invalid("url events");
    let made = subscribe(&world, &own, "l", &body).await.expect(201);
    // A deletion with a key happens once, and its answer is repeated.
    let id = text(&made.json(), "id");
    for replayed in [false, true] {
        let answer = keyed(world.unsubscribing(&own.token, &id), "end").send().await;
        assert_eq!(answer.is_replayed(), replayed);
        assert!(answer.expect(204).bytes.is_empty());
    }
    world.unsubscribe(&own.token, &id).await.refused(404, "not_found");
}
