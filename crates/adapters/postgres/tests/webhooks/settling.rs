//! What a settlement records, and that it does so once.

use chrono::TimeDelta;
use webhooks::{Attempted, Conclusion, DeliveryState, Failure, Fate, Outcome, Release};

use crate::support::{Fixture, all_ended, ended, id, ids, release};

#[tokio::test]
async fn the_ends_of_attempts_are_told_as_they_were() {
    let fixture = Fixture::new().await;
    let seller = fixture.seller().await;
    let application = fixture.application(seller).await;
    let lane = fixture.subscribe(seller, application).await;
    fixture.queue(lane, 4).await;
    let claimed = fixture.claim_one().await;
    let due = &claimed.deliveries;
    let failed = |n: usize, failure: Failure, fate| Conclusion {
        outcome: Outcome::Failed(failure),
        fate,
        ..ended(claimed.hold, &due[n], 500)
    };
    let conclusions = [
        ended(claimed.hold, &due[0], 204),
        ended(claimed.hold, &due[1], 999),
        failed(
            2,
            Failure::tls("certificate: expired"),
            Fate::Retry(TimeDelta::minutes(5)),
        ),
        failed(3, Failure::Dns, Fate::Retry(TimeDelta::hours(2))),
    ];
    fixture.settle(&conclusions, &[release(claimed.hold)]).await;
    let history = fixture
        .database
        .subscriptions()
        .history(seller, application, lane.subscription)
        .await
        .unwrap()
        .unwrap();
    let newest_first: Vec<_> = due.iter().rev().map(|due| due.id).collect();
    assert_eq!(
        history.iter().map(|told| told.id).collect::<Vec<_>>(),
        newest_first
    );
    let after = |outcome: &Outcome| Attempted {
        outcome: outcome.clone(),
        duration: std::time::Duration::from_millis(12),
    };
    for (told, conclusion) in history.iter().rev().zip(&conclusions) {
        let last = after(&conclusion.outcome);
        match (told.state.clone(), conclusion.fate) {
            (
                DeliveryState::Delivered {
                    attempt: 1,
                    last: told,
                    ..
                },
                Fate::Delivered,
            ) => assert_eq!(told, last),
            (
                DeliveryState::Waiting {
                    attempt: 1,
                    last: told,
                    due_at,
                },
                Fate::Retry(delay),
            ) => {
                assert_eq!(told, last);
                let clock = fixture.client.query_one("select api_now()", &[]).await.unwrap();
                let ahead = due_at - clock.get::<_, chrono::DateTime<chrono::Utc>>(0);
                assert!(
                    ahead <= delay && ahead > delay - TimeDelta::seconds(30),
                    "{ahead}"
                );
            }
            other => panic!("{other:?}"),
        }
    }
    let sleeps = fixture.sleeps(lane).await.unwrap();
    assert!(
        sleeps > TimeDelta::seconds(30) && sleeps <= TimeDelta::minutes(1),
        "until the next is due: {sleeps}"
    );
}

#[tokio::test]
async fn six_attempts_exhaust_a_delivery() {
    let fixture = Fixture::new().await;
    let lane = fixture.lane().await;
    fixture.queue(lane, 1).await;
    for attempt in 0..6_u8 {
        fixture.tamper("update deliveries set due_at = api_now() where due_at is not null; update subscriptions set wake_at = api_now()").await;
        let claimed = fixture.claim_one().await;
        assert_eq!(claimed.deliveries[0].attempt, attempt);
        let mut end = ended(claimed.hold, &claimed.deliveries[0], 500);
        if attempt == 5 {
            end.fate = Fate::Exhausted;
        }
        fixture.settle(&[end], &[release(claimed.hold)]).await;
    }
    let exhausted =
        "select count(*) from deliveries where attempt = 6 and due_at is null and delivered_at is null";
    assert_eq!(fixture.count(exhausted).await, 1);
    assert_eq!(fixture.sleeps(lane).await, None);
}

#[tokio::test]
async fn a_settlement_sent_twice_changes_nothing_twice() {
    let fixture = Fixture::new().await;
    let lane = fixture.lane().await;
    fixture.queue(lane, 3).await;
    let claimed = fixture.claim_one().await;
    let ends = all_ended(&claimed, 503);
    let state = "select coalesce(sum(attempt * 1000 + extract(epoch from due_at - created_at)), 0)::bigint from deliveries";
    fixture.settle(&ends, &[]).await;
    let before = fixture.count(state).await;
    fixture.settle(&ends, &[]).await;
    assert_eq!(fixture.count(state).await, before);
    fixture.settle(&ends, &[release(claimed.hold)]).await;
    fixture.settle(&ends, &[release(claimed.hold)]).await;
    assert_eq!(fixture.count(state).await, before);
    assert_eq!(
        fixture
            .count("select count(*) from deliveries where attempt = 1")
            .await,
        3
    );
}

