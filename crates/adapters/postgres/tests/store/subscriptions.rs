//! Subscriptions: their places, secrets, histories, retention, and queue metrics.

use std::time::{Duration, Instant};

use adapter_postgres::Expired;
use chrono::{DateTime, TimeDelta, Utc};
use kernel::SellerId;
use orders::{Carrier, OrderId};
use testkit::lock_waits;
use tokio::select;
use uuid::Uuid;
use webhooks::{
    AddressPolicy, DeliveryFilter, DeliveryId, QueueKey, SubscriptionChange, WebhookEvent, WebhookSecret,
    WebhookUrl,
};

use crate::support::{Fixture, id, more, subscription};

#[tokio::test]
async fn a_secret_is_sealed_for_its_row_and_does_not_open_in_another() {
    let fixture = Fixture::new().await;
    let (one, other) = (fixture.queue().await, fixture.queue().await);
    for queue in [one, other] {
        fixture.enqueue(queue, 1).await;
    }
    let different = "select count(distinct secret) from subscriptions";
    assert_eq!(fixture.count(different).await, 2);
    let of_one = format!(
        "select secret from subscriptions where id = '{}'",
        one.subscription
    );
    fixture.set_queue(other, &format!("secret = ({of_one})")).await;
    let claimed = fixture.claim_one().await;
    assert_eq!(claimed.lease.queue, one, "the other is reported in the log");
    let stored = subscription(one.seller, claimed.client_id);
    assert_eq!((claimed.secrets, claimed.url), (stored.secret.into(), stored.url));
}

#[tokio::test]
async fn a_delivery_is_found_by_its_own_seller_and_application_alone() {
    let fixture = Fixture::new().await;
    let ((own, queue), (other, others)) = (fixture.subscribed().await, fixture.subscribed().await);
    let id = fixture.enqueue(queue, 1).await[0];
    let expected = fixture.history(own, queue).await.unwrap().remove(0);
    assert_eq!(expected.body, format!("{{\"id\":\"{id}\"}}").into_bytes());
    let (reader, tx) = (fixture.database.subscriptions(), fixture.begin().await);
    for (seller, subscription, client_id, is_found) in [
        (queue.seller, queue.subscription, own, true),
        (queue.seller, queue.subscription, other, false),
        (others.seller, queue.subscription, own, false),
        (others.seller, others.subscription, other, false),
    ] {
        let found = reader.delivery(seller, client_id, subscription, id).await;
        assert_eq!(found.unwrap(), is_found.then(|| expected.clone()));
        for client_id in [Some(client_id), None] {
            let locked = tx.lock_delivery(seller, client_id, subscription, id).await;
            let is_found = is_found
                || client_id.is_none() && (seller, subscription) == (queue.seller, queue.subscription);
            let locked = locked.unwrap().map(|locked| locked.delivery);
            assert_eq!(locked, is_found.then(|| expected.clone()));
        }
    }
    drop(tx);
    fixture.wait_until_alone().await;
    let tx = fixture.begin().await;
    let of_another = tx
        .lock_delivery(others.seller, None, queue.subscription, id)
        .await;
    assert!(of_another.unwrap().is_none());
    let free = fixture
        .rows("select from subscriptions for update skip locked")
        .await;
    assert_eq!(free.len(), 2, "nor is another seller's queue locked");
}

