//! Claiming lanes, and more of what is due in them.

use chrono::TimeDelta;
use kernel::SellerId;
use oauth::{Application, ClientId};
use webhooks::{Conclusion, DeliveryId, Due, Fate, Hold, Lane, Outcome, Release, Room, TopUp, UnderWay};

use super::stand::{Stand, application, begin, id, lane, queue, seller, subscribed};

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

pub(super) async fn claimed(stand: &dyn Stand, room: Room) -> Vec<Lane> {
    stand.lanes().claim(id(), room).await.unwrap().lanes
}

pub(super) async fn claimed_one(stand: &dyn Stand) -> Lane {
    let mut lanes = claimed(stand, ROOM).await;
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
pub async fn a_lane_is_given_to_one_worker_until_its_lease_ends(stand: &dyn Stand) {
    let key = lane(stand).await;
    let queued = queue(stand, key, 3).await;
    let first = claimed_one(stand).await;
    assert_eq!((first.hold.lane, ids(&first)), (key, queued.clone()));
    assert!(claimed(stand, ROOM).await.is_empty());
    stand.advance(LEASE - TimeDelta::milliseconds(1)).await;
    assert!(claimed(stand, ROOM).await.is_empty());
    stand.advance(TimeDelta::milliseconds(1)).await;
    let second = claimed_one(stand).await;
    assert_eq!(ids(&second), queued);
    assert_ne!(second.hold.fence, first.hold.fence);
}

/// A loss is counted where a worker has left a lane, and not where it gave it back.
pub async fn what_was_lost_with_its_worker_is_counted(stand: &dyn Stand) {
    queue(stand, lane(stand).await, 1).await;
    let given_back = claimed_one(stand).await;
    stand
        .lanes()
        .settle(&[], &[release(given_back.hold)])
        .await
        .unwrap();
    for lost in 0..3 {
        let claimed = claimed_one(stand).await;
        assert_eq!(
            (claimed.deliveries[0].lost, claimed.deliveries[0].attempt),
            (lost, 0)
        );
        stand.advance(LEASE).await;
    }
}

/// Three first attempts for each repeated one, beginning with a first one.
pub async fn first_attempts_come_before_repeated_ones(stand: &dyn Stand) {
    let key = lane(stand).await;
    let repeated = queue(stand, key, 2).await;
    let lane = claimed_one(stand).await;
    let ends: Vec<_> = lane.deliveries.iter().map(|due| failed(lane.hold, due)).collect();
    stand.lanes().settle(&ends, &[release(lane.hold)]).await.unwrap();
    stand.advance(TimeDelta::minutes(1)).await;
    let first = queue(stand, key, 4).await;
    let order = [first[0], repeated[0], first[1], first[2], first[3], repeated[1]];
    assert_eq!(ids(&claimed_one(stand).await), order);
}

/// All bounds hold: of the whole, of a lane, of an application with what it has under way already.
pub async fn nobody_gets_more_than_there_is_room_for(stand: &dyn Stand) {
    let seller = seller(stand).await;
    let (one, other) = (application(stand, seller).await, application(stand, seller).await);
    for application in [one, one, other] {
        queue(stand, subscribed(stand, seller, application).await, 10).await;
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
    let lanes = claimed(stand, room).await;
    assert_eq!(numbers(&lanes), [4, 2, 3]);
    assert_eq!(lanes[2].client_id, other);
    for lane in &lanes {
        stand.lanes().settle(&[], &[release(lane.hold)]).await.unwrap();
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
    let lanes = claimed(stand, full).await;
    assert!(lanes.iter().all(|lane| lane.client_id == one), "{lanes:?}");
    assert_eq!(numbers(&lanes).iter().sum::<usize>(), 2);
}

/// More is given of a lane that is held, none of what runs, and a lane that is not held any more is left out.
pub async fn a_top_up_prolongs_and_leaves_out_what_runs(stand: &dyn Stand) {
    let key = lane(stand).await;
    let first = queue(stand, key, 1).await;
    let lane = claimed_one(stand).await;
    let more = queue(stand, key, 2).await;
    let top_up = |hold| TopUp {
        hold,
        running: first.clone(),
        room: 5,
        repeats: 5,
    };
    stand.advance(LEASE - TimeDelta::seconds(1)).await;
    let stranger = Hold {
        fence: id(),
        ..lane.hold
    };
    let given = stand
        .lanes()
        .top_up(&[top_up(lane.hold), top_up(stranger)])
        .await
        .unwrap();
    assert_eq!(given.len(), 1);
    assert_eq!(given[0].hold, lane.hold);
    let given: Vec<_> = given[0].deliveries.iter().map(|due| due.id).collect();
    assert_eq!(given, more);
    stand.advance(LEASE - TimeDelta::seconds(1)).await;
    assert!(
        claimed(stand, ROOM).await.is_empty(),
        "the lease was not prolonged"
    );
    stand.advance(TimeDelta::seconds(1)).await;
    let lost: Vec<_> = claimed_one(stand)
        .await
        .deliveries
        .iter()
        .map(|due| due.lost)
        .collect();
    assert_eq!(lost, [1, 1, 1]);
}

/// Whoever has seen all that is due is told so, and need not ask again for nothing.
pub async fn a_claim_tells_whether_there_may_be_more(stand: &dyn Stand) {
    let claim = async |attempts| {
        let room = Room { attempts, ..ROOM };
        let claimed = stand.lanes().claim(id(), room).await.unwrap();
        (claimed.lanes.len(), claimed.more)
    };
    assert_eq!(claim(64).await, (0, false));
    for _ in 0..3 {
        queue(stand, lane(stand).await, 1).await;
    }
    assert_eq!(claim(1).await, (1, true));
    assert_eq!(claim(64).await, (2, false));
    assert_eq!(claim(64).await, (0, false));
}

async fn moved(
    stand: &dyn Stand,
    client_id: ClientId,
    step: impl FnOnce(oauth::ApplicationStatus) -> Result<oauth::ApplicationStatus, oauth::ImpossibleMove>,
) {
    let tx = begin(stand).await;
    let application: Application = tx.lock_application(client_id).await.unwrap().unwrap();
    tx.save_application(application.moved(step).unwrap())
        .await
        .unwrap();
    tx.commit().await.unwrap();
}

/// While an application is suspended nothing of it is given out; reinstated, it goes on.
pub async fn a_suspended_applications_lanes_rest(stand: &dyn Stand) {
    let seller: SellerId = seller(stand).await;
    let client_id = application(stand, seller).await;
    let key = subscribed(stand, seller, client_id).await;
    let queued = queue(stand, key, 2).await;
    moved(stand, client_id, oauth::ApplicationStatus::suspend).await;
    let claimed = stand.lanes().claim(id(), ROOM).await.unwrap();
    assert_eq!((claimed.lanes.len(), claimed.set_aside), (0, 1));
    let claimed = stand.lanes().claim(id(), ROOM).await.unwrap();
    assert_eq!((claimed.lanes.len(), claimed.set_aside), (0, 0));
    moved(stand, client_id, oauth::ApplicationStatus::reinstate).await;
    assert_eq!(ids(&claimed_one(stand).await), queued);
}
