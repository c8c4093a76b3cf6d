//! What is counted of requests.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use actix_web::http::Method;
use actix_web::test::TestRequest;
use metrics::{
    Counter, CounterFn, Gauge, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder, SharedString, Unit,
};

use kernel::{Claimed, LOST_CLAIM, MockIdempotencyClaims, Remembered, StoreError};
use usecases::MockTransaction;

use super::fixture::{Fixture, OFFER, good, offer, principal, unavailable};
use super::trade::{finding, patch, patching};

/// Adds up what is counted and recorded, by name and labels.
#[derive(Clone, Default)]
struct Sums(Arc<Mutex<BTreeMap<String, u64>>>);

/// One line of the sums.
struct Sum(Sums, String);

impl CounterFn for Sum {
    fn increment(&self, value: u64) {
        *self.0.0.lock().unwrap().entry(self.1.clone()).or_default() += value;
    }
    fn absolute(&self, _: u64) {}
}

impl HistogramFn for Sum {
    fn record(&self, _: f64) {
        self.increment(1);
    }
}

impl Recorder for Sums {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(Arc::new(Sum(self.clone(), line(key))))
    }
    fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::noop()
    }
    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::from_arc(Arc::new(Sum(self.clone(), line(key))))
    }
}

fn line(key: &Key) -> String {
    let labels: Vec<_> = key
        .labels()
        .map(|label| format!("{}={}", label.key(), label.value()))
        .collect();
    format!("{} {}", key.name(), labels.join(" "))
}

#[actix_web::test]
async fn requests_are_counted_by_template_and_clients_invent_no_labels() {
    let sums = Sums::default();
    let _recording = metrics::set_default_local_recorder(&sums);
    let mut fixture = Fixture::admitting(principal());
    fixture.offers.expect_offer().once().returning(|_, _| Ok(None));
    fixture.get(&format!("/v1/offers/{OFFER}")).await;
    Fixture::admitting(principal()).get("/v1/made-up").await;
    let brew = Method::from_bytes(b"BREW").unwrap();
    Fixture::admitting(principal())
        .send(good("/v1/me").method(brew))
        .await;
    let forwarded = TestRequest::get()
        .uri("/other")
        .insert_header(("x-forwarded-for", "198.51.100.7"));
    Fixture::new().send(forwarded).await;

    let sums = sums.0.lock().unwrap();
    let lines: Vec<_> = sums.iter().map(|(line, sum)| format!("{line} {sum}")).collect();
    insta::assert_snapshot!(lines.join("\n"), @r"
    http_request_duration_seconds listener=api route=- method=GET status=404 2
    http_request_duration_seconds listener=api route=/v1/me method=other status=404 1
    http_request_duration_seconds listener=api route=/v1/offers/{id} method=GET status=404 1
    http_requests_total listener=api route=- method=GET status=404 2
    http_requests_total listener=api route=/v1/me method=other status=404 1
    http_requests_total listener=api route=/v1/offers/{id} method=GET status=404 1
    http_untrusted_forwarding_total  1
    rate_limit_decisions_total limit=api decision=admitted 3
    ");
}

/// Sends a PATCH with a key and one transaction, over claims that are armed so.
async fn keyed(transaction: Option<MockTransaction>, arm: impl FnOnce(&mut MockIdempotencyClaims)) {
    let mut fixture = Fixture::writing().transactions(transaction.into_iter().collect());
    arm(&mut fixture.claims);
    fixture.claims.expect_release().returning(|_| Ok(()));
    let request = patch(r#"{"stock":1}"#).insert_header(("idempotency-key", "k"));
    fixture.send(request).await;
}

fn granting(claims: &mut MockIdempotencyClaims) {
    claims.expect_claim().returning(|_, _| Ok(Claimed::Run));
}

/// A transaction whose answer to COMMIT is lost.
fn losing() -> MockTransaction {
    let mut transaction = finding(Some(offer()));
    transaction.expect_save_offers().returning(|_, _| Ok(()));
    transaction.expect_complete().returning(|_, _| Ok(()));
    transaction
        .expect_commit()
        .returning(|| Err(kernel::CommitError::Unknown(unavailable())));
    transaction
}

#[actix_web::test]
async fn keys_are_counted_by_what_becomes_of_them() {
    let sums = Sums::default();
    let _recording = metrics::set_default_local_recorder(&sums);
    let known = || Remembered {
        status: 200,
        body: Vec::new(),
    };
    for claimed in [Claimed::InProgress, Claimed::Reused, Claimed::Completed(known())] {
        keyed(None, |claims| {
            claims.expect_claim().returning(move |_, _| Ok(claimed.clone()));
        })
        .await;
    }
    let mut done = patching();
    done.expect_complete().returning(|_, _| Ok(()));
    keyed(Some(done), granting).await;
    keyed(Some(finding(None)), granting).await;
    keyed(Some(losing()), |claims| {
        granting(claims);
        claims.expect_outcome().returning(move |_| Ok(Some(known())));
    })
    .await;
    keyed(Some(losing()), |claims| {
        granting(claims);
        claims.expect_outcome().returning(|_| Ok(None));
    })
    .await;
    let mut ousted = finding(Some(offer()));
    ousted.expect_save_offers().returning(|_, _| Ok(()));
    ousted.expect_complete().returning(|_, _| {
        Err(StoreError::Conflict {
            constraint: LOST_CLAIM.to_owned(),
        })
    });
    keyed(Some(ousted), granting).await;

    let sums = sums.0.lock().unwrap();
    let keys = sums.iter().filter(|(line, _)| line.starts_with("idempotency"));
    let lines: Vec<_> = keys.map(|(line, sum)| format!("{line} {sum}")).collect();
    insta::assert_snapshot!(lines.join("\n"), @r"
    idempotency_claims_total listener=api outcome=in_progress 1
    idempotency_claims_total listener=api outcome=lost 1
    idempotency_claims_total listener=api outcome=recovered 1
    idempotency_claims_total listener=api outcome=released 1
    idempotency_claims_total listener=api outcome=replayed 1
    idempotency_claims_total listener=api outcome=reused 1
    idempotency_claims_total listener=api outcome=run 5
    idempotency_claims_total listener=api outcome=unanswered 1
    ");
}
