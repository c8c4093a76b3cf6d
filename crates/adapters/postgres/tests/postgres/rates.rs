//! Counts of single calls.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
    sync::Arc,
};

use chrono::TimeDelta;
use futures_util::{future::join_all, join};
use kernel::StoreError;
use oauth::{ClientId, Limiter, Subject};

use crate::consenting::somebody_waits;
use crate::support::{Fixture, id, instant};

#[tokio::test(flavor = "multi_thread")]
async fn every_call_has_a_place_of_its_own_over_two_processes() {
    let fixture = Fixture::new().await;
    let clock = fixture.place.control_clock().await;
    clock.freeze(instant()).await;
    let counters = [(), ()].map(|()| fixture.another().rate_counter());
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

#[tokio::test(flavor = "multi_thread")]
async fn calls_of_many_subjects_that_gather_keep_their_places_apart() {
    let fixture = Fixture::new().await;
    let clock = fixture.place.control_clock().await;
    clock.freeze(instant()).await;
    let subjects: Vec<_> = (0..9).map(|_| Subject::client(ClientId::from(id()))).collect();
    let limiters = [
        Limiter::TokenByClient,
        Limiter::TokenByAddress,
        Limiter::SignInByAccount,
    ];
    // Two processes with the same counters in opposite orders: unsorted, they would wait for each other in a circle.
    let one = fixture.another().rate_counter();
    let other = fixture.another().rate_counter();
    let calls: Vec<_> = (0..360)
        .map(|n| (limiters[n % 3], subjects[n % 9 / 3 * 3 + n / 40 % 3]))
        .collect();
    let forth = calls
        .iter()
        .map(|(limiter, subject)| one.count(*limiter, *subject));
    let back = calls
        .iter()
        .rev()
        .map(|(limiter, subject)| other.count(*limiter, *subject));
    let (forth, back) = join!(join_all(forth), join_all(back));
    let mut places = BTreeMap::<_, BTreeSet<_>>::new();
    for ((limiter, subject), count) in calls.iter().zip(forth).chain(calls.iter().rev().zip(back)) {
        let count = count.unwrap();
        let new = places
            .entry((limiter.code(), subject.uuid()))
            .or_default()
            .insert(count.place);
        assert!(new, "a place is nobody else's");
        assert_eq!(count.counted_at, instant());
    }
    let all: usize = places.values().map(BTreeSet::len).sum();
    assert_eq!(all, 720);
    for places in places.values() {
        assert_eq!(places.last().copied(), u64::try_from(places.len()).ok());
    }
}

#[tokio::test]
async fn a_count_whose_answer_is_lost_is_an_error_and_not_sent_again() {
    let fixture = Fixture::new().await;
    let (holding, looking) = (fixture.place.connect().await, fixture.place.connect().await);
    let counter = fixture.another().rate_counter();
    let subject = Subject::client(ClientId::from(id()));
    holding
        .batch_execute("begin; lock table rate_windows in access exclusive mode")
        .await
        .unwrap();
    let cutting = async {
        somebody_waits(&looking).await;
        let end = "select pg_terminate_backend(pid) from pg_stat_activity where wait_event_type = 'Lock' \
            and application_name = 'seller-api' and datname = current_database()";
        looking.batch_execute(end).await.unwrap();
        holding.batch_execute("rollback").await.unwrap();
    };
    let (lost, ()) = join!(counter.count(Limiter::TokenByClient, subject), cutting);
    assert!(matches!(lost, Err(StoreError::Unavailable(_))), "{lost:?}");
    // As soon as the end of the connection is noticed, there is a new one.
    let next = loop {
        match counter.count(Limiter::TokenByClient, subject).await {
            Ok(count) => break count,
            Err(_) => tokio::task::yield_now().await,
        }
    };
    assert_eq!(next.place, 1);
}

#[tokio::test]
async fn counts_do_not_wait_for_the_disk() {
    let fixture = Fixture::new().await;
    fixture.watch_commits("rate_windows").await;
    let counter = fixture.another().rate_counter();
    let subject = Subject::client(ClientId::from(id()));
    let counts = join_all((0..3).map(|_| counter.count(Limiter::TokenByClient, subject))).await;
    assert!(counts.iter().all(Result::is_ok));
    assert_eq!(fixture.seen_commits().await, ["off"]);
}