#[tokio::test]
async fn what_ends_under_a_lease_that_was_taken_over_is_not_recorded() {
    let fixture = Fixture::new().await;
    let clock = fixture.place.control_clock().await;
    let lane = fixture.lane().await;
    fixture.queue(lane, 1).await;
    let slow = fixture.claim_one().await;
    clock.advance(TimeDelta::seconds(31)).await;
    let other = fixture.claim_one().await;
    fixture.end_all(&slow, 200).await;
    assert_eq!(fixture.delivered().await, 0);
    assert_eq!(fixture.leased().await, 1, "it is the other's");
    fixture.end_all(&other, 200).await;
    assert_eq!(
        fixture
            .count("select count(*) from deliveries where delivered_at is not null and attempt = 1")
            .await,
        1
    );
}

#[tokio::test]
async fn a_lease_that_has_run_out_and_that_nobody_took_over_still_counts() {
    let fixture = Fixture::new().await;
    let clock = fixture.place.control_clock().await;
    let lane = fixture.lane().await;
    fixture.queue(lane, 1).await;
    let slow = fixture.claim_one().await;
    clock.advance(TimeDelta::minutes(5)).await;
    fixture.end_all(&slow, 200).await;
    assert_eq!(fixture.delivered().await, 1);
}

#[tokio::test]
async fn many_lanes_are_settled_at_once_and_only_those_released_go_back() {
    let fixture = Fixture::new().await;
    let (one, two) = (fixture.lane().await, fixture.lane().await);
    fixture.queue(one, 2).await;
    fixture.queue(two, 2).await;
    let claimed = fixture.claim().await;
    let ends: Vec<_> = claimed.iter().flat_map(|lane| all_ended(lane, 200)).collect();
    let first = claimed.iter().find(|lane| lane.hold.lane == one).unwrap();
    let stranger = webhooks::Hold {
        fence: id(),
        ..first.hold
    };
    fixture
        .settle(&ends, &[release(first.hold), release(stranger)])
        .await;
    assert_eq!(fixture.delivered().await, 4);
    assert_eq!(fixture.leased().await, 1);
    assert_eq!(fixture.sleeps(one).await, None);
}

#[tokio::test]
async fn whether_a_lane_fails_is_remembered() {
    let fixture = Fixture::new().await;
    let lane = fixture.lane().await;
    for (told, failing) in [
        (Some(true), true),
        (None, true),
        (Some(false), false),
        (None, false),
    ] {
        fixture.queue(lane, 1).await;
        let claimed = fixture.claim_one().await;
        let back = Release {
            failing: told,
            ..release(claimed.hold)
        };
        fixture.settle(&all_ended(&claimed, 200), &[back]).await;
        fixture.queue(lane, 1).await;
        let claimed = fixture.claim_one().await;
        assert_eq!(claimed.failing, failing, "{told:?}");
        fixture.end_all(&claimed, 200).await;
    }
}

#[tokio::test]
async fn a_connection_that_was_in_a_settlement_that_failed_is_fit_for_the_next() {
    let fixture = Fixture::new().await;
    let lane = fixture.lane().await;
    fixture.queue(lane, 1).await;
    let claimed = fixture.claim_one().await;
    let mut end = ended(claimed.hold, &claimed.deliveries[0], 500);
    end.duration_ms = -1;
    for _ in 0..20 {
        let failed = fixture
            .lanes()
            .settle(&[end.clone()], &[release(claimed.hold)])
            .await;
        assert!(failed.is_err());
    }
    end.duration_ms = 1;
    fixture.settle(&[end], &[release(claimed.hold)]).await;
    assert_eq!(
        fixture
            .count("select count(*) from deliveries where attempt = 1")
            .await,
        1
    );
    let open =
        "select count(*) from pg_stat_activity where datname = current_database() and state like 'idle in%'";
    assert_eq!(fixture.count(open).await, 0);
}

#[tokio::test]
async fn a_lane_that_rests_is_due_afterwards_with_all_that_it_had() {
    let fixture = Fixture::new().await;
    let clock = fixture.place.control_clock().await;
    clock.freeze(fixture.now().await).await;
    let lane = fixture.lane().await;
    let queued = fixture.queue(lane, 3).await;
    let claimed = fixture.claim_one().await;
    let rest = TimeDelta::milliseconds(250);
    let back = Release {
        rest,
        ..release(claimed.hold)
    };
    let lanes = fixture.lanes();
    lanes
        .settle(&all_ended(&claimed, 200)[..1], &[back])
        .await
        .unwrap();
    assert_eq!(fixture.sleeps(lane).await, Some(rest));
    assert!(fixture.claim().await.is_empty());
    clock.advance(rest).await;
    let again = fixture.claim_one().await;
    assert_eq!(ids(&again), queued[1..]);
    assert!(
        again
            .deliveries
            .iter()
            .all(|due| (due.attempt, due.lost) == (0, 0))
    );
    // One in which nothing waits sleeps all the same.
    let back = Release {
        rest,
        ..release(again.hold)
    };
    lanes.settle(&all_ended(&again, 200), &[back]).await.unwrap();
    assert_eq!(fixture.sleeps(lane).await, None);
}
