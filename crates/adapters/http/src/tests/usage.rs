//! Calls are noted by their caller and the status of their answer.

use super::fixture::{Fixture, OFFER, good, principal};
use crate::UsageMeter;

fn noted(meter: &UsageMeter) -> Vec<(u16, u32)> {
    let counts = meter.take();
    assert!(counts.iter().all(|count| {
        count.key.seller == principal().seller && count.key.client_id == principal().client_id
    }));
    counts
        .iter()
        .map(|count| (count.key.status, count.calls))
        .collect()
}

#[actix_web::test]
async fn what_was_counted_is_noted_whatever_came_of_it() {
    for (place, url, status) in [
        (1, "/v1/me", 200),
        (1, "/v1/nothing", 404),
        (1, "/v1/offers?limit=x", 400),
        (601, "/v1/me", 429),
    ] {
        let fixture = Fixture::at_place(principal(), place);
        let meter = fixture.usage.clone();
        assert_eq!(fixture.get(url).await.status, status);
        assert_eq!(noted(&meter), [(status, 1)]);
    }
    let mut fixture = Fixture::admitting(principal());
    fixture
        .offers
        .expect_offer()
        .once()
        .returning(|_, _| panic!("half-way"));
    let meter = fixture.usage.clone();
    fixture.get(&format!("/v1/offers/{OFFER}")).await;
    assert_eq!(noted(&meter), [(500, 1)]);
}

#[actix_web::test]
async fn what_was_not_counted_is_not_noted() {
    let mut fixture = Fixture::new();
    fixture.gate.expect_admit().once().returning(|_| Ok(None));
    let meter = fixture.usage.clone();
    assert_eq!(fixture.get("/v1/me").await.status, 401);
    assert!(noted(&meter).is_empty());
    let fixture = Fixture::new();
    let meter = fixture.usage.clone();
    let unnamed = good("/v1/me").insert_header(("user-agent", "nobody"));
    assert_eq!(fixture.send(unnamed).await.status, 400);
    assert!(noted(&meter).is_empty());
}
