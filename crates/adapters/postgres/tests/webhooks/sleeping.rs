//! A lane never sleeps with work.

use std::time::Duration;

use futures_util::FutureExt;
use kernel::{Change, Money};
use kernel::{Claim, Fingerprint, IdempotencyKey, KeySpace, OfferId, Remembered, SellerId};
use offers::{Decision, Offer, OfferStatus, Price, PriceSource, Stock};
use usecases::Transaction;
use webhooks::LaneKey;

use crate::support::{Fixture, delivery, id, instant};

async fn offer(fixture: &Fixture, seller: SellerId) -> OfferId {
    let id = OfferId::from(id());
    let at = instant();
    let offer = Offer {
        seller,
        id,
        title: "Kettle".to_owned(),
        handle: format!("kettle-{id}"),
        status: OfferStatus::Published,
        price: Some(Price {
            money: Money::pln(12_999).unwrap(),
            source: PriceSource::Automatic,
        }),
        stock: Some(Stock::new(1).unwrap()),
        ean: None,
        brand: None,
        signature: None,
        thumbnail: None,
        url: "https://shop.example/kettle".to_owned(),
        created_at: at,
        updated_at: at,
    };
    let tx = fixture.begin().await;
    tx.save_offers(seller, vec![Change::made(offer, Vec::new())])
        .await
        .unwrap();
    tx.commit().await.unwrap();
    id
}

/// A transaction that has told of an offer's rejection and is still open.
async fn open_fan_out(fixture: &Fixture, lane: LaneKey, offer: OfferId) -> Box<dyn Transaction> {
    let claim = Claim {
        space: KeySpace::Seller(lane.seller),
        key: IdempotencyKey::new(id().to_string().as_bytes()).unwrap(),
        fingerprint: Fingerprint::of(&[b"x"]),
        fence: id(),
    };
    fixture
        .database
        .claims()
        .claim(&claim, Duration::from_mins(1))
        .await
        .unwrap();
    let tx = fixture.begin().await;
    let before = tx.lock_offers(lane.seller, &[offer]).await.unwrap().remove(0);
    let change: Change<_, _> = before.moderate(Decision::Reject, tx.now());
    tx.save_offers(lane.seller, vec![change]).await.unwrap();
    // With the completion all that is told has been written.
    tx.complete(
        &claim,
        &Remembered {
            status: 200,
            body: Vec::new(),
        },
    )
    .await
    .unwrap();
    tx
}

