//! Counts of single calls.

use std::{collections::BTreeSet, net::IpAddr, sync::Arc};

use adapter_postgres::Gathering;
use chrono::TimeDelta;
use futures_util::future::join_all;
use oauth::{ClientId, Limiter, Subject};

use crate::support::{Fixture, id, instant};

#[tokio::test(flavor = "multi_thread")]
async fn every_call_has_a_place_of_its_own_over_two_processes() {
    let fixture = Fixture::new().await;
    let clock = fixture.place.control_clock().await;
    clock.freeze(instant()).await;
    let counters = [
        fixture.database.rate_counter(),
        fixture.another(Gathering::Grouped).rate_counter(),
    ];
    let subject = Subject::client(ClientId::from(id()));
    let count = |n: usize| {
        let counter = Arc::clone(&counters[n % 2]);
        tokio::spawn(async move { counter.count(Limiter::TokenByClient, subject).await.unwrap() })
    };
    let counts = join_all((0..200).map(count))
        .await
        .into_iter()
        .map(Result::unwrap)
        .collect::<Vec<_>>();
    let places = counts.iter().map(|count| count.place).collect::<BTreeSet<_>>();
    assert_eq!(places, (1..=200).collect());
    assert!(counts.iter().all(|count| count.counted_at == instant()));
}

#[tokio::test]
async fn limiters_subjects_and_minutes_are_counted_apart() {
    let fixture = Fixture::new().await;
    let clock = fixture.place.control_clock().await;
    clock.freeze(instant()).await;
    let counter = fixture.database.rate_counter();
    let one = Subject::address("192.0.2.1".parse::<IpAddr>().unwrap());
    let two = Subject::address("192.0.2.2".parse::<IpAddr>().unwrap());
    let place = async |limiter, subject| counter.count(limiter, subject).await.unwrap().place;
    assert_eq!(place(Limiter::TokenByAddress, one).await, 1);
    assert_eq!(place(Limiter::TokenByAddress, one).await, 2);
    assert_eq!(place(Limiter::TokenByAddress, two).await, 1);
    assert_eq!(place(Limiter::AuthorizeByAddress, one).await, 1);
    clock.advance(TimeDelta::minutes(1)).await;
    let count = counter.count(Limiter::TokenByAddress, one).await.unwrap();
    assert_eq!(count.place, 1);
    assert_eq!(
        count.resets_at,
        "2026-03-01T10:02:00Z"
            .parse::<chrono::DateTime<chrono::Utc>>()
            .unwrap()
    );
}
