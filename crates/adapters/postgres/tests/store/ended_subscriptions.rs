//! Subscriptions that end: deleted, disconnected, their application deleted, the seller's account closed.

use adapter_postgres::Expired;
use futures_util::join;
use kernel::SellerId;
use oauth::{ApplicationStatus, ClientId};
use usecases::Transaction;
use webhooks::{Delivery, DeliveryState, Due, QueueKey, WebhookEvent};

use crate::support::{AWAKE, Fixture, ids, more, queue_one};

/// Another seller's application that the seller has connected, and its subscription.
async fn subscribed_guest(fixture: &Fixture) -> (SellerId, ClientId, QueueKey) {
    let (seller, owner) = (fixture.seller().await, fixture.seller().await);
    let application = fixture.client_of(owner).await;
    fixture.connect(seller, application).await;
    let queue = fixture.subscribe(seller, application).await;
    (seller, application, queue)
}

async fn disconnect(tx: &dyn Transaction, (seller, application, _): (SellerId, ClientId, QueueKey)) {
    assert!(tx.disconnect(seller, application).await.unwrap());
}

/// Subscriptions of two sellers' applications to the events of both.
#[tokio::test]
async fn each_end_stops_its_own_subscriptions_and_no_others() {
    // The seller's end is told; that of the application's owner is not.
    for (end, active, inactive, told) in [
        ("removal", &[1, 2, 3][..], 0, &[][..]),
        ("disconnection", &[0, 2, 3], 1, &[1]),
        ("deletion of the application", &[1, 3], 0, &[]),
        ("closure of the account", &[3], 3, &[0, 1]),
    ] {
        let fixture = Fixture::new().await;
        let (seller, other) = (fixture.seller().await, fixture.seller().await);
        let (own, guest) = (fixture.client_of(seller).await, fixture.client_of(other).await);
        fixture.connect(other, own).await;
        fixture.connect(seller, guest).await;
        let mut queues = Vec::new();
        for (of, application) in [(seller, own), (seller, guest), (other, own), (other, guest)] {
            let queue = fixture.subscribe(of, application).await;
            fixture.enqueue(queue, 20).await;
            queues.push(queue);
        }
        let leased = fixture.claim().await;
        let ending = async |tx: &dyn Transaction| match end {
            "removal" => {
                for (by, removed) in [(guest, false), (own, true), (own, false)] {
                    let removal = tx.remove_subscription(seller, by, queues[0].subscription).await;
                    assert_eq!(removal.unwrap(), removed);
                }
            }
            "disconnection" => assert!(tx.disconnect(seller, guest).await.unwrap()),
            "closure of the account" => assert!(tx.close_seller(seller, tx.now()).await.unwrap()),
            _ => assert!(tx.delete_application(own).await.unwrap()),
        };
        fixture.tx(ending).await;
        // The lists tell the end before the rows follow.
        let reader = fixture.database.subscriptions();
        for (n, (of, application)) in [(seller, own), (seller, guest), (other, own), (other, guest)]
            .into_iter()
            .enumerate()
        {
            let listed = reader.subscriptions(of, application).await.unwrap();
            assert!(
                listed.iter().all(|one| one.active == active.contains(&n)),
                "{end}: {n}"
            );
        }
        fixture.follow_up().await;
        fixture.database.clear(Expired::Deliveries).await.unwrap();
        // Running attempts are recorded if their deliveries still exist; what was pending is not given out.
        for queue in &leased {
            fixture.end_all(queue, 200).await;
        }
        let left = i64::try_from(active.len()).unwrap() + inactive;
        let counts = [fixture.delivered().await, fixture.waiting().await];
        let last = i64::try_from(told.len()).unwrap();
        assert_eq!(counts, [16 * left, 4 * (left - inactive) + last], "{end}");
        let places = fixture.count("select sum(used) from subscription_quota").await;
        assert_eq!(
            (places, fixture.rows_of("subscriptions").await),
            (left, left),
            "{end}"
        );
        for (n, queue) in queues.iter().enumerate() {
            let added = fixture.tx(async |tx| queue_one(tx, *queue).await).await;
            assert_eq!(added.is_some(), active.contains(&n), "{end}: {n}");
        }
        let mut expected: Vec<_> = active.iter().chain(told).map(|n| queues[*n]).collect();
        expected.sort();
        assert_eq!(fixture.claim_keys().await, expected, "{end}");
    }
}