#[tokio::test]
async fn a_change_keeps_what_it_does_not_name_and_reaches_a_leased_queue() {
    let fixture = Fixture::new().await;
    let (application, queue) = fixture.subscribed().await;
    let other = fixture.client_of(queue.seller).await;
    let queued = fixture.enqueue(queue, 17).await;
    let claimed = fixture.claim_one().await;
    let sister = fixture.subscribe(queue.seller, application).await;
    let before = fixture.row_of(sister).await;
    let url = |text: &str| WebhookUrl::parse(text, AddressPolicy::Public).unwrap();
    let new = url("https://other.example/");
    let change = async |client_id, url: Option<&WebhookUrl>, events: Option<&[WebhookEvent]>| {
        let change = SubscriptionChange {
            url: url.cloned(),
            events: events.map(<[_]>::to_vec),
        };
        let tx = fixture.begin().await;
        let changed = tx.change_subscription(queue.seller, client_id, queue.subscription, change);
        let changed = changed.await.unwrap();
        tx.commit().await.unwrap();
        changed.map(|changed| (changed.url, changed.events, changed.active))
    };
    let (all, one) = (WebhookEvent::ALL.as_slice(), &[WebhookEvent::OrderPaid][..]);
    assert_eq!(change(other, Some(&new), None).await, None);
    let expected = Some((claimed.url.clone(), one.to_vec(), true));
    assert_eq!(change(application, None, Some(one)).await, expected);
    let expected = Some((new.clone(), one.to_vec(), true));
    assert_eq!(change(application, Some(&new), None).await, expected);
    let rotated = async |client_id| {
        let tx = fixture.begin().await;
        let locked = tx.lock_secrets(queue.seller, client_id, queue.subscription).await;
        let (secrets, active) = locked.unwrap()?;
        let next = WebhookSecret::from_random(&[8; 32]);
        let secrets = secrets.rotate(next, tx.now(), TimeDelta::hours(1));
        tx.replace_secrets(queue.seller, queue.subscription, &secrets)
            .await
            .unwrap();
        tx.commit().await.unwrap();
        Some((secrets, active))
    };
    assert_eq!(rotated(other).await, None);
    let (secrets, active) = rotated(application).await.unwrap();
    assert!(active);
    // Extending its lease tells.
    let refill = more(claimed.lease, &queued[..16], 1, 0);
    let refilled = fixture.queues().refill(&[refill]).await.unwrap().remove(0);
    assert_eq!((refilled.url, refilled.deliveries.len()), (new.clone(), 1));
    assert_eq!(refilled.secrets, secrets);
    fixture.set_queue(queue, "active = false").await;
    let expected = Some((new, all.to_vec(), false));
    assert_eq!(change(application, None, Some(all)).await, expected);
    assert_eq!(fixture.row_of(sister).await, before);
}

/// Ids are unique together with their seller.
#[tokio::test]
async fn a_change_reaches_the_row_of_its_own_seller_alone() {
    let (fixture, _clock) = Fixture::frozen().await;
    let ((application, queue), (_, others)) = (fixture.subscribed().await, fixture.subscribed().await);
    let delivery = fixture.enqueue(queue, 1).await[0];
    let same = format!(
        "update deliveries set due_at = null, attempt = 6, lost = 1, lost_after = 2, failure = 'timeout', duration_ms = 3; \
         insert into connections (client_id, seller_id, connected_at) values ('{application}', '{seller}', api_now()); \
         update subscriptions set id = '{id}', client_id = '{application}' where seller_id = '{seller}'; \
         insert into deliveries select (jsonb_populate_record(d, jsonb_build_object('seller_id', '{seller}'))).* from deliveries as d",
        application = application.uuid(),
        seller = others.seller,
        id = queue.subscription
    );
    fixture.tamper(&same).await;
    let rows = async |seller: SellerId| {
        let rows = format!(
            "select s::text || d::text from subscriptions as s join deliveries as d using (seller_id) where seller_id = '{seller}'"
        );
        fixture.texts(&rows).await
    };
    let (theirs, mut ours) = (rows(others.seller).await, rows(queue.seller).await);
    let (seller, id) = (queue.seller, queue.subscription);
    for n in 0..4 {
        let tx = fixture.begin().await;
        match n {
            0 => {
                let change = SubscriptionChange {
                    url: None,
                    events: Some(vec![WebhookEvent::OrderPaid]),
                };
                let changed = tx.change_subscription(seller, application, id, change).await;
                assert!(changed.unwrap().is_some());
            }
            1 => {
                let locked = tx.lock_secrets(seller, application, id).await.unwrap();
                let (secrets, _) = locked.unwrap();
                let next = WebhookSecret::from_random(&[8; 32]);
                let secrets = secrets.rotate(next, tx.now(), TimeDelta::hours(1));
                tx.replace_secrets(seller, id, &secrets).await.unwrap();
            }
            2 => assert!(
                tx.requeue_delivery(seller, id, delivery, true, tx.now())
                    .await
                    .unwrap()
            ),
            _ => assert!(tx.remove_subscription(seller, application, id).await.unwrap()),
        }
        tx.commit().await.unwrap();
        if n == 2 {
            let anew = "select concat_ws(' ', attempt, lost, lost_after, failure, duration_ms) from deliveries where due_at is not null";
            assert_eq!(fixture.texts(anew).await, ["0 0"]);
        }
        let now = rows(queue.seller).await;
        assert_ne!(now, ours, "{n}");
        ours = now;
        assert_eq!(rows(others.seller).await, theirs, "{n}");
    }
    assert!(ours.is_empty());
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
        let batch = fixture.database.clear(Expired::Deliveries).await.unwrap();
        assert!(batch.rows <= 1_000);
        cleared += batch.rows;
        if !batch.more {
            return cleared;
        }
    }
    panic!("rows are left after 1 000 batches");
}

