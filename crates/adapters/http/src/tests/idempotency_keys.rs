//! `Idempotency-Key`: which keys are taken, when they are claimed, and what a key answers that is taken already.

use std::time::Duration;

use actix_web::http::Method;
use actix_web::test::TestRequest;
use kernel::{Claimed, KeySpace, Remembered};
use oauth::ScopeSet;

use super::fixture::{Answered, Fixture, LEASE, OFFER, WINDOW_END, good, offer, principal};
use super::trade::{Notes, PARCEL, SHIPMENTS, finding, patch, patching, post, writer};

const BODY: &str = r#"{"stock":1}"#;

fn keyed(key: &str) -> TestRequest {
    patch(BODY).insert_header(("idempotency-key", key))
}

fn remembered(status: u16, body: &[u8]) -> Claimed {
    Claimed::Completed(Remembered {
        status,
        body: body.to_vec(),
    })
}

async fn answered(claimed: Claimed) -> Answered {
    Fixture::writing().claimed(claimed).send(keyed("k")).await
}

#[actix_web::test]
async fn a_request_without_a_key_claims_nothing() {
    let fixture = Fixture::writing().transactions(vec![patching()]);
    assert_eq!(fixture.send(patch(BODY)).await.status, 200);
}

#[actix_web::test]
async fn printable_keys_of_1_to_128_characters_are_claimed_as_they_are() {
    for key in ["a", "a, b", "~!\"", &"k".repeat(128)] {
        let mut fixture = Fixture::writing().transactions(Vec::new());
        let expected = key.to_owned();
        fixture
            .claims
            .expect_claim()
            .once()
            .withf(move |claim, lease: &Duration| {
                let seller = KeySpace::Seller(principal().seller);
                (claim.key.as_str(), claim.space, *lease) == (&*expected, seller, LEASE)
            })
            .returning(|_, _| Ok(Claimed::InProgress));
        assert_eq!(fixture.send(keyed(key)).await.status, 409, "{key}");
    }
}

#[actix_web::test]
async fn other_keys_are_refused_by_the_headers_name() {
    for key in ["", &"k".repeat(129), "klucz-ż", "a\tb"] {
        let answered = Fixture::writing().send(keyed(key)).await;
        assert_eq!(answered.paths(), ["Idempotency-Key"], "{key}");
    }
    let twice = keyed("a").append_header(("idempotency-key", "a"));
    assert_eq!(Fixture::writing().send(twice).await.paths(), ["Idempotency-Key"]);
}

#[actix_web::test]
async fn reading_ignores_keys() {
    for method in [Method::GET, Method::HEAD] {
        let mut fixture = Fixture::admitting(principal());
        fixture.offers.expect_offer().returning(|_, _| Ok(Some(offer())));
        let request = good(&format!("/v1/offers/{OFFER}"))
            .method(method)
            .insert_header(("idempotency-key", "a"))
            .append_header(("idempotency-key", "ż"));
        assert_eq!(fixture.send(request).await.status, 200);
    }
}

#[actix_web::test]
async fn the_first_request_is_still_running() {
    let answered = answered(Claimed::InProgress).await;
    assert_eq!(answered.refusal(), (409, "idempotency_in_progress".to_owned()));
    assert_eq!(answered.header("retry-after"), Some("2"));
    assert_eq!(answered.header("idempotent-replayed"), None);
}

#[actix_web::test]
async fn the_key_belongs_to_another_request() {
    let answered = answered(Claimed::Reused).await;
    assert_eq!(answered.refusal(), (422, "idempotency_key_reused".to_owned()));
    assert_eq!(answered.header("retry-after"), None);
}

