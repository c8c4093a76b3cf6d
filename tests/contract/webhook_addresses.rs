//! Addresses that subscriptions must not have, in all spellings (contract: Address rules).

use std::net::Ipv4Addr;

use blackbox::{EVENTS, Expect, NameServer, Receiver, World, text};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::{PROGRAM, set, world_with};

/// Hosts outside the public internet, one of each kind, and a URL that programs and people may read
/// differently. The domain's tests have all spellings.
const REFUSED: &str = r"127.0.0.1 10.0.0.1 169.254.169.254 2130706433 0x7f.0.0.1 127%2e0%2e0%2e1 １２７.0.0.1 [::1] [::ffff:8.8.8.8]
    [64:ff9b::7f00:1] [fe80::1%25eth0] localhost a.localhost private.example mixed.example absent.example empty.example
    https://1.1.1.1\@127.0.0.1/";

#[tokio::test]
async fn only_public_addresses_can_be_subscribed() {
    let (public, private) = (Ipv4Addr::new(1, 1, 1, 1), Ipv4Addr::new(10, 1, 2, 3));
    let names = NameServer::start(&[
        ("public.example", &[public, Ipv4Addr::new(8, 8, 8, 8)]),
        ("xn--kaw-kpa.example", &[public]),
        ("private.example", &[private]),
        ("mixed.example", &[public, private]),
        ("empty.example", &[]),
        ("denied.example", &[Ipv4Addr::new(9, 9, 9, 9)]),
    ])
    .await;
    let names_at = names.address.to_string();
    let denied = ("WEBHOOKS__DENY_NETWORKS", "9.9.9.0/24");
    let world = world_with(&[("WEBHOOKS__NAME_SERVERS", &names_at), denied]).await;
    let own = world.integration().await;
    for host in REFUSED.split_whitespace() {
        let whole = format!("https://{host}/");
        let url = if host.starts_with("https:") { host } else { &whole };
        let answer = world.subscribe_to(&own.token, url, &EVENTS).await;
        assert_eq!(answer.status, 400, "{url}: {answer:?}");
        answer.invalid("url");
    }
    let message = async |host: &str| -> Value {
        let url = format!("https://{host}/");
        let answer = world.subscribe_to(&own.token, &url, &EVENTS).await;
        answer.invalid("url");
        answer.json()["errors"][0]["message"].take()
    };
    let message_of_private = message("private.example").await;
    for host in ["absent.example", "mixed.example", "denied.example", "9.9.9.9"] {
        // Private names do not differ from unknown ones.
        assert_eq!(message(host).await, message_of_private, "{host}");
    }
    assert_eq!(world.read(&own.token, "/v1/webhooks").await["items"], json!([]));
    // An unusual spelling of a public address is allowed.
    let fine = "PUBLIC.example. xn--kaw-kpa.example:8443 [2606:4700::1111] 0x01010101";
    for host in fine.split(' ') {
        let url = format!("https://{host}/hooks");
        let answer = world.subscribe_to(&own.token, &url, &EVENTS).await;
        assert_eq!(answer.status, 201, "{url}: {answer:?}");
        assert_eq!(answer.json()["url"], url);
    }
}

#[tokio::test]
async fn few_hosts_of_one_application_are_looked_up_at_a_time() {
    let names = NameServer::start(&[]).await;
    names.is_silent_about("silent.example");
    let names_at = [("WEBHOOKS__NAME_SERVERS", &*names.address.to_string())];
    let world = World::with(PROGRAM, |options| set(options.in_one_process(), &names_at)).await;
    let own = world.integration().await;
    let other = world.integration_of(own.seller.clone()).await;
    let body = json!({"url": "https://silent.example/", "events": EVENTS});
    let mut silent = JoinSet::new();
    for _ in 0..12 {
        silent.spawn(world.subscribing(&own.token, &body).send());
    }
    world
        .subscription(&other.token, "https://1.1.1.1/", &EVENTS)
        .await;
    let answers = silent.join_all().await.into_iter();
    let (looked_up, refused): (Vec<_>, Vec<_>) = answers.partition(|answer| answer.status == 400);
    assert_eq!(looked_up.len(), 4, "{refused:?}");
    for answer in refused {
        answer.refused(429, "rate_limited");
        assert_eq!(answer.headers["retry-after"], "1");
    }
}

#[tokio::test]
async fn a_name_that_resolves_to_a_private_address_later_gets_no_connection() {
    let public = Ipv4Addr::new(1, 1, 1, 1);
    let names = NameServer::start(&[("turning.example", &[public]), ("mixing.example", &[public])]).await;
    let world = world_with(&[("WEBHOOKS__NAME_SERVERS", &names.address.to_string())]).await;
    let own = world.integration().await;
    let inside = Receiver::start().await;
    let (_, port) = inside.url.trim_end_matches("/hooks").rsplit_once(':').unwrap();
    let mut hooks = Vec::new();
    for name in ["turning.example", "mixing.example"] {
        let url = format!("https://{name}:{port}/hooks");
        let made = world.subscription(&own.token, &url, &EVENTS).await;
        hooks.push(text(&made, "id"));
    }
    names.knows("turning.example", &[Ipv4Addr::LOCALHOST]);
    names.knows("mixing.example", &[public, Ipv4Addr::LOCALHOST]);
    world.any_order(&own.seller).await;
    for hook in &hooks {
        let delivery = world.attempted(&own.token, hook, 1).await;
        assert_eq!(delivery["response_status"], Value::Null);
        assert!(delivery["next_retry_at"].is_string(), "{delivery}");
        let refused = "select count(*) from deliveries where subscription_id::text = $1 and failure = 'address_refused'";
        assert_eq!(world.count(refused, &[&hook]).await, 1, "{delivery}");
    }
    assert_eq!(inside.connections(), 0);
}
