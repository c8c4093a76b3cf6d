//! Recording how attempts ended, and giving lanes back.

use chrono::TimeDelta;
use webhooks::{Conclusion, Fate, MOST_ATTEMPTS, Outcome, Release};

use super::{
    fixture::{Fixture, lane, queue},
    lanes::{LEASE, ROOM, claimed, claimed_one, failed, ids, release},
};

/// Sent twice, an end counts once; under a claim that is over it counts never. After the sixth nothing follows.
#[tokio::test]
async fn an_end_is_recorded_once_and_under_the_present_claim_alone() {
    let fixture = &Fixture::new().await;
    queue(fixture, lane(fixture).await, 1).await;
    let first = claimed_one(fixture).await;
    fixture.advance(LEASE).await;
    let second = claimed_one(fixture).await;
    let stale = failed(first.hold, &first.deliveries[0]);
    fixture
        .lanes()
        .settle(&[stale], &[release(first.hold)])
        .await
        .unwrap();
    assert!(
        claimed(fixture, ROOM).await.is_empty(),
        "a claim that is over gave the lane back"
    );
    let end = failed(second.hold, &second.deliveries[0]);
    fixture
        .lanes()
        .settle(std::slice::from_ref(&end), &[])
        .await
        .unwrap();
    fixture
        .lanes()
        .settle(&[end], &[release(second.hold)])
        .await
        .unwrap();
    for attempt in 1..MOST_ATTEMPTS {
        fixture.advance(TimeDelta::minutes(1)).await;
        let lane = claimed_one(fixture).await;
        assert_eq!(lane.deliveries[0].attempt, attempt);
        let mut end = failed(lane.hold, &lane.deliveries[0]);
        if attempt + 1 == MOST_ATTEMPTS {
            end.fate = Fate::Exhausted;
        }
        fixture
            .lanes()
            .settle(&[end], &[release(lane.hold)])
            .await
            .unwrap();
    }
    fixture.advance(TimeDelta::days(1)).await;
    assert!(claimed(fixture, ROOM).await.is_empty());
}

/// A lane in which nothing waits sleeps; one with a retry is due when that is; what is queued wakes it; nobody is forgotten.
#[tokio::test]
async fn a_lane_sleeps_until_something_is_due_in_it() {
    let fixture = &Fixture::new().await;
    let key = lane(fixture).await;
    queue(fixture, key, 2).await;
    let lane = claimed_one(fixture).await;
    let taken = Conclusion {
        outcome: Outcome::Answered(204),
        fate: Fate::Delivered,
        ..failed(lane.hold, &lane.deliveries[0])
    };
    let again = failed(lane.hold, &lane.deliveries[1]);
    fixture
        .lanes()
        .settle(&[taken, again], &[release(lane.hold)])
        .await
        .unwrap();
    fixture.advance(TimeDelta::milliseconds(59_999)).await;
    assert!(claimed(fixture, ROOM).await.is_empty());
    let queued = queue(fixture, key, 1).await;
    let lane = claimed_one(fixture).await;
    assert_eq!(ids(&lane)[0], queued[0]);
    assert_eq!(lane.deliveries.len(), 2, "the retry is due by now: {lane:?}");
    assert_eq!(fixture.lanes().reconcile().await.unwrap(), 0);
}

/// A lane that rests is due no earlier, whatever waits in it, and is none that was forgotten.
#[tokio::test]
async fn a_lane_rests_as_long_as_it_is_told() {
    let fixture = &Fixture::new().await;
    let key = lane(fixture).await;
    queue(fixture, key, 1).await;
    let lane = claimed_one(fixture).await;
    let rest = Release {
        rest: TimeDelta::seconds(2),
        ..release(lane.hold)
    };
    fixture.lanes().settle(&[], &[rest]).await.unwrap();
    assert_eq!(fixture.lanes().reconcile().await.unwrap(), 0);
    fixture.advance(TimeDelta::milliseconds(1_999)).await;
    assert!(claimed(fixture, ROOM).await.is_empty());
    fixture.advance(TimeDelta::milliseconds(1)).await;
    assert_eq!(claimed_one(fixture).await.deliveries[0].lost, 0);
}
