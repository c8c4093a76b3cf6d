//! Claims of lanes: whose a lane is, what it is given, in which order, and how much.

use std::collections::BTreeSet;

use chrono::TimeDelta;
use futures_util::future::join_all;
use webhooks::{DeliveryId, Lane, Room};

use crate::support::{Fixture, ROOM, ended, given, id, ids, ids_of, more, of, release, strangers};

fn attempts(due: &[webhooks::Due]) -> Vec<u8> {
    due.iter().map(|due| due.attempt).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn no_lane_is_given_to_two() {
    let fixture = Fixture::new().await;
    let seller = fixture.seller().await;
    let mut lanes = BTreeSet::new();
    for _ in 0..5 {
        let application = fixture.client_of(seller).await;
        for _ in 0..10 {
            let lane = fixture.subscribe(seller, application).await;
            fixture.queue(lane, 3).await;
            lanes.insert(lane);
        }
    }
    let work = |lanes: std::sync::Arc<dyn webhooks::Lanes>| async move {
        let (mut mine, room) = (Vec::new(), Room { attempts: 12, ..ROOM });
        loop {
            let claimed = lanes.claim(id(), room.clone()).await.unwrap().lanes;
            if claimed.is_empty() {
                return mine;
            }
            assert!(given(&claimed) <= 12, "{claimed:?}");
            mine.extend(claimed);
        }
    };
    let workers = join_all((0..12).map(|_| tokio::spawn(work(fixture.lanes())))).await;
    let mut claimed: Vec<_> = workers.into_iter().flat_map(Result::unwrap).collect();
    // A claim passes by what another one has locked at that moment.
    claimed.extend(fixture.claim().await);
    let of_lanes: BTreeSet<_> = claimed.iter().map(|lane| lane.hold.lane).collect();
    assert_eq!((claimed.len(), of_lanes), (50, lanes));
    let deliveries: Vec<_> = claimed.iter().flat_map(ids).map(DeliveryId::uuid).collect();
    let each_once: BTreeSet<_> = deliveries.iter().collect();
    assert_eq!(deliveries.len(), each_once.len());
}

#[tokio::test]
async fn first_attempts_come_first_yet_a_few_repeated_ones_too() {
    let fixture = Fixture::new().await;
    let lane = fixture.lane().await;
    fixture.fill(lane, 20, 2).await;
    fixture.fill(lane, 20, 0).await;
    let expected = [0, 2, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0];
    assert_eq!(attempts(&fixture.claim_one().await.deliveries), expected);
    assert!(fixture.claim().await.is_empty(), "it is held");

    // Repeated ones get what first ones leave, and a single place is a first one's.
    let (one, two) = (fixture.lane().await, fixture.lane().await);
    fixture.fill(one, 20, 1).await;
    fixture.fill(one, 2, 0).await;
    assert_eq!(fixture.claim_one().await.deliveries.len(), 16);
    fixture.fill(two, 3, 1).await;
    fixture.fill(two, 3, 0).await;
    let single = fixture.claim_within(Room { per_lane: 1, ..ROOM }).await;
    assert_eq!(attempts(&single[0].deliveries), [0]);

    // Of first attempts the longest waiting comes first.
    let three = fixture.lane().await;
    let mut queued = Vec::new();
    for _ in 0..3 {
        queued.extend(fixture.queue(three, 1).await);
    }
    assert_eq!(ids(&fixture.claim_one().await), queued);
}

#[tokio::test]
async fn no_more_is_given_than_there_is_room_for() {
    let fixture = Fixture::new().await;
    for n in 0..10 {
        let lane = fixture.lane().await;
        fixture.fill(lane, 5, 0).await;
        fixture.set_lane(lane, &format!("failing = {}", n % 2 == 0)).await;
    }
    let room = Room {
        attempts: 7,
        failing_attempts: 3,
        per_lane: 3,
        per_failing_lane: 2,
        ..ROOM
    };
    let claimed = fixture.claim_within(room.clone()).await;
    let most = |lane: &Lane| if lane.failing { 2 } else { 3 };
    let sound = |lane: &Lane| (1..=most(lane)).contains(&lane.deliveries.len());
    assert!(claimed.iter().all(sound), "{claimed:?}");
    let failing = given(claimed.iter().filter(|lane| lane.failing));
    assert!(failing <= 3 && given(&claimed) == 7, "{claimed:?}");
    let none = Room {
        failing_attempts: 0,
        attempts: 128,
        ..room
    };
    let claimed = fixture.claim_within(none).await;
    assert!(!claimed.is_empty() && claimed.iter().all(|lane| !lane.failing));
}

#[tokio::test]
async fn an_application_gets_no_more_than_its_part_and_holds_up_nobody() {
    let fixture = Fixture::new().await;
    let seller = fixture.seller().await;
    let application = fixture.client_of(seller).await;
    for n in 0..20 {
        let lane = fixture.subscribe(seller, application).await;
        fixture.fill(lane, 4, 0).await;
        fixture.set_lane(lane, &format!("failing = {}", n % 2 == 0)).await;
    }
    let other = fixture.lane().await;
    fixture.fill(other, 4, 0).await;
    let claim = async |under_way: u16| {
        let room = Room {
            attempts: 24,
            per_application: 10,
            under_way: vec![of(application, under_way, 0), of(id().into(), 10, 10)],
            ..ROOM
        };
        let claimed = fixture.claim_within(room).await;
        let (ours, others): (Vec<_>, Vec<_>) = claimed.iter().partition(|lane| lane.client_id == application);
        (given(ours), given(others))
    };
    // They have all waited longer than the other one, and there is room for more.
    let (first, rest) = (claim(3).await, claim(10).await);
    assert_eq!((first.0, rest.0, first.1 + rest.1), (7, 0, 4));
    assert_eq!(claim(0).await, (10, 0), "what it was not given is still due");
}

#[tokio::test]
async fn lanes_that_fail_get_half_of_their_applications_part_and_its_others_the_rest() {
    let fixture = Fixture::new().await;
    let seller = fixture.seller().await;
    let application = fixture.client_of(seller).await;
    for _ in 0..10 {
        let lane = fixture.subscribe(seller, application).await;
        fixture.fill(lane, 4, 0).await;
    }
    fixture.tamper("update subscriptions set failing = true").await;
    let sound = fixture.subscribe(seller, application).await;
    fixture.fill(sound, 20, 0).await;
    let claim = async |attempts, failing| {
        let room = Room {
            per_application: 10,
            failing_per_application: 5,
            under_way: vec![of(application, attempts, failing)],
            ..ROOM
        };
        let claimed = fixture.claim_within(room).await;
        let (failing, sound): (Vec<_>, Vec<_>) = claimed.iter().partition(|lane| lane.failing);
        (given(failing), given(sound))
    };
    // Those that fail have all waited longer.
    assert_eq!(claim(1, 1).await, (4, 5));
    assert_eq!(claim(5, 5).await, (0, 0));
    assert_eq!(claim(8, 0).await.0, 2);
}

#[tokio::test]
async fn a_claim_tells_whether_there_may_be_more_and_who_has_work_left_goes_to_the_back() {
    let fixture = Fixture::new().await;
    let mut lanes = Vec::new();
    for _ in 0..3 {
        let lane = fixture.lane().await;
        fixture.fill(lane, 3, 0).await;
        lanes.push(lane);
    }
    let one = Room {
        attempts: 1,
        per_lane: 1,
        ..ROOM
    };
    for n in 0..7 {
        let claimed = fixture.lanes().claim(id(), one.clone()).await.unwrap();
        assert_eq!((claimed.lanes[0].hold.lane, claimed.more), (lanes[n % 3], true));
        fixture.end_all(&claimed.lanes[0], 200).await;
    }
    for lanes in [2, 0] {
        let claimed = fixture.lanes().claim(id(), ROOM).await.unwrap();
        assert_eq!((claimed.lanes.len(), claimed.more), (lanes, false));
    }
}

#[tokio::test]
async fn a_lane_that_is_held_gets_more_and_never_what_is_running() {
    let (fixture, clock) = Fixture::frozen().await;
    let lane = fixture.lane().await;
    let queued = fixture.queue(lane, 20).await;
    let claimed = fixture.claim_one().await;
    assert_eq!(ids(&claimed), queued[..16]);
    fixture
        .settle(&[ended(claimed.hold, &claimed.deliveries[3], 200)], &[])
        .await;
    let running = [&queued[..3], &queued[4..16]].concat();
    clock.advance(TimeDelta::seconds(25)).await;
    assert_eq!(
        fixture
            .top_up(more(strangers(claimed.hold), &running, 2, 2))
            .await,
        None
    );
    let top_up = more(claimed.hold, &running, 2, 2);
    assert_eq!(
        ids_of(&fixture.top_up(top_up.clone()).await.unwrap()),
        queued[16..18]
    );
    clock.advance(TimeDelta::seconds(25)).await;
    assert!(fixture.claim().await.is_empty(), "the lease was prolonged");
    clock.advance(TimeDelta::seconds(5)).await;
    assert_eq!(fixture.claim().await.len(), 1, "to 30 s, and no longer");
    assert_eq!(fixture.top_up(top_up).await, None, "it is somebody else's now");
}

#[tokio::test]
async fn several_lanes_are_topped_up_together_and_a_place_is_kept_from_repeated_attempts() {
    let fixture = Fixture::new().await;
    let (one, two, idle) = (fixture.lane().await, fixture.lane().await, fixture.lane().await);
    for lane in [one, two, idle] {
        fixture.queue(lane, 1).await;
    }
    let claimed = fixture.claim().await;
    let (first, second) = (fixture.queue(one, 1).await, fixture.queue(two, 2).await);
    let top_ups: Vec<_> = claimed
        .iter()
        .map(|lane| more(lane.hold, &ids(lane), 1, 1))
        .collect();
    let mut given = fixture.lanes().top_up(&top_ups).await.unwrap();
    given.sort_by_key(|lane| lane.deliveries.first().map(|due| due.id.uuid()));
    let told = given
        .iter()
        .map(|lane| (lane.hold.lane, ids_of(&lane.deliveries)));
    let expected = [(idle, vec![]), (one, first), (two, second[..1].to_vec())];
    assert_eq!(told.collect::<Vec<_>>(), expected);
    for lane in &claimed {
        fixture.settle(&[], &[release(lane.hold)]).await;
    }
    fixture.tamper("delete from deliveries").await;

    fixture.fill(one, 20, 1).await;
    fixture.set_lane(one, "failing = true").await;
    let claimed = fixture.claim().await;
    let lane = claimed.iter().find(|lane| lane.hold.lane == one).unwrap();
    assert_eq!(lane.deliveries.len(), 1);
    fixture.fill(one, 2, 0).await;
    fixture
        .set_lane(one, "wake_at = api_now() + interval '30 seconds'")
        .await;
    let given = fixture.top_up(more(lane.hold, &ids(lane), 2, 0)).await.unwrap();
    assert_eq!(attempts(&given), [0, 0]);
}