/// The lane is due at once, or in the blink that it takes to look again.
async fn gets_its_work(fixture: &Fixture) {
    let started = tokio::time::Instant::now();
    loop {
        for lane in fixture.claim().await {
            if !lane.deliveries.is_empty() {
                return;
            }
            fixture.release(lane.hold).await;
        }
        assert!(started.elapsed() < Duration::from_secs(5), "asleep with work");
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lane_given_back_while_work_is_about_to_be_committed_does_not_sleep() {
    let fixture = Fixture::new().await;
    let lane = fixture.lane().await;
    let offer = offer(&fixture, lane.seller).await;
    fixture.queue(lane, 1).await;
    let claimed = fixture.claim_one().await;
    let tx = open_fan_out(&fixture, lane, offer).await;
    // It waits for nobody's transaction.
    fixture.end_all(&claimed, 200).await;
    assert!(
        fixture.sleeps(lane).await.is_some(),
        "asleep while deliveries are being queued"
    );
    tx.commit().await.unwrap();
    gets_its_work(&fixture).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lane_that_is_being_given_back_while_work_comes_is_woken() {
    let fixture = Fixture::new().await;
    let lane = fixture.lane().await;
    let offer = offer(&fixture, lane.seller).await;
    fixture.queue(lane, 1).await;
    let claimed = fixture.claim_one().await;
    // What a settlement locks first, and holds until its second statement.
    let mut owner = fixture.place.connect().await;
    let settlement = owner.transaction().await.unwrap();
    settlement
        .execute("select from subscriptions for update", &[])
        .await
        .unwrap();
    let told = async {
        let tx = open_fan_out(&fixture, lane, offer).await;
        tx.commit().await.unwrap();
    };
    let mut told = std::pin::pin!(told);
    tokio::select! {
        () = &mut told => panic!("work came past the lock"),
        () = fixture.somebody_waits() => {}
    }
    settlement
        .execute(
            "update subscriptions set leased = false, fence = null, wake_at = null",
            &[],
        )
        .await
        .unwrap();
    settlement.commit().await.unwrap();
    told.await;
    drop(claimed);
    gets_its_work(&fixture).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn work_that_was_committed_before_the_lane_was_given_back_is_seen() {
    let fixture = Fixture::new().await;
    let lane = fixture.lane().await;
    let offer = offer(&fixture, lane.seller).await;
    fixture.queue(lane, 1).await;
    let claimed = fixture.claim_one().await;
    let tx = open_fan_out(&fixture, lane, offer).await;
    tx.commit().await.unwrap();
    fixture.end_all(&claimed, 200).await;
    assert!(fixture.sleeps(lane).await.unwrap() <= chrono::TimeDelta::zero());
    assert_eq!(fixture.claim_one().await.deliveries.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn in_a_crowd_nothing_is_left_behind() {
    const WRITERS: usize = 4;
    const EACH: usize = 60;
    let fixture = std::sync::Arc::new(Fixture::new().await);
    let lanes = [fixture.lane().await, fixture.lane().await, fixture.lane().await];
    let writers: Vec<_> = (0..WRITERS)
        .map(|n| {
            let fixture = std::sync::Arc::clone(&fixture);
            tokio::spawn(async move {
                for m in 0..EACH {
                    fixture.queue(lanes[(n + m) % 3], 1).await;
                }
            })
        })
        .collect();
    let workers: Vec<_> = (0..3)
        .map(|_| {
            let fixture = std::sync::Arc::clone(&fixture);
            tokio::spawn(async move {
                let started = tokio::time::Instant::now();
                while fixture.delivered().await < i64::try_from(WRITERS * EACH).unwrap() {
                    for lane in fixture.claim().await {
                        fixture.end_all(&lane, 200).await;
                    }
                    assert!(
                        started.elapsed() < Duration::from_mins(1),
                        "something is left behind"
                    );
                }
            })
        })
        .collect();
    for task in writers.into_iter().chain(workers) {
        task.await.unwrap();
    }
    assert_eq!(
        fixture
            .count("select count(*) from deliveries where attempt <> 1")
            .await,
        0
    );
    for lane in fixture.claim().await {
        fixture.release(lane.hold).await;
    }
    for lane in lanes {
        assert_eq!(fixture.sleeps(lane).await, None, "with nothing to do it sleeps");
    }
    assert_eq!(fixture.lanes().reconcile().await.unwrap(), 0);
}

#[tokio::test]
async fn a_forgotten_lane_is_woken() {
    let fixture = Fixture::new().await;
    let lanes = [
        fixture.lane().await,
        fixture.lane().await,
        fixture.lane().await,
        fixture.lane().await,
    ];
    for lane in &lanes[..3] {
        fixture.queue(*lane, 1).await;
    }
    fixture.tamper("update subscriptions set wake_at = null").await;
    let set = |lane: LaneKey, what: &str| {
        format!(
            "update subscriptions set {what} where id = '{}';",
            lane.subscription
        )
    };
    fixture
        .tamper(&set(lanes[1], "wake_at = api_now() + interval '1 hour'"))
        .await;
    fixture
        .tamper(&format!(
            "update deliveries set due_at = api_now() + interval '1 minute' where subscription_id = '{}'",
            lanes[2].subscription
        ))
        .await;
    assert_eq!(fixture.lanes().reconcile().await.unwrap(), 2);
    assert_eq!(fixture.lanes().reconcile().await.unwrap(), 0);
    let mut woken: Vec<_> = fixture.claim().await.iter().map(|lane| lane.hold.lane).collect();
    woken.sort();
    assert_eq!(woken, lanes[..2]);
}

#[tokio::test]
async fn a_lane_that_rests_is_not_forgotten() {
    let fixture = Fixture::new().await;
    let lane = fixture.lane().await;
    fixture.queue(lane, 1).await;
    let rests =
        |seconds| format!("update subscriptions set wake_at = api_now() + interval '{seconds} seconds'");
    fixture.tamper(&rests(2)).await;
    assert_eq!(fixture.lanes().reconcile().await.unwrap(), 0);
    fixture.tamper(&rests(10)).await;
    assert_eq!(fixture.lanes().reconcile().await.unwrap(), 1);
}

#[tokio::test]
async fn what_is_queued_by_hand_rings_with_its_commit() {
    let fixture = Fixture::new().await;
    let lane = fixture.lane().await;
    let hint = fixture.database.queued();
    let rings = || hint.notified().now_or_never().is_some();
    let tx = fixture.begin().await;
    let new = delivery(&*tx);
    assert!(
        tx.queue_delivery(lane.seller, lane.subscription, new)
            .await
            .unwrap()
    );
    assert!(!rings());
    tx.commit().await.unwrap();
    assert!(rings());
    // Nothing is queued for one that is gone, and nobody has to look.
    let tx = fixture.begin().await;
    let new = delivery(&*tx);
    assert!(!tx.queue_delivery(lane.seller, id().into(), new).await.unwrap());
    tx.commit().await.unwrap();
    assert!(!rings());
}
