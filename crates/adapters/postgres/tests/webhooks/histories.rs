//! Histories: newest first, the last hundred, and the seller's view over all.

use webhooks::{DeliveryFilter, DeliveryState, WebhookEvent};

use crate::support::{Fixture, all_ended, ended, release};

#[tokio::test]
async fn the_last_hundred_are_told_newest_first() {
    let fixture = Fixture::new().await;
    let seller = fixture.seller().await;
    let application = fixture.application(seller).await;
    let lane = fixture.subscribe(seller, application).await;
    let reader = fixture.database.subscriptions();
    assert_eq!(
        reader
            .history(seller, application, lane.subscription)
            .await
            .unwrap(),
        Some(Vec::new())
    );
    let mut queued = Vec::new();
    for _ in 0..4 {
        queued.extend(fixture.queue(lane, 30).await);
    }
    let history = reader
        .history(seller, application, lane.subscription)
        .await
        .unwrap()
        .unwrap();
    let expected: Vec<_> = queued.iter().rev().take(100).copied().collect();
    assert_eq!(history.iter().map(|told| told.id).collect::<Vec<_>>(), expected);
    assert!(
        history
            .iter()
            .all(|told| told.state == DeliveryState::Queued && told.event == WebhookEvent::OrderPaid)
    );
    let stranger = fixture.application(seller).await;
    assert!(
        reader
            .history(seller, stranger, lane.subscription)
            .await
            .unwrap()
            .is_none()
    );
}

#[tokio::test]
async fn a_seller_sees_all_and_can_ask_for_what_failed() {
    let fixture = Fixture::new().await;
    let (seller, other) = (fixture.seller().await, fixture.seller().await);
    let (own, guest) = (
        fixture.application(seller).await,
        fixture.application(other).await,
    );
    fixture.connect(seller, guest).await;
    let (one, two) = (
        fixture.subscribe(seller, own).await,
        fixture.subscribe(seller, guest).await,
    );
    let elsewhere = fixture.subscribe(other, guest).await;
    for lane in [one, two, elsewhere] {
        fixture.queue(lane, 3).await;
    }
    for lane in fixture.claim().await {
        let mut ends = all_ended(&lane, 200);
        ends[1] = ended(lane.hold, &lane.deliveries[1], 500);
        ends.pop();
        fixture.settle(&ends, &[release(lane.hold)]).await;
    }
    let reader = fixture.database.subscriptions();
    let ask = async |filter, limit| {
        let told = reader.deliveries_of_seller(seller, filter, limit).await.unwrap();
        told.into_iter()
            .map(|one| {
                (
                    one.subscription,
                    one.delivery.state.attempt(),
                    one.delivery.state.delivered_at().is_some(),
                )
            })
            .collect::<Vec<_>>()
    };
    let all = DeliveryFilter::default();
    let (a, b) = (one.subscription, two.subscription);
    let lane = |id| [(id, 0, false), (id, 1, false), (id, 1, true)];
    assert_eq!(ask(all, 10).await, [lane(b), lane(a)].concat());
    assert_eq!(ask(all, 4).await, [lane(b), lane(a)].concat()[..4]);
    assert_eq!(
        ask(DeliveryFilter { failed: true, ..all }, 10).await,
        [(b, 1, false), (a, 1, false)]
    );
    let only = DeliveryFilter {
        subscription: Some(a),
        failed: false,
    };
    assert_eq!(ask(only, 10).await, lane(a));
    assert_eq!(
        ask(DeliveryFilter { failed: true, ..only }, 10).await,
        [(a, 1, false)]
    );
    assert!(
        ask(
            DeliveryFilter {
                subscription: Some(elsewhere.subscription),
                failed: false
            },
            10
        )
        .await
        .is_empty()
    );
}

#[tokio::test]
async fn a_body_reads_back_for_the_seller_whose_it_is() {
    let fixture = Fixture::new().await;
    let lane = fixture.lane().await;
    let other = fixture.lane().await;
    let id = fixture.queue(lane, 1).await[0];
    let tx = fixture.begin().await;
    let body = format!("{{\"id\":\"{id}\"}}").into_bytes();
    assert_eq!(
        tx.delivery_body(lane.seller, lane.subscription, id)
            .await
            .unwrap(),
        Some((WebhookEvent::OrderPaid, body))
    );
    assert_eq!(
        tx.delivery_body(other.seller, lane.subscription, id)
            .await
            .unwrap(),
        None
    );
    assert_eq!(
        tx.delivery_body(other.seller, other.subscription, id)
            .await
            .unwrap(),
        None
    );
}
