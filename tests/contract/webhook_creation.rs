//! Making subscriptions: what is asked for, what comes back, and the secret, which comes once (contract: POST /v1/webhooks).

use blackbox::{EVENTS, Expect, HOOK_SCOPES, Receiver, local_receivers, parcel};
use serde_json::{Value, json};

use crate::{PROGRAM, World, instant, world};

/// A public address that nothing is ever sent to here.
const PUBLIC: &str = "https://1.1.1.1/hooks";

#[tokio::test]
async fn a_subscription_comes_back_whole_with_its_secret() {
    let world = world().await;
    let own = world.integration().await;
    let url = "https://1.1.1.1:8443/a%20b/../c?shop=%C5%BC&x=1;2";
    let made = world
        .subscribe_to(&own.token, url, &["order.paid", "offer.rejected"])
        .await
        .expect(201);
    made.must("x-ratelimit-remaining");
    let made = made.json();
    let names = made
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect::<Vec<_>>();
    assert_eq!(names.len(), 6, "{names:?}");
    assert_eq!(made["url"], url, "the address comes back character for character");
    assert_eq!(made["events"], json!(["order.paid", "offer.rejected"]));
    assert_eq!(made["active"], true);
    instant(made["created_at"].as_str().unwrap());
    let secret = made["secret"].as_str().unwrap();
    let random = secret.strip_prefix("ps_wh_").unwrap();
    assert!(random.len() >= 43, "256 bits at least");

    let listed = world.get(&own.token, "/v1/webhooks").await.expect(200).json();
    let mut known = made.clone();
    known.as_object_mut().unwrap().remove("secret");
    assert_eq!(listed["items"], json!([known]), "the secret is never told again");
    let stored = "select count(*) from subscriptions where position(convert_to($1, 'UTF8') in secret) > 0";
    assert_eq!(world.count(stored, secret).await, 0, "it is sealed at rest");
}

#[tokio::test]
async fn events_are_kept_in_order_and_once() {
    let world = world().await;
    let own = world.integration().await;
    let events = ["order.shipped", "order.created", "order.shipped", "order.created"];
    let made = world
        .subscribe_to(&own.token, PUBLIC, &events)
        .await
        .expect(201)
        .json();
    assert_eq!(made["events"], json!(["order.shipped", "order.created"]));
    let all = world
        .subscribe_to(&own.token, PUBLIC, &EVENTS)
        .await
        .expect(201)
        .json();
    assert_eq!(all["events"], json!(EVENTS));
    assert_eq!(all["url"], made["url"], "the same address may be given twice");
    assert_ne!(all["secret"], made["secret"]);
}

#[tokio::test]
async fn what_is_wrong_with_a_body_is_named() {
    let world = world().await;
    let own = world.integration().await;
    let body = |url: Value, events: Value| json!({"url": url, "events": events});
    let one = json!(["order.paid"]);
    let long = format!(
        "https://1.1.1.1/{}",
        "x".repeat(2_048 - "https://1.1.1.1/".len() + 1)
    );
    let cases: [(Value, &[&str]); 21] = [
        (json!({"events": one}), &["url"]),
        (json!({"url": PUBLIC}), &["events"]),
        (json!({}), &["url", "events"]),
        (body(json!(null), one.clone()), &["url"]),
        (body(json!(7), one.clone()), &["url"]),
        (body(json!(""), one.clone()), &["url"]),
        (body(json!("hooks"), one.clone()), &["url"]),
        (body(json!("ftp://1.1.1.1/"), one.clone()), &["url"]),
        (body(json!("http://1.1.1.1/"), one.clone()), &["url"]),
        (body(json!("https://u:p@1.1.1.1/"), one.clone()), &["url"]),
        (body(json!("https://1.1.1.1/#part"), one.clone()), &["url"]),
        (body(json!("https://1.1.1.1/a b"), one.clone()), &["url"]),
        (body(json!(long), one.clone()), &["url"]),
        (body(json!(PUBLIC), json!([])), &["events"]),
        (body(json!(PUBLIC), json!(null)), &["events"]),
        (body(json!(PUBLIC), json!("order.paid")), &["events"]),
        (
            body(json!(PUBLIC), json!(["order.paid", "return.created"])),
            &["events[1]"],
        ),
        (
            body(json!(PUBLIC), json!(["order.paid", 7, "Order.paid"])),
            &["events[1]", "events[2]"],
        ),
        (
            body(json!("http://1.1.1.1/"), json!(["order.lost"])),
            &["url", "events[0]"],
        ),
        (
            json!({"url": PUBLIC, "events": one, "secret": "mine"}),
            &["secret"],
        ),
        (
            json!({"url": PUBLIC, "events": one, "active": false}),
            &["active"],
        ),
    ];
    for (body, paths) in cases {
        let answer = world.subscribing(&own.token, &body).send().await;
        assert_eq!(answer.status, 400, "{body}: {answer:?}");
        answer.invalid(paths);
    }
    let listed = world.get(&own.token, "/v1/webhooks").await.expect(200).json();
    assert_eq!(listed["items"], json!([]));
}

