//! Claiming lanes, and more of what is due in them.

use chrono::TimeDelta;
use kernel::SellerId;
use oauth::{Application, ClientId};
use webhooks::{Conclusion, DeliveryId, Due, Fate, Hold, Lane, Outcome, Release, Room, TopUp, UnderWay};

use super::fixture::{Fixture, application, begin, id, lane, queue, seller, subscribed};

/// More than any rule needs.
pub(super) const ROOM: Room = Room {
    attempts: 64,
    failing_attempts: 32,
    per_lane: 8,
    per_failing_lane: 2,
    per_application: 64,
    failing_per_application: 32,
    under_way: Vec::new(),
};

/// The end of a lease.
pub(super) const LEASE: TimeDelta = TimeDelta::seconds(30);

pub(super) async fn claimed(fixture: &Fixture, room: Room) -> Vec<Lane> {
    fixture.lanes().claim(id(), room).await.unwrap().lanes
}

pub(super) async fn claimed_one(fixture: &Fixture) -> Lane {
    let mut lanes = claimed(fixture, ROOM).await;
    assert_eq!(lanes.len(), 1, "{lanes:?}");
    lanes.remove(0)
}

pub(super) fn ids(lane: &Lane) -> Vec<DeliveryId> {
    lane.deliveries.iter().map(|due| due.id).collect()
}

/// The receiver did not take it: again in a minute.
pub(super) const fn failed(hold: Hold, due: &Due) -> Conclusion {
    Conclusion {
        hold,
        delivery: due.id,
        attempt: due.attempt,
        outcome: Outcome::Answered(500),
        duration_ms: 12,
        fate: Fate::Retry(TimeDelta::minutes(1)),
    }
}

pub(super) const fn release(hold: Hold) -> Release {
    Release {
        hold,
        failing: None,
        rest: TimeDelta::zero(),
    }
}

/// What is in one worker's hands is in no other's, until the lease has run out.
#[tokio::test]
async fn a_lane_is_given_to_one_worker_until_its_lease_ends() {
    let fixture = &Fixture::new().await;
    let key = lane(fixture).await;
    let queued = queue(fixture, key, 3).await;
    let first = claimed_one(fixture).await;
    assert_eq!((first.hold.lane, ids(&first)), (key, queued.clone()));
    assert!(claimed(fixture, ROOM).await.is_empty());
    fixture.advance(LEASE - TimeDelta::milliseconds(1)).await;
    assert!(claimed(fixture, ROOM).await.is_empty());
    fixture.advance(TimeDelta::milliseconds(1)).await;
    let second = claimed_one(fixture).await;
    assert_eq!(ids(&second), queued);
    assert_ne!(second.hold.fence, first.hold.fence);
}

/// A loss is counted where a worker has left a lane, and not where it gave it back.
#[tokio::test]
async fn what_was_lost_with_its_worker_is_counted() {
    let fixture = &Fixture::new().await;
    queue(fixture, lane(fixture).await, 1).await;
    let given_back = claimed_one(fixture).await;
    fixture
        .lanes()
        .settle(&[], &[release(given_back.hold)])
        .await
        .unwrap();
    for lost in 0..3 {
        let claimed = claimed_one(fixture).await;
        assert_eq!(
            (claimed.deliveries[0].lost, claimed.deliveries[0].attempt),
            (lost, 0)
        );
        fixture.advance(LEASE).await;
    }
}

/// Three first attempts for each repeated one, beginning with a first one.
#[tokio::test]
async fn first_attempts_come_before_repeated_ones() {
    let fixture = &Fixture::new().await;
    let key = lane(fixture).await;
    let repeated = queue(fixture, key, 2).await;
    let lane = claimed_one(fixture).await;
    let ends: Vec<_> = lane.deliveries.iter().map(|due| failed(lane.hold, due)).collect();
    fixture
        .lanes()
        .settle(&ends, &[release(lane.hold)])
        .await
        .unwrap();
    fixture.advance(TimeDelta::minutes(1)).await;
    let first = queue(fixture, key, 4).await;
    let order = [first[0], repeated[0], first[1], first[2], first[3], repeated[1]];
    assert_eq!(ids(&claimed_one(fixture).await), order);
}

