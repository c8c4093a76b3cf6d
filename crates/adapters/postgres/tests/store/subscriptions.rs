//! Subscriptions: their places, secrets, histories, retention, and queue metrics.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use futures_util::future::join_all;
use kernel::SellerId;
use oauth::ClientId;
use orders::Carrier;
use webhooks::{DeliveryFilter, MOST_SUBSCRIPTIONS, QueueKey, WebhookEvent};

use crate::support::{Fixture, all_ended, ended, release, subscription};

/// Takes a place, and creates a subscription with it.
async fn create(fixture: &Fixture, seller: SellerId, client_id: ClientId) -> bool {
    let tx = fixture.begin().await;
    let place = tx.take_subscription_place(seller, client_id).await.unwrap();
    if place {
        tx.add_subscription(subscription(seller, client_id))
            .await
            .unwrap();
        tx.commit().await.unwrap();
    }
    place
}

#[tokio::test(flavor = "multi_thread")]
async fn twenty_have_a_place_and_one_that_is_given_up_is_free_again_once() {
    let fixture = Fixture::new().await;
    let seller = fixture.seller().await;
    let application = fixture.client_of(seller).await;
    let queue = fixture.subscribe(seller, application).await;
    // A rollback frees the place.
    assert!(
        fixture
            .begin()
            .await
            .take_subscription_place(seller, application)
            .await
            .unwrap()
    );
    let made = join_all((0..40).map(|_| create(&fixture, seller, application))).await;
    assert_eq!(made.iter().filter(|made| **made).count(), 19);
    assert_eq!(
        (MOST_SUBSCRIPTIONS, fixture.rows_of("subscriptions").await),
        (20, 20)
    );
    fixture.tamper("update subscriptions set active = false").await;
    assert!(
        !create(&fixture, seller, application).await,
        "inactive ones keep theirs"
    );
    let remove = async || {
        fixture
            .tx(async |tx| {
                tx.remove_subscription(seller, application, queue.subscription)
                    .await
                    .unwrap()
            })
            .await
    };
    let gone = join_all((0..5).map(|_| remove())).await;
    assert_eq!(gone.iter().filter(|gone| **gone).count(), 1);
    assert!(create(&fixture, seller, application).await && !create(&fixture, seller, application).await);
    assert!(
        create(&fixture, seller, fixture.client_of(seller).await).await,
        "the pair counts"
    );
}

#[tokio::test]
async fn a_secret_is_sealed_for_its_row_and_does_not_open_in_another() {
    let fixture = Fixture::new().await;
    let (one, other) = (fixture.queue().await, fixture.queue().await);
    for queue in [one, other] {
        fixture.enqueue(queue, 1).await;
    }
    assert_eq!(
        fixture
            .count("select count(distinct secret) from subscriptions")
            .await,
        2
    );
    fixture
        .set_queue(
            other,
            &format!(
                "secret = (select secret from subscriptions where id = '{}')",
                one.subscription
            ),
        )
        .await;
    let claimed = fixture.claim_one().await;
    assert_eq!(claimed.lease.queue, one, "the other is told in the log");
    let kept = subscription(one.seller, claimed.client_id);
    assert_eq!((claimed.secret, claimed.url), (kept.secret, kept.url));
}

#[tokio::test]
async fn a_seller_sees_all_deliveries_and_can_ask_for_what_failed() {
    let fixture = Fixture::new().await;
    let (seller, other) = (fixture.seller().await, fixture.seller().await);
    let (own, guest) = (fixture.client_of(seller).await, fixture.client_of(other).await);
    fixture.connect(seller, guest).await;
    let (one, two) = (
        fixture.subscribe(seller, own).await,
        fixture.subscribe(seller, guest).await,
    );
    let elsewhere = fixture.subscribe(other, guest).await;
    for queue in [one, two, elsewhere] {
        fixture.enqueue(queue, 3).await;
    }
    for queue in fixture.claim().await {
        let ends = [
            all_ended(&queue, 200).remove(0),
            ended(queue.lease, &queue.deliveries[1], 500),
        ];
        fixture.settle(&ends, &[release(queue.lease)]).await;
    }
    let reader = fixture.database.subscriptions();
    let ask = async |subscription, failed, limit| {
        let filter = DeliveryFilter { subscription, failed };
        let told = reader.deliveries_of_seller(seller, filter, limit).await.unwrap();
        let state = |one: webhooks::DeliveryOfSeller| {
            let state = one.delivery.state;
            (one.subscription, state.attempt(), state.delivered_at().is_some())
        };
        told.into_iter().map(state).collect::<Vec<_>>()
    };
    let (a, b) = (one.subscription, two.subscription);
    let queue = |id| [(id, 0, false), (id, 1, false), (id, 1, true)];
    let all = [queue(b), queue(a)].concat();
    assert_eq!(ask(None, false, 10).await, all);
    assert_eq!(ask(None, false, 4).await, all[..4]);
    assert_eq!(ask(None, true, 10).await, [(b, 1, false), (a, 1, false)]);
    assert_eq!(ask(Some(a), false, 10).await, queue(a));
    assert_eq!(ask(Some(a), true, 10).await, [(a, 1, false)]);
    assert_eq!(ask(Some(elsewhere.subscription), false, 10).await, []);
}

#[tokio::test]
async fn a_body_reads_back_for_the_seller_whose_it_is() {
    let fixture = Fixture::new().await;
    let (queue, other) = (fixture.queue().await, fixture.queue().await);
    let id = fixture.enqueue(queue, 1).await[0];
    let body = format!("{{\"id\":\"{id}\"}}").into_bytes();
    let tx = fixture.begin().await;
    for (seller, subscription, found) in [
        (
            queue.seller,
            queue.subscription,
            Some((WebhookEvent::OrderPaid, body)),
        ),
        (other.seller, queue.subscription, None),
        (other.seller, other.subscription, None),
    ] {
        assert_eq!(tx.delivery_body(seller, subscription, id).await.unwrap(), found);
    }
}

