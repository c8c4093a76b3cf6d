//! `GET` and `POST /v1/webhooks`, `DELETE /v1/webhooks/{id}`

use std::sync::{Arc, Mutex};

use actix_web::http::Method;
use actix_web::test::TestRequest;
use kernel::{Claimed, Fingerprint};
use oauth::{ClientId, Principal};
use usecases::MockTransaction;
use uuid::Uuid;
use webhooks::{AddressPolicy, HostRefused, NewSubscription, Subscription, WebhookEvent, WebhookUrl};

use super::fixture::{Answered, Fixture, good, now, principal};
use super::trade::{Notes, later, post, transaction, writer};

const WEBHOOKS: &str = "/v1/webhooks";
const BODY: &str = r#"{"url":"https://example.com/hook?a=b","events":["order.paid","offer.rejected"]}"#;
const SECRET: &str = "ps_wh_BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc";

fn subscription(url: &str, active: bool) -> Subscription {
    Subscription {
        id: Uuid::from_u128(0xc).into(),
        client_id: principal().client_id,
        url: WebhookUrl::parse(url, AddressPolicy::Any).unwrap(),
        events: vec![WebhookEvent::OrderPaid, WebhookEvent::OfferRejected],
        active,
        created_at: now(),
    }
}

/// A transaction that has a place, or none, and keeps what it is given.
fn keeping(place: bool, kept: &Arc<Mutex<Vec<NewSubscription>>>) -> MockTransaction {
    let mut transaction = transaction();
    transaction
        .expect_take_subscription_place()
        .once()
        .withf(|seller, client_id| (*seller, *client_id) == (principal().seller, principal().client_id))
        .returning(move |_, _| Ok(place));
    let kept = Arc::clone(kept);
    transaction.expect_add_subscription().returning(move |new| {
        kept.lock().unwrap().push(new);
        Ok(())
    });
    transaction.expect_commit().returning(|| Ok(()));
    transaction
}

fn with_hosts(mut fixture: Fixture, fine: bool) -> Fixture {
    let answer = if fine { Ok(()) } else { Err(HostRefused) };
    fixture.hosts.expect_check().once().returning(move |_| answer);
    fixture
}

/// Creates what this body says, and tells what was kept.
async fn create(url: &str, body: &str) -> (Answered, Vec<NewSubscription>) {
    let kept = Arc::default();
    let fixture = with_hosts(Fixture::writing(), true).transactions(vec![keeping(true, &kept)]);
    let answered = fixture.send(post(url, body)).await;
    let kept = kept.lock().unwrap().clone();
    (answered, kept)
}

