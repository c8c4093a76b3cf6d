//! Changes of a subscription (contract: PATCH /v1/webhooks/{id}).

use blackbox::{EVENTS, Expect, Receiver, Reply, all_invalid, assert_members, keyed, merged, text, whole};
use chrono::TimeDelta;
use serde_json::{Value, json};

use crate::{idempotency_keys::replays, world, world_of_hooks};

#[tokio::test]
async fn url_and_events_are_changed_together_or_alone() {
    let world = world().await;
    let own = world.integration().await;
    let mut hook = world
        .subscription(&own.token, "https://1.1.1.1/old", &["order.paid"])
        .await;
    for secret in ["secret", "standard_secret"] {
        hook.as_object_mut().unwrap().remove(secret);
    }
    let id = text(&hook, "id");
    let twice = json!({"events": ["order.shipped", "offer.rejected", "order.shipped"]});
    let once = json!({"events": ["order.shipped", "offer.rejected"]});
    let url = json!({"url": "https://1.1.1.1:8443/a%20b?shop=x"});
    let both = json!({"url": "https://1.1.1.1/new", "events": EVENTS});
    for (change, expected) in [(&twice, &once), (&url, &url), (&both, &both)] {
        let changed = world.changing(&own.token, &id, change).send().await;
        hook = merged(hook, expected.clone());
        assert_eq!(changed.expect(200).json(), hook);
        let present = world.read(&own.token, &format!("/v1/webhooks/{id}")).await;
        assert_eq!(present, hook);
    }
    let request = || keyed(world.changing(&own.token, &id, &url), "k").send();
    let first = request().await.expect(200);
    world.changing(&own.token, &id, &both).send().await.expect(200);
    replays(&first, &request().await);
    let chosen = world.changing(&own.token, &format!("{id}?fields=active"), &both);
    let chosen = chosen.send().await.expect(200).json();
    assert_eq!(chosen, json!({"id": id, "active": true}));
    assert_eq!(
        world.read(&own.token, "/v1/webhooks").await["items"],
        json!([hook])
    );
}

#[tokio::test]
async fn a_change_that_is_refused_changes_nothing() {
    let world = world().await;
    let own = world.integration().await;
    let hook = world
        .subscription(&own.token, "https://1.1.1.1/hooks", &["order.paid"])
        .await;
    let id = text(&hook, "id");
    let patch = async |body: &str| {
        let body: Value = body.parse().unwrap();
        world.changing(&own.token, &id, &body).send().await
    };
    let table = r#"
        {"url":null}                                      => url
        {"url":"http://1.1.1.1/"}                         => url
        {"url":"https://127.0.0.1/"}                      => url
        {"url":"https://nowhere.invalid/"}                => url
        {"events":[]}                                     => events
        {"events":["order.lost"],"url":7}                 => url events[0]
        {"events":["order.shipped"],"active":true}        => active
        {"secret":"ps_wh_x"}                              => secret
        {"url":"https://1.1.1.1/new","events":null}       => events"#;
    all_invalid(table, patch).await;
    patch("{}").await.is_problem(400, &[whole("validation_error")]);
    for other in [
        world.integration_of(own.seller.clone()).await,
        world.integration().await,
    ] {
        let change = json!({"events": ["order.shipped"]});
        let answer = world.changing(&other.token, &id, &change).send().await;
        answer.refused(404, "not_found");
    }
    let present = world.read(&own.token, &format!("/v1/webhooks/{id}")).await;
    assert_members(&hook, present);
}

#[tokio::test]
async fn what_is_queued_goes_to_the_new_url_with_its_attempts() {
    let world = world_of_hooks(&[]).await;
    let clock = world.database.control_clock().await;
    let (own, old, hook) = world.subscribed().await;
    let new = Receiver::start().await;
    old.answers(Reply::Status(500));
    world.any_order(&own.seller).await;
    world.attempted(&own.token, &hook, 1).await;
    let change = json!({"url": new.url, "events": ["order.created"]});
    let changed = world.changing(&own.token, &hook.id, &change).send().await;
    assert_members(&changed.expect(200).json(), change);
    clock.advance(TimeDelta::minutes(2)).await;
    let arrived = new.hears("order.created").await;
    assert_eq!(arrived.delivery(), old.received()[0].delivery());
    arrived.is_signed_by(&hook.secret).await;
    let delivery = world.attempted(&own.token, &hook, 2).await;
    assert!(delivery["delivered_at"].is_string(), "{delivery}");
    // Of a paid order, only the chosen event.
    world.paid_order(&own.trader()).await;
    new.has(2).await;
    assert_eq!(world.history(&own.token, &hook.id).await.len(), 2);
    assert_eq!([&old, &new].map(Receiver::count), [1, 2]);
}