/// All bounds hold: of the whole, of a lane, of an application with what it has under way already.
#[tokio::test]
async fn nobody_gets_more_than_there_is_room_for() {
    let fixture = &Fixture::new().await;
    let seller = seller(fixture).await;
    let (one, other) = (
        application(fixture, seller).await,
        application(fixture, seller).await,
    );
    for application in [one, one, other] {
        queue(fixture, subscribed(fixture, seller, application).await, 10).await;
    }
    let numbers = |lanes: &[Lane]| lanes.iter().map(|lane| lane.deliveries.len()).collect::<Vec<_>>();
    let room = Room {
        attempts: 9,
        per_lane: 4,
        per_application: 8,
        under_way: vec![UnderWay {
            client_id: one,
            attempts: 2,
            failing: 0,
        }],
        ..ROOM
    };
    let lanes = claimed(fixture, room).await;
    assert_eq!(numbers(&lanes), [4, 2, 3]);
    assert_eq!(lanes[2].client_id, other);
    for lane in &lanes {
        fixture.lanes().settle(&[], &[release(lane.hold)]).await.unwrap();
    }
    let full = Room {
        per_application: 2,
        under_way: vec![UnderWay {
            client_id: other,
            attempts: 2,
            failing: 0,
        }],
        ..ROOM
    };
    let lanes = claimed(fixture, full).await;
    assert!(lanes.iter().all(|lane| lane.client_id == one), "{lanes:?}");
    assert_eq!(numbers(&lanes).iter().sum::<usize>(), 2);
}

/// More is given of a lane that is held, none of what runs, and a lane that is not held any more is left out.
#[tokio::test]
async fn a_top_up_prolongs_and_leaves_out_what_runs() {
    let fixture = &Fixture::new().await;
    let key = lane(fixture).await;
    let first = queue(fixture, key, 1).await;
    let lane = claimed_one(fixture).await;
    let more = queue(fixture, key, 2).await;
    let top_up = |hold| TopUp {
        hold,
        running: first.clone(),
        room: 5,
        repeats: 5,
    };
    fixture.advance(LEASE - TimeDelta::seconds(1)).await;
    let stranger = Hold {
        fence: id(),
        ..lane.hold
    };
    let given = fixture
        .lanes()
        .top_up(&[top_up(lane.hold), top_up(stranger)])
        .await
        .unwrap();
    assert_eq!(given.len(), 1);
    assert_eq!(given[0].hold, lane.hold);
    let given: Vec<_> = given[0].deliveries.iter().map(|due| due.id).collect();
    assert_eq!(given, more);
    fixture.advance(LEASE - TimeDelta::seconds(1)).await;
    assert!(
        claimed(fixture, ROOM).await.is_empty(),
        "the lease was not prolonged"
    );
    fixture.advance(TimeDelta::seconds(1)).await;
    let lost: Vec<_> = claimed_one(fixture)
        .await
        .deliveries
        .iter()
        .map(|due| due.lost)
        .collect();
    assert_eq!(lost, [1, 1, 1]);
}

/// Whoever has seen all that is due is told so, and need not ask again for nothing.
#[tokio::test]
async fn a_claim_tells_whether_there_may_be_more() {
    let fixture = &Fixture::new().await;
    let claim = async |attempts| {
        let room = Room { attempts, ..ROOM };
        let claimed = fixture.lanes().claim(id(), room).await.unwrap();
        (claimed.lanes.len(), claimed.more)
    };
    assert_eq!(claim(64).await, (0, false));
    for _ in 0..3 {
        queue(fixture, lane(fixture).await, 1).await;
    }
    assert_eq!(claim(1).await, (1, true));
    assert_eq!(claim(64).await, (2, false));
    assert_eq!(claim(64).await, (0, false));
}

async fn moved(
    fixture: &Fixture,
    client_id: ClientId,
    step: impl FnOnce(oauth::ApplicationStatus) -> Result<oauth::ApplicationStatus, oauth::ImpossibleMove>,
) {
    let tx = begin(fixture).await;
    let application: Application = tx.lock_application(client_id).await.unwrap().unwrap();
    tx.save_application(application.moved(step).unwrap())
        .await
        .unwrap();
    tx.commit().await.unwrap();
}

/// While an application is suspended nothing of it is given out; reinstated, it goes on.
#[tokio::test]
async fn a_suspended_applications_lanes_rest() {
    let fixture = &Fixture::new().await;
    let seller: SellerId = seller(fixture).await;
    let client_id = application(fixture, seller).await;
    let key = subscribed(fixture, seller, client_id).await;
    let queued = queue(fixture, key, 2).await;
    moved(fixture, client_id, oauth::ApplicationStatus::suspend).await;
    let claimed = fixture.lanes().claim(id(), ROOM).await.unwrap();
    assert_eq!((claimed.lanes.len(), claimed.set_aside), (0, 1));
    let claimed = fixture.lanes().claim(id(), ROOM).await.unwrap();
    assert_eq!((claimed.lanes.len(), claimed.set_aside), (0, 0));
    moved(fixture, client_id, oauth::ApplicationStatus::reinstate).await;
    assert_eq!(ids(&claimed_one(fixture).await), queued);
}
