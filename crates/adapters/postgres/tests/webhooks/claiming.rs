//! Claims: whose a lane is, what it is given, in which order, and how much.

use std::collections::BTreeSet;

use chrono::TimeDelta;
use futures_util::future::join_all;
use webhooks::{DeliveryId, Lane, LaneKey, Room, TopUp};

use crate::support::{Fixture, ROOM, ended, id, ids, of};

/// Deliveries of a lane by hand, due a while ago.
async fn fill(fixture: &Fixture, lane: LaneKey, number: usize, attempt: i16) {
    let fill = format!(
        "insert into deliveries (seller_id, subscription_id, id, created_at, due_at, attempt, response_status, event, body) \
           select '{}', '{}', gen_random_uuid(), api_now(), api_now() - interval '1 minute' + n * interval '1 ms', {attempt}, \
             case when {attempt} > 0 then 500 end, 'order.paid', 'x' from generate_series(1, {number}) n; \
         update subscriptions set wake_at = api_now() where id = '{}'",
        lane.seller, lane.subscription, lane.subscription
    );
    fixture.tamper(&fill).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_lane_is_given_to_two() {
    let fixture = Fixture::new().await;
    let seller = fixture.seller().await;
    let mut lanes = BTreeSet::new();
    for _ in 0..5 {
        let application = fixture.application(seller).await;
        for _ in 0..10 {
            let lane = fixture.subscribe(seller, application).await;
            fixture.queue(lane, 3).await;
            lanes.insert(lane);
        }
    }
    let room = Room { attempts: 12, ..ROOM };
    let claims = join_all((0..12).map(|_| {
        let (lanes, room) = (fixture.lanes(), room.clone());
        tokio::spawn(async move {
            let mut mine = Vec::new();
            while let Some(claimed) =
                Some(lanes.claim(id(), room.clone()).await.unwrap().lanes).filter(|c| !c.is_empty())
            {
                let given: usize = claimed.iter().map(|lane| lane.deliveries.len()).sum();
                assert!(given <= 12, "{given}");
                mine.extend(claimed);
            }
            mine
        })
    }))
    .await;
    let mut claimed: Vec<_> = claims.into_iter().flat_map(Result::unwrap).collect();
    // A claim passes by what another one has locked at that moment.
    claimed.extend(fixture.claim().await);
    let given: BTreeSet<_> = claimed.iter().map(|lane| lane.hold.lane).collect();
    assert_eq!((claimed.len(), given), (50, lanes));
    let given: Vec<_> = claimed.iter().flat_map(ids).map(DeliveryId::uuid).collect();
    let each_once: BTreeSet<_> = given.iter().copied().collect();
    assert_eq!(given.len(), each_once.len());
}

#[tokio::test]
async fn first_attempts_come_first_yet_a_few_repeated_ones_too() {
    let fixture = Fixture::new().await;
    let lane = fixture.lane().await;
    fill(&fixture, lane, 20, 2).await;
    fill(&fixture, lane, 20, 0).await;
    let claimed = fixture.claim_one().await;
    let attempts: Vec<_> = claimed.deliveries.iter().map(|due| due.attempt).collect();
    assert_eq!(attempts, [0, 2, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0]);
    assert!(fixture.claim().await.is_empty(), "it is held");
}

#[tokio::test]
async fn repeated_ones_get_what_first_ones_leave_and_a_single_place_is_a_first_ones() {
    let fixture = Fixture::new().await;
    let (one, two) = (fixture.lane().await, fixture.lane().await);
    fill(&fixture, one, 20, 1).await;
    fill(&fixture, one, 2, 0).await;
    assert_eq!(fixture.claim_one().await.deliveries.len(), 16);
    fill(&fixture, two, 3, 1).await;
    fill(&fixture, two, 3, 0).await;
    let single = Room { per_lane: 1, ..ROOM };
    let claimed = fixture.lanes().claim(id(), single).await.unwrap().lanes;
    assert_eq!(claimed[0].deliveries.len(), 1);
    assert_eq!(claimed[0].deliveries[0].attempt, 0);
}

#[tokio::test]
async fn of_first_attempts_the_longest_waiting_comes_first() {
    let fixture = Fixture::new().await;
    let lane = fixture.lane().await;
    let queued = fixture.queue(lane, 1).await[0];
    let next = fixture.queue(lane, 1).await[0];
    let last = fixture.queue(lane, 1).await[0];
    assert_eq!(ids(&fixture.claim_one().await), [queued, next, last]);
}

#[tokio::test]
async fn no_more_is_given_than_there_is_room_for() {
    let fixture = Fixture::new().await;
    for n in 0..10 {
        let lane = fixture.lane().await;
        fill(&fixture, lane, 5, 0).await;
        if n % 2 == 0 {
            fixture
                .tamper(&format!(
                    "update subscriptions set failing = true where id = '{}'",
                    lane.subscription
                ))
                .await;
        }
    }
    let room = Room {
        attempts: 7,
        failing_attempts: 3,
        per_lane: 3,
        per_failing_lane: 2,
        ..ROOM
    };
    let claimed = fixture.lanes().claim(id(), room.clone()).await.unwrap().lanes;
    let given = |failing| -> usize {
        claimed
            .iter()
            .filter(|lane| lane.failing == failing)
            .map(|lane| lane.deliveries.len())
            .sum()
    };
    assert!(
        claimed.iter().all(|lane| !lane.deliveries.is_empty()),
        "{claimed:?}"
    );
    assert!(
        claimed
            .iter()
            .all(|lane| lane.deliveries.len() <= if lane.failing { 2 } else { 3 })
    );
    assert!(given(true) <= 3 && given(true) + given(false) == 7, "{claimed:?}");
    let none = Room {
        failing_attempts: 0,
        attempts: 128,
        ..room
    };
    let claimed = fixture.lanes().claim(id(), none).await.unwrap().lanes;
    assert!(!claimed.is_empty() && claimed.iter().all(|lane| !lane.failing));
}

#[tokio::test]
async fn an_application_gets_no_more_than_its_part_and_holds_up_nobody() {
    let fixture = Fixture::new().await;
    let seller = fixture.seller().await;
    let application = fixture.application(seller).await;
    for n in 0..20 {
        let lane = fixture.subscribe(seller, application).await;
        fill(&fixture, lane, 4, 0).await;
        if n % 2 == 0 {
            let fails = format!(
                "update subscriptions set failing = true where id = '{}'",
                lane.subscription
            );
            fixture.tamper(&fails).await;
        }
    }
    let other = fixture.lane().await;
    fill(&fixture, other, 4, 0).await;
    let room = |under_way: u16| Room {
        attempts: 24,
        per_application: 10,
        under_way: vec![of(application, under_way, 0), of(id().into(), 10, 10)],
        ..ROOM
    };
    let given = |claimed: &[Lane]| -> (usize, usize) {
        let (ours, others): (Vec<_>, Vec<_>) = claimed.iter().partition(|lane| lane.client_id == application);
        let count = |lanes: Vec<&Lane>| lanes.iter().map(|lane| lane.deliveries.len()).sum();
        (count(ours), count(others))
    };
    // They have all waited longer than the other one, and there is room for more.
    let first = fixture.lanes().claim(id(), room(3)).await.unwrap().lanes;
    assert_eq!(given(&first).0, 7);
    assert!(first.iter().all(|lane| !lane.deliveries.is_empty()));
    let rest = fixture.lanes().claim(id(), room(10)).await.unwrap().lanes;
    assert_eq!((given(&rest).0, given(&first).1 + given(&rest).1), (0, 4));
    // What it was not given is still due.
    let next = fixture.lanes().claim(id(), room(0)).await.unwrap().lanes;
    assert_eq!(given(&next), (10, 0));
}

#[tokio::test]
async fn lanes_that_fail_get_half_of_their_applications_part_and_its_others_the_rest() {
    let fixture = Fixture::new().await;
    let seller = fixture.seller().await;
    let application = fixture.application(seller).await;
    for _ in 0..10 {
        let lane = fixture.subscribe(seller, application).await;
        fill(&fixture, lane, 4, 0).await;
    }
    fixture.tamper("update subscriptions set failing = true").await;
    let sound = fixture.subscribe(seller, application).await;
    fill(&fixture, sound, 20, 0).await;
    let room = |attempts, failing| Room {
        per_application: 10,
        failing_per_application: 5,
        under_way: vec![of(application, attempts, failing)],
        ..ROOM
    };
    let given = |claimed: &[Lane], failing| -> usize {
        let of = claimed.iter().filter(|lane| lane.failing == failing);
        of.map(|lane| lane.deliveries.len()).sum()
    };
    // Those that fail have all waited longer.
    let first = fixture.lanes().claim(id(), room(1, 1)).await.unwrap().lanes;
    assert_eq!((given(&first, true), given(&first, false)), (4, 5));
    let of_failing = fixture.lanes().claim(id(), room(5, 5)).await.unwrap().lanes;
    assert_eq!(of_failing, []);
    let next = fixture.lanes().claim(id(), room(8, 0)).await.unwrap().lanes;
    assert_eq!(given(&next, true), 2);
}

#[tokio::test]
async fn a_place_of_a_lane_is_kept_from_repeated_attempts() {
    let fixture = Fixture::new().await;
    let lane = fixture.lane().await;
    fill(&fixture, lane, 20, 1).await;
    fixture.tamper("update subscriptions set failing = true").await;
    let claimed = fixture.claim_one().await;
    assert_eq!(claimed.deliveries.len(), 1);
    fill(&fixture, lane, 2, 0).await;
    fixture
        .tamper("update subscriptions set wake_at = api_now() + interval '30 seconds'")
        .await;
    let top_up = TopUp {
        hold: claimed.hold,
        running: ids(&claimed),
        room: 2,
        repeats: 0,
    };
    let more = fixture.lanes().top_up(&[top_up]).await.unwrap().remove(0);
    let attempts: Vec<_> = more.deliveries.iter().map(|due| due.attempt).collect();
    assert_eq!(attempts, [0, 0]);
}

#[tokio::test]
async fn whoever_has_waited_longest_is_next_and_who_is_released_with_work_goes_to_the_back() {
    let fixture = Fixture::new().await;
    let mut lanes = Vec::new();
    for _ in 0..3 {
        let lane = fixture.lane().await;
        fill(&fixture, lane, 3, 0).await;
        lanes.push(lane);
    }
    let one = Room {
        attempts: 1,
        per_lane: 1,
        ..ROOM
    };
    for n in 0..7 {
        let claimed = fixture.lanes().claim(id(), one.clone()).await.unwrap().lanes;
        assert_eq!(claimed[0].hold.lane, lanes[n % 3]);
        fixture.end_all(&claimed[0], 200).await;
    }
}

#[tokio::test]
async fn a_lane_that_is_held_gets_more_and_never_what_is_running() {
    let fixture = Fixture::new().await;
    let clock = fixture.place.control_clock().await;
    clock.freeze(fixture.now().await).await;
    let lane = fixture.lane().await;
    let queued = fixture.queue(lane, 20).await;
    let claimed = fixture.claim_one().await;
    assert_eq!(ids(&claimed), queued[..16]);
    fixture
        .settle(&[ended(claimed.hold, &claimed.deliveries[3], 200)], &[])
        .await;
    let running: Vec<_> = queued[..16]
        .iter()
        .copied()
        .filter(|id| *id != queued[3])
        .collect();
    clock.advance(TimeDelta::seconds(25)).await;
    let top_up = TopUp {
        hold: claimed.hold,
        running,
        room: 2,
        repeats: 2,
    };
    let more = fixture
        .lanes()
        .top_up(std::slice::from_ref(&top_up))
        .await
        .unwrap();
    assert_eq!(more.len(), 1);
    let given: Vec<_> = more[0].deliveries.iter().map(|due| due.id).collect();
    assert_eq!(given, queued[16..18]);
    clock.advance(TimeDelta::seconds(25)).await;
    assert!(fixture.claim().await.is_empty(), "the lease was prolonged");
    clock.advance(TimeDelta::seconds(5)).await;
    assert_eq!(fixture.claim().await.len(), 1, "to 30 s, and no longer");
    assert_eq!(
        fixture.lanes().top_up(&[top_up]).await.unwrap(),
        [],
        "it is somebody else's now"
    );
}

#[tokio::test]
async fn several_lanes_are_topped_up_together() {
    let fixture = Fixture::new().await;
    let (one, two, idle) = (fixture.lane().await, fixture.lane().await, fixture.lane().await);
    for lane in [one, two, idle] {
        fixture.queue(lane, 1).await;
    }
    let claimed = fixture.claim().await;
    let (first, second) = (fixture.queue(one, 1).await, fixture.queue(two, 2).await);
    let top_ups: Vec<_> = claimed
        .iter()
        .map(|lane| TopUp {
            hold: lane.hold,
            running: ids(lane),
            room: 1,
            repeats: 1,
        })
        .collect();
    let mut given = fixture.lanes().top_up(&top_ups).await.unwrap();
    given.sort_by_key(|lane| lane.deliveries.first().map(|due| due.id.uuid()));
    let told: Vec<_> = given
        .iter()
        .map(|lane| {
            (
                lane.hold.lane,
                lane.deliveries.iter().map(|due| due.id).collect::<Vec<_>>(),
            )
        })
        .collect();
    assert_eq!(told, [(idle, vec![]), (one, first), (two, second[..1].to_vec())]);
}