#[tokio::test]
async fn old_finished_deliveries_are_cleared_except_the_last_hundred() {
    let (fixture, clock) = Fixture::frozen().await;
    let now = clock.now().await;
    let month = TimeDelta::days(30);
    let old = now - month - TimeDelta::milliseconds(2);
    let [quiet, busy, young] = fixture.several_queues().await;
    fill(&fixture, quiet, 130, old, true).await;
    fill(&fixture, busy, 1_500, old, true).await;
    fill(&fixture, busy, 60, now, true).await;
    fill(&fixture, young, 300, now - month, true).await;
    assert_eq!(clear(&fixture).await, 30 + 1_460);
    for (queue, left) in [(quiet, 100), (busy, 100), (young, 300)] {
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
    let first = fixture.database.clear(Expired::Deliveries).await.unwrap();
    assert_eq!((first.rows, first.more), (200, true));
    assert_eq!(clear(&fixture).await, 450);
}

/// Those that rested between two attempts until less than an hour ago are not; they hold up no other queue.
#[tokio::test]
async fn deliveries_that_wait_after_30_days_are_cleared_except_the_last_hundred() {
    let (fixture, clock) = Fixture::frozen().await;
    let now = clock.now().await;
    let old = now - TimeDelta::days(30) - TimeDelta::milliseconds(2);
    let [repeated, hanging, other, held] = fixture.several_queues().await;
    fill(&fixture, repeated, 2_000, old, false).await;
    fixture
        .tamper("update deliveries set due_at = api_now() - interval '59 minutes'")
        .await;
    fill(&fixture, hanging, 3_000, old, false).await;
    fill(&fixture, hanging, 50, now, false).await;
    fill(&fixture, other, 150, old, true).await;
    // Repeated again and again, before others that have ended.
    fill(&fixture, held, 1_000, now - TimeDelta::days(32), false).await;
    let repeat = format!(
        "update deliveries set due_at = api_now() + interval '1 hour' where subscription_id = '{}'",
        held.subscription
    );
    fixture.tamper(&repeat).await;
    fill(&fixture, held, 500, old, true).await;
    assert_eq!(clear(&fixture).await, 2_950 + 50 + 1_400);
    for (queue, left) in [(repeated, 2_000), (hanging, 100), (other, 100), (held, 100)] {
        let of_queue = format!("deliveries where subscription_id = '{}'", queue.subscription);
        assert_eq!(fixture.rows_of(&of_queue).await, left);
    }
}

#[tokio::test]
async fn the_backlog_is_counted_by_queue_with_the_age_of_the_oldest_due_row() {
    let (fixture, _clock) = Fixture::frozen().await;
    let nothing = fixture.database.queues().await.unwrap();
    let first = nothing.of("first").unwrap();
    assert_eq!((first.waiting, first.overdue), (0, 0.0));
    let (lively, retrying) = (fixture.queue().await, fixture.queue().await);
    fixture.fill(lively, 30, 0).await;
    fixture.fill(retrying, 5, 3).await;
    // A receiver that fails or is slow delays its own deliveries.
    let slow = "leased = true, fence = gen_random_uuid(), wake_at = api_now() + interval '20 s'";
    for state in ["failing = true", slow] {
        let queue = fixture.queue().await;
        fixture.fill(queue, 1, 0).await;
        fixture.set_queue(queue, state).await;
        let longer = format!(
            "update deliveries set due_at = due_at - interval '1 day' where subscription_id = '{}'",
            queue.subscription
        );
        fixture.tamper(&longer).await;
    }
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
    let first_due = 3_599.999;
    for (queue, waiting, overdue) in [
        ("first", 32, first_due),
        ("repeated", 5, first_due),
        ("shipment_mails", 4, 0.0),
        ("account_mails", 0, 0.0),
        // One of four is not due yet.
        (Carrier::Gls.as_str(), 3, 7_200.0),
        (Carrier::Dhl.as_str(), 0, 0.0),
    ] {
        let backlog = queues.of(queue).unwrap();
        assert_eq!((backlog.waiting, backlog.overdue), (waiting, overdue), "{queue}");
    }
}

#[tokio::test]
async fn a_sellers_deliveries_are_found_by_subscription_failure_event_and_order() {
    let fixture = Fixture::new().await;
    let order = OrderId::from(id());
    let (application, queue) = fixture.subscribed().await;
    let sister = fixture.subscribe(queue.seller, application).await;
    let [early, delivered, failed, about] = fixture.enqueue(queue, 4).await[..] else {
        panic!("four")
    };
    let last = fixture.enqueue(sister, 1).await[0];
    // Neither another seller's nor those of a deleted application.
    fixture.enqueue(fixture.queue().await, 1).await;
    let deleted = fixture.client_of(queue.seller).await;
    fixture
        .enqueue(fixture.subscribe(queue.seller, deleted).await, 1)
        .await;
    let first = DeliveryId::from(Uuid::from_u128(1));
    let change = format!(
        "update applications set deleted_at = api_now() where client_id = '{}';
         update deliveries set due_at = null, attempt = 1, delivered_at = api_now(), response_status = 200 where id = '{delivered}';
         update deliveries set attempt = 1, response_status = 500, event = 'order.created' where id = '{failed}';
         update deliveries set body = '{{\"order_id\":\"{order}\"}}' where id in ('{early}', '{about}');
         update deliveries set id = '{first}' where id = '{early}'",
        deleted.uuid()
    );
    fixture.tamper(&change).await;
    let all = DeliveryFilter::default();
    let (subscription, event) = (Some(sister.subscription), Some(WebhookEvent::OrderCreated));
    let order = Some(order);
    for (filter, expected) in [
        (all, &[last, about, failed, delivered, first][..]),
        (DeliveryFilter { subscription, ..all }, &[last]),
        (DeliveryFilter { failed: true, ..all }, &[failed]),
        (DeliveryFilter { event, ..all }, &[failed]),
        // None from before the order.
        (DeliveryFilter { order, ..all }, &[about]),
    ] {
        let reader = fixture.database.subscriptions();
        let found = reader.deliveries_of_seller(queue.seller, filter, None, 9).await;
        let found: Vec<_> = found.unwrap().iter().map(|row| row.delivery.id).collect();
        assert_eq!(found, expected, "{filter:?}");
    }
}

/// As the closure of an account whose owner adds subscriptions all the time, each with another application.
#[tokio::test]
async fn who_adds_a_subscription_does_not_pass_a_closure() {
    let fixture = Fixture::new().await;
    let seller = fixture.seller().await;
    let [one, other] = [fixture.client_of(seller).await, fixture.client_of(seller).await];
    let [adding, closing, later] = [
        fixture.begin().await,
        fixture.begin().await,
        fixture.begin().await,
    ];
    assert!(adding.add_subscription(subscription(seller, one)).await.unwrap());
    let mut closed = closing.lock_seller(seller);
    select! {
        _ = &mut closed => panic!("a subscription is being added"),
        () = fixture.wait_for_blocked_session() => {}
    }
    let mut added = later.add_subscription(subscription(seller, other));
    let end = Instant::now() + Duration::from_secs(20);
    let both_wait = async {
        while fixture.count(lock_waits()).await < 2 {
            assert!(Instant::now() < end, "two do not wait");
            tokio::task::yield_now().await;
        }
    };
    select! {
        _ = &mut added => panic!("it passes the closure"),
        () = both_wait => {}
    }
    adding.commit().await.unwrap();
    assert!(closed.await.unwrap().is_some());
    closing.commit().await.unwrap();
    assert!(added.await.unwrap());
}
