//! While an application is suspended its lanes rest, and go on when it is reinstated.

use kernel::Change;
use oauth::{ApplicationStatus, ClientId};

use crate::support::{Fixture, ROOM, delivery, id};

/// Moves an application to a status as the operator does, in a transaction that is still open.
async fn moved(
    fixture: &Fixture,
    application: ClientId,
    status: ApplicationStatus,
) -> Box<dyn usecases::Transaction> {
    let tx = fixture.begin().await;
    let mut after = tx.lock_application(application).await.unwrap().unwrap();
    after.status = status;
    tx.save_application(Change::of_existing(after, Vec::new()))
        .await
        .unwrap();
    tx
}

async fn set(fixture: &Fixture, application: ClientId, status: ApplicationStatus) {
    moved(fixture, application, status).await.commit().await.unwrap();
}

#[tokio::test]
async fn what_is_pending_is_held_and_resumed_with_the_commit() {
    let fixture = Fixture::new().await;
    let (seller, other) = (fixture.seller().await, fixture.seller().await);
    let application = fixture.application(seller).await;
    fixture.connect(other, application).await;
    let lanes = [
        fixture.subscribe(seller, application).await,
        fixture.subscribe(other, application).await,
    ];
    let idle = fixture.subscribe(seller, application).await;
    for lane in lanes {
        fixture.queue(lane, 2).await;
    }
    set(&fixture, application, ApplicationStatus::Suspended).await;
    for set_aside in [2, 0] {
        let claimed = fixture.lanes().claim(id(), ROOM).await.unwrap();
        assert_eq!((claimed.lanes.len(), claimed.set_aside), (0, set_aside));
    }
    assert_eq!(
        fixture
            .count("select count(*) from deliveries where due_at is not null")
            .await,
        4
    );
    let resting = "select count(*) from subscriptions where active and wake_at is null";
    assert_eq!(
        fixture.count(resting).await,
        3,
        "the idle one, and those that rest"
    );
    assert_eq!(fixture.lanes().reconcile().await.unwrap(), 0);
    let tx = fixture.begin().await;
    let new = delivery(&*tx);
    assert!(
        !tx.queue_delivery(seller, lanes[0].subscription, new)
            .await
            .unwrap()
    );
    drop(tx);

    set(&fixture, application, ApplicationStatus::Active).await;
    let mut resumed: Vec<_> = fixture
        .claim()
        .await
        .iter()
        .map(|lane| (lane.hold.lane, lane.deliveries.len()))
        .collect();
    resumed.sort();
    assert_eq!(resumed, [(lanes[0], 2), (lanes[1], 2)]);
    assert_eq!(fixture.sleeps(idle).await, None);
}

#[tokio::test]
async fn what_runs_when_it_is_suspended_is_recorded() {
    let fixture = Fixture::new().await;
    let seller = fixture.seller().await;
    let application = fixture.application(seller).await;
    let lane = fixture.subscribe(seller, application).await;
    fixture.queue(lane, 17).await;
    let claimed = fixture.claim_one().await;
    set(&fixture, application, ApplicationStatus::Suspended).await;
    let running = webhooks::TopUp {
        hold: claimed.hold,
        running: Vec::new(),
        room: 1,
        repeats: 1,
    };
    assert!(
        fixture.lanes().top_up(&[running]).await.unwrap().is_empty(),
        "nothing else begins"
    );
    fixture.end_all(&claimed, 200).await;
    assert_eq!(fixture.delivered().await, 16);
    assert!(fixture.claim().await.is_empty());
    set(&fixture, application, ApplicationStatus::Active).await;
    assert_eq!(fixture.claim_one().await.deliveries.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lane_does_not_fall_asleep_under_a_reinstatement() {
    let fixture = Fixture::new().await;
    let seller = fixture.seller().await;
    let application = fixture.application(seller).await;
    let lane = fixture.subscribe(seller, application).await;
    fixture.queue(lane, 1).await;
    set(&fixture, application, ApplicationStatus::Suspended).await;
    let tx = moved(&fixture, application, ApplicationStatus::Active).await;
    // The claim still sees the suspension, and waits for nobody.
    assert!(fixture.claim().await.is_empty());
    tx.commit().await.unwrap();
    assert_eq!(fixture.claim_one().await.deliveries.len(), 1);
}

#[tokio::test]
async fn few_claims_come_upon_a_suspended_application_however_many_lanes_it_has() {
    let fixture = Fixture::new().await;
    let seller = fixture.seller().await;
    let application = fixture.application(seller).await;
    let lane = fixture.subscribe(seller, application).await;
    fixture.queue(lane, 1).await;
    let alike = "insert into subscriptions \
        select (jsonb_populate_record(s, jsonb_build_object('id', gen_random_uuid()))).* from subscriptions s, generate_series(1, 1500)";
    fixture.tamper(alike).await;
    set(&fixture, application, ApplicationStatus::Suspended).await;
    let sound = fixture.lane().await;
    fixture.queue(sound, 1).await;
    let mut claims = 0;
    let claimed = loop {
        claims += 1;
        let claimed = fixture.claim().await;
        if !claimed.is_empty() {
            break claimed;
        }
        assert!(claims < 3, "{claims} claims");
    };
    assert_eq!(claimed[0].hold.lane, sound);
    let awake = "select count(*) from subscriptions where wake_at is not null and not leased";
    assert_eq!(fixture.count(awake).await, 0);
    set(&fixture, application, ApplicationStatus::Active).await;
    let claimed = fixture.claim_one().await;
    assert_eq!(claimed.hold.lane, lane, "what waits wakes, and nothing else");
}