#[actix_web::test]
async fn creation_tells_the_secret() {
    let (answered, kept) = create(WEBHOOKS, BODY).await;
    assert_eq!(answered.status, 201);
    insta::assert_snapshot!(answered.text(), @r#"{"id":"00000000-0000-0000-0000-000000000001","url":"https://example.com/hook?a=b","events":["order.paid","offer.rejected"],"active":true,"created_at":"2023-11-15T01:13:20.000000Z","secret":"ps_wh_BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc"}"#);
    assert_eq!(kept.len(), 1);
    assert_eq!(kept[0].secret.reveal(), SECRET);
    assert_eq!(
        (kept[0].seller, kept[0].created_at),
        (principal().seller, later())
    );
    let (answered, _) = create("/v1/webhooks?fields=secret", BODY).await;
    let expected = format!(r#"{{"id":"00000000-0000-0000-0000-000000000001","secret":"{SECRET}"}}"#);
    assert_eq!(answered.text(), expected);
}

#[actix_web::test]
async fn the_url_comes_back_as_it_was_sent_and_events_once() {
    for url in [
        "https://Example.COM:443/a/../b",
        "HTTPS://example.com.",
        "https://xn--lw-fka7c.example:8443/?q=%c5%bc",
    ] {
        let body = format!(r#"{{"events":["order.paid","order.created","order.paid"],"url":"{url}"}}"#);
        let (answered, kept) = create(WEBHOOKS, &body).await;
        let json = answered.json();
        assert_eq!(json["url"], url);
        assert_eq!(json["events"], serde_json::json!(["order.paid", "order.created"]));
        assert_eq!(kept[0].url.as_str(), url);
    }
}

#[actix_web::test]
async fn each_field_has_its_rule() {
    let url = |url: &str| format!(r#"{{"url":{url},"events":["order.paid"]}}"#);
    let events = |events: &str| format!(r#"{{"url":"https://example.com/","events":{events}}}"#);
    for (body, paths) in [
        ("{}".to_owned(), vec!["url", "events"]),
        (
            r#"{"x":1,"events":[],"url":7}"#.to_owned(),
            vec!["url", "events", "x"],
        ),
        (url("null"), vec!["url"]),
        (url(r#""""#), vec!["url"]),
        (url(r#""http://example.com/""#), vec!["url"]),
        (url(r#""https://localhost/""#), vec!["url"]),
        (url(r#""https://10.0.0.1/""#), vec!["url"]),
        (url(r#""https://2130706433/""#), vec!["url"]),
        (url(r#""https://[::ffff:8.8.8.8]/""#), vec!["url"]),
        (url(r#""https://user@example.com/""#), vec!["url"]),
        (url(r#""https://example.com/#a""#), vec!["url"]),
        (url(r#""https://example.com\\@evil.example/""#), vec!["url"]),
        (
            url(&format!(r#""https://example.com/{}""#, "x".repeat(2029))),
            vec!["url"],
        ),
        (events("null"), vec!["events"]),
        (events(r#""order.paid""#), vec!["events"]),
        (
            events(r#"["order.paid","order.lost","return.created",1]"#),
            vec!["events[1]", "events[2]", "events[3]"],
        ),
        (events(r#"["Order.paid"]"#), vec!["events[0]"]),
        ("[]".to_owned(), vec!["-"]),
    ] {
        let answered = Fixture::writing().send(post(WEBHOOKS, &body)).await;
        assert_eq!(answered.paths(), paths, "{body}");
    }
}

#[actix_web::test]
async fn a_host_that_cannot_be_sent_to_is_an_error_of_the_url() {
    let fixture = with_hosts(Fixture::writing(), false);
    let answered = fixture.send(post(WEBHOOKS, BODY)).await;
    assert_eq!(answered.paths(), ["url"]);
}

#[actix_web::test]
async fn local_development_may_subscribe_anywhere() {
    let kept = Arc::default();
    let mut fixture = with_hosts(Fixture::writing(), true).transactions(vec![keeping(true, &kept)]);
    fixture.addresses = AddressPolicy::Any;
    let body = r#"{"url":"http://127.0.0.1:3000/hook","events":["order.paid"]}"#;
    let answered = fixture.send(post(WEBHOOKS, body)).await;
    assert_eq!(answered.status, 201, "{}", answered.text());
}

#[actix_web::test]
async fn there_is_no_twenty_first() {
    let kept = Arc::default();
    let fixture = with_hosts(Fixture::writing(), true).transactions(vec![keeping(false, &kept)]);
    let answered = fixture.send(post(WEBHOOKS, BODY)).await;
    assert_eq!(answered.refusal(), (422, "webhook_limit_reached".to_owned()));
    assert!(kept.lock().unwrap().is_empty());
}

#[actix_web::test]
async fn nobody_is_asked_about_the_host_for_a_key_that_is_taken() {
    let fixture = Fixture::writing().claimed(Claimed::Reused);
    let keyed = post(WEBHOOKS, BODY).insert_header(("idempotency-key", "k"));
    assert_eq!(fixture.send(keyed).await.refusal().0, 422);
}

/// The fingerprint of a keyed request of this caller.
async fn fingerprint(caller: Principal, request: TestRequest) -> Fingerprint {
    let seen = Arc::new(Mutex::new(None));
    let mut fixture = Fixture::admitting(caller);
    let noted = Arc::clone(&seen);
    fixture.claims.expect_claim().once().returning(move |claim, _| {
        *noted.lock().unwrap() = Some(claim.fingerprint);
        Ok(Claimed::InProgress)
    });
    let answered = fixture
        .send(request.insert_header(("idempotency-key", "k")))
        .await;
    assert_eq!(answered.status, 409);
    let seen = *seen.lock().unwrap();
    seen.unwrap()
}

#[actix_web::test]
async fn no_application_replays_another_ones_secret() {
    let mut other = writer();
    other.client_id = ClientId::from(Uuid::from_u128(0xbb));
    for request in [
        || post(WEBHOOKS, BODY),
        || post("/v1/webhooks?fields=secret", BODY),
    ] {
        let own = fingerprint(writer(), request()).await;
        assert_eq!(own, fingerprint(writer(), request()).await);
        assert_ne!(own, fingerprint(other.clone(), request()).await);
    }
}

#[actix_web::test]
async fn the_list_has_everything_but_secrets() {
    let list = |url: &'static str| async move {
        let mut fixture = Fixture::writing();
        let own =
            |seller: &_, client_id: &_| (*seller, *client_id) == (principal().seller, principal().client_id);
        fixture
            .subscriptions
            .expect_subscriptions()
            .once()
            .withf(own)
            .returning(|_, _| {
                Ok(vec![
                    subscription("https://example.com/A", true),
                    subscription("http://old.example", false),
                ])
            });
        fixture.get(url).await
    };
    insta::assert_snapshot!(list(WEBHOOKS).await.text(), @r#"{"items":[{"id":"00000000-0000-0000-0000-00000000000c","url":"https://example.com/A","events":["order.paid","offer.rejected"],"active":true,"created_at":"2023-11-14T22:13:20.000000Z"},{"id":"00000000-0000-0000-0000-00000000000c","url":"http://old.example","events":["order.paid","offer.rejected"],"active":false,"created_at":"2023-11-14T22:13:20.000000Z"}],"available_events":["order.created","order.paid","order.shipped","order.delivered","order.cancelled","offer.rejected"]}"#);
    let json = list("/v1/webhooks?fields=active").await.json();
    assert_eq!(
        json["items"][1],
        serde_json::json!({"id": "00000000-0000-0000-0000-00000000000c", "active": false})
    );
}

#[actix_web::test]
async fn a_whole_list_has_no_pages() {
    let answered = Fixture::writing()
        .get("/v1/webhooks?fields=secret&limit=1&after=x")
        .await;
    assert_eq!(answered.paths(), ["fields", "limit", "after"]);
    let answered = Fixture::writing().send(delete("/v1/webhooks/1?fields=id")).await;
    assert_eq!(answered.paths(), ["fields"]);
}

fn delete(url: &str) -> TestRequest {
    good(url).method(Method::DELETE)
}

/// A transaction that knows one subscription.
fn removing(notes: &Notes) -> MockTransaction {
    let mut transaction = transaction();
    transaction
        .expect_remove_subscription()
        .once()
        .returning(|seller, client_id, id| {
            let own = (seller, client_id) == (principal().seller, principal().client_id);
            Ok(own && id == Uuid::from_u128(0xc).into())
        });
    let notes = notes.clone();
    transaction.expect_commit().returning(move || {
        notes.add("commit");
        Ok(())
    });
    transaction
}

#[actix_web::test]
async fn deletion_has_no_body() {
    let notes = Notes::default();
    let fixture = Fixture::writing().transactions(vec![removing(&notes)]);
    let request = delete("/v1/webhooks/00000000-0000-0000-0000-00000000000c");
    let answered = fixture.send(request.set_payload("not looked at")).await;
    assert_eq!((answered.status.as_u16(), answered.bytes.len()), (204, 0));
    assert_eq!(answered.header("content-type"), None);
    assert_eq!(notes.all(), ["commit"]);
}

#[actix_web::test]
async fn what_is_not_there_is_not_deleted() {
    let notes = Notes::default();
    let fixture = Fixture::writing().transactions(vec![removing(&notes)]);
    let other = delete("/v1/webhooks/00000000-0000-0000-0000-00000000000d");
    assert_eq!(fixture.send(other).await.refusal(), (404, "not_found".to_owned()));
    assert!(notes.all().is_empty());
    let no_id = Fixture::writing().send(delete("/v1/webhooks/17")).await;
    assert_eq!(no_id.refusal().0, 404);
}