#[actix_web::test]
async fn a_replay_has_the_remembered_bytes_and_headers_of_its_own() {
    let bytes = "{\"id\" : \"x\",\n \"title\":\"Żółw\"}".as_bytes();
    for status in [200, 201] {
        let request = keyed("k").insert_header(("x-request-id", "my-request-0001"));
        let fixture = Fixture::writing().claimed(remembered(status, bytes));
        let answered = fixture.send(request).await;
        assert_eq!((answered.status.as_u16(), &*answered.bytes), (status, bytes));
        assert_eq!(answered.header("idempotent-replayed"), Some("true"));
        assert_eq!(answered.header("x-trace-id"), Some("my-request-0001"));
        assert_eq!(answered.header("x-ratelimit-remaining"), Some("597"));
        assert_eq!(answered.header("x-ratelimit-reset"), Some(WINDOW_END));
        assert_eq!(answered.header("content-type"), Some("application/json"));
        assert_eq!(answered.header("cache-control"), Some("no-store"));
    }
    let answered = answered(remembered(204, b"")).await;
    assert_eq!((answered.status.as_u16(), answered.bytes.len()), (204, 0));
    assert_eq!(answered.header("content-type"), None);
    assert_eq!(answered.header("idempotent-replayed"), Some("true"));
}

#[actix_web::test]
async fn a_replay_passes_limit_and_scope_like_any_request() {
    let beyond = Fixture::at_place(writer(), 601);
    assert_eq!(beyond.send(keyed("k")).await.refusal().0, 429);
    let mut stranger = writer();
    stranger.scopes = ScopeSet::parse("offers:read").unwrap();
    assert_eq!(
        Fixture::admitting(stranger).send(keyed("k")).await.refusal().0,
        403
    );
}

#[actix_web::test]
async fn the_key_is_claimed_after_the_body_and_before_the_resource() {
    // Nothing is claimed for a request that cannot be right.
    let bad = patch("{}").insert_header(("idempotency-key", "k"));
    assert_eq!(Fixture::writing().send(bad).await.paths(), ["-"]);

    // What the key stands for is told whether or not the resource can exist.
    for url in ["/v1/offers/17", &format!("/v1/offers/{OFFER}")] {
        let fixture = Fixture::writing().claimed(Claimed::Reused);
        assert_eq!(fixture.send(keyed("k").uri(url)).await.refusal().0, 422, "{url}");
    }

    let notes = Notes::default();
    let mut fixture = Fixture::writing();
    let (claiming, reading, releasing) = (notes.clone(), notes.clone(), notes.clone());
    fixture.claims.expect_claim().once().returning(move |_, _| {
        claiming.add("claim");
        Ok(Claimed::Run)
    });
    fixture.orders.expect_order().once().returning(move |_, _| {
        reading.add("read");
        Ok(None)
    });
    fixture.claims.expect_release().once().returning(move |_| {
        releasing.add("release");
        Ok(())
    });
    let request = post(SHIPMENTS, PARCEL).insert_header(("idempotency-key", "k"));
    assert_eq!(fixture.send(request).await.refusal().0, 404);
    assert_eq!(notes.all(), ["claim", "read", "release"]);
}

#[actix_web::test]
async fn success_is_remembered_as_the_last_step_before_the_commit() {
    let notes = Notes::default();
    let (completing, committing) = (notes.clone(), notes.clone());
    let mut transaction = finding(Some(offer()));
    transaction.expect_save_offers().once().returning(|_, _| Ok(()));
    transaction
        .expect_complete()
        .once()
        .returning(move |claim, answer| {
            let body = String::from_utf8(answer.body.clone()).unwrap();
            completing.add(format!("{} {} {body}", claim.key.as_str(), answer.status));
            Ok(())
        });
    transaction.expect_commit().once().returning(move || {
        committing.add("commit");
        Ok(())
    });
    let fixture = Fixture::writing()
        .claimed(Claimed::Run)
        .transactions(vec![transaction]);
    let answered = fixture.send(keyed("k")).await;
    assert_eq!(answered.header("idempotent-replayed"), None);
    assert_eq!(
        notes.all(),
        [format!("k 200 {}", answered.text()), "commit".to_owned()]
    );
}