#[tokio::test]
async fn a_subscription_is_active_only_with_a_connection_that_lasts() {
    let fixture = Fixture::new().await;
    let pair = subscribed_guest(&fixture).await;
    let (seller, application, _) = pair;
    fixture.tx(async |tx| disconnect(tx, pair).await).await;
    fixture.subscribe(seller, application).await;
    fixture
        .tamper("update connections set disconnected_at = null")
        .await;
    fixture.subscribe(seller, application).await;
    let reader = fixture.database.subscriptions();
    let all = reader.subscriptions(seller, application).await.unwrap();
    let active: Vec<_> = all.iter().map(|one| one.active).collect();
    assert_eq!(
        active,
        [false, false, true],
        "before, without and with the new connection"
    );
}

#[tokio::test]
async fn a_running_attempt_that_fails_after_the_end_is_recorded_and_not_repeated() {
    let fixture = Fixture::new().await;
    let pair = subscribed_guest(&fixture).await;
    let (_, application, queue) = pair;
    fixture.enqueue(queue, 17).await;
    let leased = fixture.claim_one().await;
    fixture.tx(async |tx| disconnect(tx, pair).await).await;
    assert_eq!(
        fixture.refill(more(leased.lease, &ids(&leased), 4, 4)).await,
        None
    );
    for _ in 0..2 {
        fixture.end_all(&leased, 500).await;
    }
    let history = fixture.history(application, queue).await.unwrap();
    let stopped = |attempts: u8| {
        let is = |delivery: &&Delivery| match &delivery.state {
            DeliveryState::Stopped { attempt, last } => {
                *attempt == attempts && last.is_some() == (attempts > 0)
            }
            _ => false,
        };
        history.iter().filter(is).count()
    };
    assert_eq!((stopped(1), stopped(0)), (16, 1), "{history:?}");
    fixture.follow_up().await;
    assert_eq!(last_delivery(&fixture, queue).await, 1);
    assert_eq!(fixture.sleeps(queue).await, None);
    assert!(fixture.claim().await.is_empty());
}

/// Delivers what a queue has, `connection.ended` alone; returns how many there were.
async fn last_delivery(fixture: &Fixture, queue: QueueKey) -> usize {
    let leased = fixture.claim_one().await;
    assert_eq!(leased.lease.queue, queue);
    let is_last = |due: &Due| due.event == WebhookEvent::ConnectionEnded;
    assert!(leased.deliveries.iter().all(is_last), "{leased:?}");
    fixture.end_all(&leased, 200).await;
    leased.deliveries.len()
}

#[tokio::test]
async fn the_last_delivery_waits_for_running_attempts() {
    let fixture = Fixture::new().await;
    let pair = subscribed_guest(&fixture).await;
    let (_, _, queue) = pair;
    fixture.enqueue(queue, 3).await;
    let leased = fixture.claim_one().await;
    fixture.tx(async |tx| disconnect(tx, pair).await).await;
    fixture.follow_up().await;
    let refilled = fixture.refill(more(leased.lease, &ids(&leased), 4, 4)).await;
    assert_eq!(refilled, Some(Vec::new()));
    fixture.end_all(&leased, 200).await;
    assert_eq!(last_delivery(&fixture, queue).await, 1);
}

#[tokio::test]
async fn the_last_delivery_waits_while_its_application_is_suspended_and_comes_once() {
    let fixture = Fixture::new().await;
    let pair = subscribed_guest(&fixture).await;
    let (_, application, queue) = pair;
    fixture.tx(async |tx| disconnect(tx, pair).await).await;
    fixture.follow_up().await;
    fixture.suspend(application).await;
    assert!(fixture.claim().await.is_empty());
    assert_eq!(fixture.sleeps(queue).await, None);
    fixture.set_status(application, ApplicationStatus::Active).await;
    fixture.follow_up().await;
    assert_eq!(last_delivery(&fixture, queue).await, 1);
    // A new connection, and its end, are not the subscription's.
    let again = "update connections set disconnected_at = null, generation = generation + 1";
    fixture.tamper(again).await;
    fixture.tx(async |tx| disconnect(tx, pair).await).await;
    fixture.follow_up().await;
    assert!(fixture.claim().await.is_empty());
    assert_eq!(fixture.waiting().await, 0);
}

