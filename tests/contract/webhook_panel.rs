//! The panel's page of deliveries: its content, and deliveries that are sent by hand.

use std::net::Ipv4Addr;

use blackbox::{EVENTS, Expect, Hook, Integration, Member, NameServer, Receiver, Reply, World, text};
use serde_json::{Value, json};
use testkit::HttpServer;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::{webhook_retries::unused_url, world, world_of_hooks};

const PAGE: &str = "/panel/deliveries";
/// The mark of a test event in the list.
const SAMPLE: &str = "<span class=\"tag\">Test</span>";

/// A signed-in seller, and an application of the seller.
async fn looking(world: &World) -> (Member, Integration) {
    let member = world.member().await;
    let own = world.integration_of(member.seller.clone()).await;
    (member, own)
}

/// The `https` URL of a port that answers everything with plaintext HTTP.
async fn speaks_no_tls() -> String {
    let server = HttpServer::start_raw(|mut stream| async move {
        let _ = stream.read_exact(&mut [0; 16]).await;
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
        let _ = stream.read_to_end(&mut Vec::new()).await;
    });
    format!("https://{}/", server.await.address)
}

fn id(of: &Value) -> String {
    text(of, "id")
}

#[tokio::test]
async fn failed_deliveries_are_listed_and_each_failure_is_explained() {
    let names = NameServer::start(&[("moved.example", &[Ipv4Addr::LOCALHOST])]).await;
    let names_at = names.address.to_string();
    let settings = [
        ("WEBHOOKS__NAME_SERVERS", names_at.as_str()),
        ("WEBHOOKS__ATTEMPT_TIMEOUT", "2s"),
    ];
    let world = world_of_hooks(&settings).await;
    let (mut member, own) = looking(&world).await;
    let (good, failing) = (Receiver::start().await, Receiver::start().await);
    let silent = Receiver::start().await;
    failing.answers(Reply::Status(503));
    silent.answers(Reply::Silence);
    let ((_socket, unused), without_tls) = (unused_url(), speaks_no_tls().await);
    let mut hooks = Vec::new();
    for url in [
        &good.url,
        &failing.url,
        &silent.url,
        &unused,
        &without_tls,
        "https://moved.example/",
    ] {
        let made = world.subscription(&own.token, url, &EVENTS).await;
        hooks.push(id(&made));
    }
    names.forgets("moved.example");
    world.any_order(&own.seller).await;
    let mut deliveries = Vec::new();
    for hook in &hooks {
        deliveries.push(world.attempted(&own.token, hook, 1).await);
    }
    let (delivered, failed) = deliveries.split_first().unwrap();
    assert_eq!(
        (&delivered["response_status"], &delivered["failure"]),
        (&json!(204), &json!(null))
    );
    let failures = failed.iter().map(|delivery| text(delivery, "failure"));
    let expected = ["status", "timeout", "connect", "tls", "address"];
    assert_eq!(failures.collect::<Vec<_>>(), expected);

    let all = member.browser.page(PAGE).await;
    let only = member.browser.page(&format!("{PAGE}?failed=1")).await;
    for delivery in &deliveries {
        all.shows(&id(delivery));
    }
    only.hides(&id(delivered));
    let explained = [
        "The receiver answered with status 503.",
        "There was no answer in time.",
        "The host refused the connection.",
        "the receiver does not speak TLS on this port",
        "name does not resolve (DNS).",
    ];
    for ((hook, delivery), words) in hooks[1..].iter().zip(failed).zip(explained) {
        only.shows(&id(delivery));
        let one = format!("{PAGE}?failed=1&subscription={hook}");
        let one = member.browser.page(&one).await;
        for told in [words, &id(delivery), "1 of 6"] {
            one.shows(told);
        }
        for other in explained.iter().filter(|other| **other != words) {
            one.hides(other);
        }
    }
}

