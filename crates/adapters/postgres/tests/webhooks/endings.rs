//! Subscriptions that end: removed, disconnected, their application deleted, the seller's account closed.

use kernel::SellerId;
use oauth::ClientId;
use webhooks::{Delivery, DeliveryState, LaneKey, TopUp};

use crate::support::{Fixture, delivery, ids};

/// Another seller's application that the seller has let in, and a subscription of it.
async fn let_in(fixture: &Fixture) -> (SellerId, ClientId, LaneKey) {
    let (seller, owner) = (fixture.seller().await, fixture.seller().await);
    let application = fixture.application(owner).await;
    fixture.connect(seller, application).await;
    let lane = fixture.subscribe(seller, application).await;
    (seller, application, lane)
}

/// Deliveries are queued for nobody any more and none is given out. What runs at the moment is recorded where there is still
/// something to record it of.
async fn nothing_more(fixture: &Fixture, lane: LaneKey, held: &webhooks::Lane, recorded: i64) {
    fixture.end_all(held, 200).await;
    assert_eq!(fixture.delivered().await, recorded);
    let tx = fixture.begin().await;
    let new = delivery(&*tx);
    assert!(
        !tx.queue_delivery(lane.seller, lane.subscription, new)
            .await
            .unwrap()
    );
    tx.commit().await.unwrap();
    assert!(fixture.claim().await.is_empty());
    assert_eq!(
        fixture
            .count("select count(*) from deliveries where due_at is not null")
            .await,
        0
    );
}

#[tokio::test]
async fn a_removed_subscription_is_gone_with_its_history() {
    let fixture = Fixture::new().await;
    let (seller, application, lane) = let_in(&fixture).await;
    let other = fixture.subscribe(seller, application).await;
    let told = fixture.queue(lane, 20).await;
    let held = fixture.claim_one().await;
    let tx = fixture.begin().await;
    let stranger = fixture.application(seller).await;
    assert!(
        !tx.remove_subscription(seller, stranger, lane.subscription)
            .await
            .unwrap()
    );
    assert!(
        tx.remove_subscription(seller, application, lane.subscription)
            .await
            .unwrap()
    );
    tx.commit().await.unwrap();
    let reader = fixture.database.subscriptions();
    assert!(
        reader
            .history(seller, application, lane.subscription)
            .await
            .unwrap()
            .is_none()
    );
    let left = reader.subscriptions(seller, application).await.unwrap();
    assert_eq!(
        left.iter().map(|one| one.id).collect::<Vec<_>>(),
        [other.subscription]
    );
    nothing_more(&fixture, lane, &held, 0).await;
    let tx = fixture.begin().await;
    assert!(
        tx.delivery_body(seller, lane.subscription, told[0])
            .await
            .unwrap()
            .is_none()
    );
    assert!(
        tx.subscription(seller, lane.subscription)
            .await
            .unwrap()
            .is_none()
    );
    assert!(
        !tx.remove_subscription(seller, application, lane.subscription)
            .await
            .unwrap()
    );
}

#[tokio::test]
async fn a_disconnected_application_s_subscriptions_are_inactive_for_good() {
    let fixture = Fixture::new().await;
    let (seller, application, lane) = let_in(&fixture).await;
    fixture.queue(lane, 2).await;
    let held = fixture.claim_one().await;
    let tx = fixture.begin().await;
    assert!(tx.disconnect(seller, application).await.unwrap());
    tx.commit().await.unwrap();
    let reader = fixture.database.subscriptions();
    assert!(!reader.subscriptions(seller, application).await.unwrap()[0].active);
    nothing_more(&fixture, lane, &held, 2).await;
    let history = reader
        .history(seller, application, lane.subscription)
        .await
        .unwrap()
        .unwrap();
    let delivered = |told: &Delivery| matches!(told.state, DeliveryState::Delivered { attempt: 1, .. });
    assert!(history.len() == 2 && history.iter().all(delivered), "{history:?}");

    fixture
        .tamper("update connections set disconnected_at = null")
        .await;
    assert!(!reader.subscriptions(seller, application).await.unwrap()[0].active);
    let new = fixture.subscribe(seller, application).await;
    fixture.queue(new, 1).await;
    assert_eq!(
        fixture.claim_one().await.hold.lane,
        new,
        "a new one lives with the new connection"
    );
}

#[tokio::test]
async fn a_failure_of_what_ran_at_the_end_is_recorded_and_nothing_is_tried_again() {
    let fixture = Fixture::new().await;
    let (seller, application, lane) = let_in(&fixture).await;
    fixture.queue(lane, 17).await;
    let held = fixture.claim_one().await;
    let tx = fixture.begin().await;
    assert!(tx.disconnect(seller, application).await.unwrap());
    tx.commit().await.unwrap();
    let more = TopUp {
        hold: held.hold,
        running: ids(&held),
        room: 4,
        repeats: 4,
    };
    assert!(fixture.lanes().top_up(&[more]).await.unwrap().is_empty());
    for _ in 0..2 {
        fixture.end_all(&held, 500).await;
    }
    let reader = fixture.database.subscriptions();
    let history = reader
        .history(seller, application, lane.subscription)
        .await
        .unwrap()
        .unwrap();
    let stopped = |attempts: u8| {
        let is = |told: &&Delivery| match &told.state {
            DeliveryState::Stopped { attempt, last } => {
                *attempt == attempts && last.is_some() == (attempts > 0)
            }
            _ => false,
        };
        history.iter().filter(is).count()
    };
    assert_eq!((stopped(1), stopped(0)), (16, 1), "{history:?}");
    assert_eq!(fixture.sleeps(lane).await, None);
    assert!(fixture.claim().await.is_empty());
}