/// The follow-up stops them, in batches: hundreds of queues may have hundreds of thousands, and claims serve
/// all sellers.
#[tokio::test]
async fn claims_put_ended_queues_to_sleep_and_touch_none_of_their_deliveries() {
    let fixture = Fixture::new().await;
    let pair = subscribed_guest(&fixture).await;
    let (_, application, queue) = pair;
    fixture.fill(queue, 2_600, 0).await;
    let other = fixture.queue().await;
    fixture.enqueue(other, 1).await;
    fixture.tx(async |tx| disconnect(tx, pair).await).await;
    let history = fixture.history(application, queue).await.unwrap();
    let ended = |delivery: &Delivery| {
        delivery.state.next_retry_at().is_none() && delivery.state != DeliveryState::Queued
    };
    assert!(history.iter().all(ended), "{history:?}");
    for expected in [vec![other], vec![]] {
        assert_eq!(fixture.claim_keys().await, expected);
        assert_eq!(fixture.queues().reconcile().await.unwrap(), 0);
    }
    assert_eq!(fixture.sleeps(queue).await, None);
    assert_eq!(fixture.waiting().await, 2_601);
    fixture.follow_up().await;
    assert_eq!(fixture.waiting().await, 2, "the other's, and the last one");
    assert_eq!(fixture.rows_of("subscriptions where active").await, 1);
    assert_eq!(last_delivery(&fixture, queue).await, 1);
}

#[tokio::test]
async fn ended_queues_take_no_share_of_a_claim_and_few_claims_meet_them() {
    // Beyond those that a claim looks at, too.
    for (copies, is_claimed) in [(120, true), (300, false)] {
        let fixture = Fixture::new().await;
        let (_, application, queue) = subscribed_guest(&fixture).await;
        fixture.enqueue(queue, 12).await;
        fixture.fill(queue, 12, 1).await;
        fixture.copies(copies).await;
        let alike = "
            insert into deliveries
            select (jsonb_populate_record(d, jsonb_build_object('id', gen_random_uuid(), 'subscription_id', s.id))).*
            from deliveries as d, subscriptions as s
            where s.id <> d.subscription_id";
        fixture.tamper(alike).await;
        let end = format!(
            "update applications set deleted_at = api_now() where client_id = '{}'",
            application.uuid()
        );
        fixture.tamper(&end).await;
        let live = fixture.queue().await;
        fixture.enqueue(live, 1).await;
        let awake = i64::from(!is_claimed);
        assert_eq!(fixture.claim_keys().await.contains(&live), is_claimed);
        assert_eq!(fixture.rows_of(AWAKE).await, awake);
        assert_eq!(fixture.claim_keys().await.contains(&live), !is_claimed);
    }
}

#[tokio::test]
async fn a_claim_checks_again_that_the_subscription_is_alive() {
    let fixture = Fixture::new().await;
    for end in [
        "update applications set deleted_at = api_now() where client_id = '{client}'",
        "update connections set generation = 2 where client_id = '{client}'",
        "update connections set disconnected_at = api_now() where client_id = '{client}'",
        "update subscriptions set active = false where client_id = '{client}'",
        "update sellers set closed_at = api_now() where id = '{seller}'",
        "update sellers set closed_at = api_now() where id = (select owner_id from applications where client_id = '{client}')",
    ] {
        let (seller, application, queue) = subscribed_guest(&fixture).await;
        fixture.enqueue(queue, 3).await;
        let end = end.replace("{client}", &application.uuid().to_string());
        fixture
            .tamper(&end.replace("{seller}", &seller.to_string()))
            .await;
        assert!(fixture.claim().await.is_empty(), "{end}");
        assert_eq!(fixture.sleeps(queue).await, None, "{end}");
    }
}

/// The follow-up of the end may have been here already.
#[tokio::test]
async fn nothing_is_added_for_an_application_or_an_account_that_ends_meanwhile() {
    let fixture = Fixture::new().await;
    let reader = fixture.database.subscriptions();
    let ending = fixture.test_database.connect().await;
    for end in [
        "update applications set deleted_at = api_now() where client_id = '{client}'",
        "update sellers set closed_at = api_now() where id = '{seller}'",
        "update sellers set closed_at = api_now() where id = (select owner_id from applications where client_id = '{client}')",
    ] {
        let (seller, application, queue) = subscribed_guest(&fixture).await;
        let sql = end.replace("{client}", &application.uuid().to_string());
        let sql = sql.replace("{seller}", &seller.to_string());
        ending.batch_execute(&format!("begin; {sql}")).await.unwrap();
        join!(fixture.subscribe(seller, application), async {
            fixture.wait_for_blocked_session().await;
            ending.batch_execute("commit").await.unwrap();
        });
        let all = reader.subscriptions(seller, application).await.unwrap();
        let ids: Vec<_> = all.iter().map(|one| one.id).collect();
        assert_eq!(ids, [queue.subscription], "{end}");
    }
}