#[tokio::test]
async fn a_delivery_is_repeated_by_hand() {
    let world = world_of_hooks(&[]).await;
    let (mut member, own) = looking(&world).await;
    let receiver = Receiver::start().await;
    let Hook { id: hook, secret } = world.hook(&own.token, &receiver).await;
    receiver.answers_first(&[Reply::Status(500)]);
    let order = world.any_order(&own.seller).await;
    let first = world.attempted(&own.token, &hook, 1).await;
    let page = member.browser.page(&format!("{PAGE}?failed=1")).await;
    page.hides(&secret);
    page.shows(&format!("<code>{}</code>", order.number));
    page.hides(SAMPLE);
    // The URL is whole for the application's owner.
    assert!(page.html.matches(&receiver.url).count() >= 3, "{}", page.html);
    let action = format!("{PAGE}/{}/again", id(&first));
    let form = page.form(&action);
    let queued = member.browser.sent(&form).await;
    let filtered = format!("{PAGE}?failed=1");
    assert!(queued.path.starts_with(&filtered), "{}", queued.path);
    queued.shows("The event is queued again");
    let delivered = world.attempted(&own.token, &hook, 2).await;
    assert!(delivered["delivered_at"].is_string(), "{delivered}");
    // Submitting the form again has no effect; another form makes the delivery again, from its beginning.
    member.browser.sent(&form).await;
    assert_eq!(world.delivery(&own.token, &hook).await, delivered);
    receiver.answers_first(&[Reply::Held(204)]);
    let form = member.browser.page(PAGE).await.form(&action);
    member
        .browser
        .sent(&form)
        .await
        .shows("The event is queued again");
    receiver.has(3).await;
    let form = member.browser.page(PAGE).await.form(&action);
    let told = member.browser.sent(&form).await;
    told.shows("an attempt is under way");
    let logged = "select count(*) from audit_log where action = 'delivery.repeated' and subject = $1";
    assert_eq!(world.count(logged, &[&id(&first)]).await, 2);
    receiver.lets_go();
    world.attempted(&own.token, &hook, 1).await;
}

#[tokio::test]
async fn from_when_a_new_secret_signs_is_shown() {
    let world = world().await;
    let (mut member, own) = looking(&world).await;
    let made = world
        .subscription(&own.token, "https://1.1.1.1/", &["order.paid"])
        .await;
    let told = "Signed with a new secret from";
    member.browser.page(PAGE).await.hides(told);
    let path = format!("/v1/webhooks/{}/secret-rotation", id(&made));
    let rotation = world.at("POST", &path).bearer(&own.token).send();
    let rotated = rotation.await.expect(200).json();
    let page = member.browser.page(PAGE).await;
    let from = text(&rotated, "active_from").replace('T', " ");
    for shown in [told, &from[.."2026-11-26 07:22".len()]] {
        page.shows(shown);
    }
    page.hides(&text(&rotated, "secret"));
    world.moved(&own.application, "suspension").await;
    let suspended = member.browser.page(PAGE).await;
    suspended.shows("Application suspended");
    suspended.hides("/test\"");
}

#[tokio::test]
async fn a_seller_deletes_a_subscription_whoever_made_it() {
    let world = world_of_hooks(&[]).await;
    let (mut member, own) = looking(&world).await;
    let receiver = Receiver::start().await;
    let hook = world.hook(&own.token, &receiver).await.id;
    let action = format!("{PAGE}/{hook}/delete");
    let asked = member.browser.page(&action).await;
    asked.shows(&format!("({}) to {}?", own.application.name, receiver.url));
    let mut stranger = world.member().await;
    stranger.browser.open(&action).await.expect(404);
    let theirs = stranger.browser.form("/panel/account").await;
    let stolen = asked.form(&action).with("csrf", theirs.value("csrf").unwrap());
    stranger.browser.post(&stolen).await.expect(404);
    let told = member.browser.sent(&asked.form(&action)).await;
    told.shows("The subscription is deleted.");
    assert_eq!(world.read(&own.token, "/v1/webhooks").await["items"], json!([]));
    let logged = "select count(*) from audit_log where action = 'subscription.deleted' and subject = $1";
    assert_eq!(world.count(logged, &[&hook]).await, 1);
}

#[tokio::test]
async fn the_panels_limits_are_those_of_the_application() {
    let settings = [("PANEL__PAGES_PER_MINUTE", "1000"), ("SERVER__WORKERS", "none")];
    let world = world_of_hooks(&settings).await;
    world.stop_clock("2026-03-01T12:00:30Z").await;
    let (mut member, own) = looking(&world).await;
    let receiver = Receiver::start().await;
    let hook = world.hook(&own.token, &receiver).await.id;
    let test = || world.testing(&own.token, &hook).send();
    let action = format!("{PAGE}/{hook}/test");
    let form = member.browser.page(PAGE).await.form(&action);
    let told = member.browser.sent(&form).await;
    told.shows("A test event is queued.");
    told.shows(SAMPLE);
    for _ in 1..10 {
        test().await.expect(201);
    }
    test().await.refused(429, "rate_limited");
    let one_more = member.browser.page(PAGE).await.form(&action);
    let told = member.browser.sent(&one_more).await;
    told.shows("at most 10 test events a minute");
    // An earlier form gets its first result again.
    member.browser.sent(&form).await.shows("A test event is queued.");
    let logged = "select count(*) from audit_log where action = 'test_event.sent' and subject = $1";
    assert_eq!(world.count(logged, &[&hook]).await, 1);
}