/// Inserts deliveries queued at this time: finished, or pending.
async fn fill(fixture: &Fixture, queue: QueueKey, number: i32, at: DateTime<Utc>, done: bool) {
    let fill = "insert into deliveries (seller_id, subscription_id, id, created_at, due_at, delivered_at, attempt, response_status, \
          event, body) \
        select $1, $2, api_uuid($4), $4, case when not $5 then $4 end, case when $5 then $4 end, $5::int, case when $5 then 200 end, \
          'order.paid', 'x' from generate_series(1, $3)";
    let (seller, subscription) = (queue.seller.uuid(), queue.subscription.uuid());
    let values: [&(dyn tokio_postgres::types::ToSql + Sync); 5] =
        [&seller, &subscription, &number, &at, &done];
    fixture.client.execute(fill, &values).await.unwrap();
}

/// Deletes until nothing is left to delete.
async fn clear(fixture: &Fixture) -> usize {
    let mut cleared = 0;
    for _ in 0..1_000 {
        let batch = fixture.database.clear_records().await.unwrap();
        assert!(batch.deliveries <= 1_000);
        cleared += batch.deliveries;
        if !batch.more {
            return cleared;
        }
    }
    panic!("it never ends");
}

#[tokio::test]
async fn what_is_old_and_done_goes_but_for_the_last_hundred() {
    let (fixture, clock) = Fixture::frozen().await;
    let now = clock.now().await;
    let month = TimeDelta::days(30);
    let old = now - month - TimeDelta::milliseconds(2);
    let (quiet, busy) = (fixture.queue().await, fixture.queue().await);
    let (waiting, young) = (fixture.queue().await, fixture.queue().await);
    fill(&fixture, quiet, 130, old, true).await;
    fill(&fixture, busy, 1_500, old, true).await;
    fill(&fixture, busy, 60, now, true).await;
    fill(&fixture, waiting, 20, old, false).await;
    fill(&fixture, waiting, 200, now, true).await;
    fill(&fixture, young, 300, now - month, true).await;
    assert_eq!(clear(&fixture).await, 30 + 1_460);
    for (queue, left) in [(quiet, 100), (busy, 100), (waiting, 220), (young, 300)] {
        let of_queue = format!("deliveries where subscription_id = '{}'", queue.subscription);
        assert_eq!(fixture.rows_of(&of_queue).await, left);
    }
    assert_eq!(clear(&fixture).await, 0);
    clock.advance(TimeDelta::milliseconds(2)).await;
    assert_eq!(clear(&fixture).await, 200);

    // Deliveries without a subscription are always deleted, and many queues are processed in batches.
    fill(&fixture, busy, 1_200, now, false).await;
    let removed = format!("delete from subscriptions where id = '{}'", busy.subscription);
    fixture.tamper(&removed).await;
    assert_eq!(clear(&fixture).await, 1_300);
    let lost = "delete from deliveries; \
        insert into deliveries (seller_id, subscription_id, id, created_at, due_at, event, body) \
          select gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), api_now(), null, 'order.paid', 'x' \
          from generate_series(1, 650)";
    fixture.tamper(lost).await;
    let first = fixture.database.clear_records().await.unwrap();
    assert_eq!((first.deliveries, first.more), (200, true));
    assert_eq!(clear(&fixture).await, 450);
}

#[tokio::test]
async fn what_waits_is_told_by_queue_with_the_age_of_the_oldest_that_is_due() {
    let (fixture, _clock) = Fixture::frozen().await;
    let nothing = fixture.database.queues().await.unwrap();
    assert_eq!((nothing.first_deliveries.waiting, nothing.parcels.len()), (0, 7));
    assert_eq!(nothing.first_deliveries.overdue, Duration::ZERO);
    let (lively, failing) = (fixture.queue().await, fixture.queue().await);
    fixture.fill(lively, 30, 0).await;
    fixture.fill(failing, 5, 3).await;
    let others = format!(
        "set session_replication_role = replica; \
         insert into mails (id, order_id, due_at, order_number, recipient, carrier, tracking_number) \
           select gen_random_uuid(), gen_random_uuid(), api_now() + interval '1 h', 'N-1', 'a@b.example', 'dhl', 'ABCD1' \
             from generate_series(1, 4); \
         insert into parcels (seller_id, order_id, shipped_at, due_at, carrier, tracking_number) \
           select '{}', gen_random_uuid(), api_now(), api_now() - n * interval '1 h', 'gls', 'ABCD1' from generate_series(-1, 2) n",
        lively.seller
    );
    fixture.tamper(&others).await;
    let queues = fixture.database.queues().await.unwrap();
    let (hour, none) = (Duration::from_hours(1), Duration::ZERO);
    let first_due = hour.saturating_sub(Duration::from_millis(1));
    for (queue, waiting, overdue) in [
        (&queues.first_deliveries, 30, first_due),
        (&queues.repeated_deliveries, 5, first_due),
        (&queues.shipment_mails, 4, none),
        (&queues.account_mails, 0, none),
    ] {
        assert_eq!((queue.waiting, queue.overdue), (waiting, overdue));
    }
    for (carrier, parcels) in queues.parcels {
        // One of four is not due yet.
        let expected = if carrier == Carrier::Gls {
            (3, hour * 2)
        } else {
            (0, none)
        };
        assert_eq!((parcels.waiting, parcels.overdue), expected, "{carrier:?}");
    }
}