#[tokio::test]
async fn a_subscription_made_after_the_end_of_the_connection_is_inactive() {
    let fixture = Fixture::new().await;
    let (seller, application, _) = let_in(&fixture).await;
    let tx = fixture.begin().await;
    assert!(tx.disconnect(seller, application).await.unwrap());
    tx.commit().await.unwrap();
    fixture.subscribe(seller, application).await;
    let all = fixture
        .database
        .subscriptions()
        .subscriptions(seller, application)
        .await
        .unwrap();
    assert_eq!(
        all.iter().map(|one| one.active).collect::<Vec<_>>(),
        [false, false]
    );
}

#[tokio::test]
async fn a_deleted_application_s_subscriptions_are_removed() {
    let fixture = Fixture::new().await;
    let (seller, application, lane) = let_in(&fixture).await;
    let (other_seller, _, other) = let_in(&fixture).await;
    fixture.queue(other, 1).await;
    fixture.claim().await;
    fixture.queue(lane, 2).await;
    let held = fixture.claim_one().await;
    let tx = fixture.begin().await;
    assert!(tx.delete_application(application).await.unwrap());
    tx.commit().await.unwrap();
    assert_eq!(fixture.count("select count(*) from subscriptions").await, 1);
    assert_eq!(fixture.count("select sum(used) from subscription_quota").await, 1);
    assert!(
        fixture
            .database
            .subscriptions()
            .subscriptions_of_seller(seller)
            .await
            .unwrap()
            .is_empty()
    );
    assert_eq!(
        fixture
            .database
            .subscriptions()
            .subscriptions_of_seller(other_seller)
            .await
            .unwrap()
            .len(),
        1
    );
    fixture
        .tamper(&format!(
            "delete from deliveries where subscription_id = '{}'",
            other.subscription
        ))
        .await;
    nothing_more(&fixture, lane, &held, 0).await;
}

#[tokio::test]
async fn with_a_seller_s_account_end_what_is_told_of_it_and_what_its_applications_hear() {
    let fixture = Fixture::new().await;
    let (seller, other) = (fixture.seller().await, fixture.seller().await);
    let (own, guest) = (
        fixture.application(seller).await,
        fixture.application(other).await,
    );
    fixture.connect(other, own).await;
    fixture.connect(seller, guest).await;
    let ended = [
        fixture.subscribe(seller, own).await,
        fixture.subscribe(seller, guest).await,
        fixture.subscribe(other, own).await,
    ];
    let lives = fixture.subscribe(other, guest).await;
    for lane in ended {
        fixture.queue(lane, 1).await;
    }
    let tx = fixture.begin().await;
    assert!(tx.close_seller(seller, tx.now()).await.unwrap());
    tx.commit().await.unwrap();
    assert!(fixture.claim().await.is_empty());
    assert_eq!(
        fixture
            .count("select count(*) from deliveries where due_at is not null")
            .await,
        0
    );
    assert_eq!(
        fixture
            .count("select count(*) from subscriptions where active")
            .await,
        1
    );
    fixture.queue(lives, 1).await;
    assert_eq!(fixture.claim_one().await.hold.lane, lives);
}

#[tokio::test]
async fn what_a_transaction_could_not_stop_the_workers_do() {
    let fixture = Fixture::new().await;
    let (seller, application, lane) = let_in(&fixture).await;
    let fill = format!(
        "insert into deliveries (seller_id, subscription_id, id, created_at, due_at, event, body) \
           select '{seller}', '{}', gen_random_uuid(), api_now(), api_now(), 'order.paid', 'x' from generate_series(1, 2600) n",
        lane.subscription
    );
    fixture.tamper(&fill).await;
    let tx = fixture.begin().await;
    assert!(tx.disconnect(seller, application).await.unwrap());
    tx.commit().await.unwrap();
    let pending = "select count(*) from deliveries where due_at is not null";
    assert!(fixture.count(pending).await > 0);
    let reader = fixture.database.subscriptions();
    let history = reader
        .history(seller, application, lane.subscription)
        .await
        .unwrap()
        .unwrap();
    assert!(
        history
            .iter()
            .all(|told| told.state.next_retry_at().is_none() && told.state != DeliveryState::Queued)
    );
    for _ in 0..10 {
        assert!(fixture.claim().await.is_empty());
    }
    assert_eq!(fixture.count(pending).await, 0);
    assert_eq!(fixture.sleeps(lane).await, None);
}

#[tokio::test]
async fn a_claim_looks_again_whether_the_lane_lives() {
    let fixture = Fixture::new().await;
    let ends = [
        "update applications set deleted_at = api_now() where client_id = '{client}'",
        "update connections set generation = 2 where client_id = '{client}'",
        "update connections set disconnected_at = api_now() where client_id = '{client}'",
        "update subscriptions set active = false where client_id = '{client}'",
        "update sellers set closed_at = api_now() where id = '{seller}'",
        "update sellers set closed_at = api_now() where id = (select owner_id from applications where client_id = '{client}')",
    ];
    for end in ends {
        let (seller, application, lane) = let_in(&fixture).await;
        fixture.queue(lane, 3).await;
        let end = end
            .replace("{client}", &application.uuid().to_string())
            .replace("{seller}", &seller.uuid().to_string());
        fixture.tamper(&end).await;
        assert!(fixture.claim().await.is_empty(), "{end}");
        fixture.claim().await;
        assert_eq!(
            fixture
                .count("select count(*) from deliveries where due_at is not null")
                .await,
            0,
            "{end}"
        );
        assert_eq!(fixture.sleeps(lane).await, None, "{end}");
    }
}