#[tokio::test]
async fn the_longest_address_is_taken() {
    let world = world().await;
    let own = world.integration().await;
    let url = format!("https://1.1.1.1/{}", "x".repeat(2_048 - "https://1.1.1.1/".len()));
    let made = world
        .subscribe_to(&own.token, &url, &EVENTS)
        .await
        .expect(201)
        .json();
    assert_eq!(made["url"], url);
}

#[tokio::test]
async fn what_is_not_for_this_operation_is_refused() {
    let world = world().await;
    let own = world.integration().await;
    let body = json!({"url": PUBLIC, "events": ["order.paid"]});
    let post = |query: &str| {
        let url = world.url(&format!("/v1/webhooks?{query}"));
        world.client.post(&url).bearer(&own.token)
    };
    post("limit=1").json(&body).send().await.invalid(&["limit"]);
    post("fields=nothing")
        .json(&body)
        .send()
        .await
        .invalid(&["fields"]);
    let chosen = post("fields=secret,url")
        .json(&body)
        .send()
        .await
        .expect(201)
        .json();
    let names = chosen.as_object().unwrap().keys().collect::<Vec<_>>();
    assert_eq!(names, ["id", "secret", "url"], "the id is always there");
    post("")
        .body("{")
        .header("content-type", "application/json")
        .send()
        .await
        .expect(400);
}

#[tokio::test]
async fn each_scope_opens_its_own_door() {
    let world = world().await;
    let seller = world.seller().await;
    let reading = world
        .token(&world.application(&seller, &["settings:read"]).await)
        .await;
    let writing = world
        .token(&world.application(&seller, &["settings:write"]).await)
        .await;
    let body = json!({"url": PUBLIC, "events": ["order.paid"]});
    let made = world.subscribing(&writing, &body).send().await.expect(201).json();
    let id = made["id"].as_str().unwrap();
    world
        .subscribing(&reading, &body)
        .send()
        .await
        .refused(403, "insufficient_scope");
    world
        .unsubscribe(&reading, id)
        .await
        .refused(403, "insufficient_scope");
    world
        .get(&writing, "/v1/webhooks")
        .await
        .refused(403, "insufficient_scope");
    let deliveries = format!("/v1/webhooks/{id}/deliveries");
    world
        .get(&writing, &deliveries)
        .await
        .refused(403, "insufficient_scope");
    let nobody = world.client.get(&world.url("/v1/webhooks")).send().await;
    nobody.refused(401, "unauthorized");
    // The scope is looked at before the body, and before the address is.
    let wrong = json!({"url": "http://127.0.0.1/"});
    world
        .subscribing(&reading, &wrong)
        .send()
        .await
        .refused(403, "insufficient_scope");
    world.unsubscribe(&writing, id).await.expect(204);
}

#[tokio::test]
async fn a_program_without_webhooks_trades_as_ever() {
    let world = World::with(PROGRAM, local_receivers).await;
    let seller = world.seller().await;
    let token = world
        .token(&world.application(&seller, &HOOK_SCOPES[..4]).await)
        .await;
    world
        .get(&token, "/v1/webhooks")
        .await
        .refused(403, "insufficient_scope");
    let trader = blackbox::Trader { seller, token };
    let order = world.paid_order(&trader).await;
    world
        .ship(&trader.token, &order.id, &parcel("0000000001"))
        .await
        .expect(201);
    let stored = "select count(*) from deliveries where $1 = ''";
    assert_eq!(world.count(stored, "").await, 0);
}

#[tokio::test]
async fn where_anything_goes_loopback_and_http_do() {
    let world = World::with(PROGRAM, local_receivers).await;
    let own = world.integration().await;
    let receiver = Receiver::start().await;
    for url in [
        receiver.url.as_str(),
        "http://[::1]:9/",
        "https://10.0.0.1/",
        "http://169.254.169.254/",
    ] {
        world
            .subscribe_to(&own.token, url, &["order.paid"])
            .await
            .expect(201);
    }
    for url in [
        "http://u:p@127.0.0.1/",
        "ftp://127.0.0.1/",
        "http://127.0.0.1/#x",
        "nonsense",
    ] {
        world
            .subscribe_to(&own.token, url, &["order.paid"])
            .await
            .invalid(&["url"]);
    }
}
