//! Many concurrent transactions over the same rows: no deadlocks.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use usecases::ship_order::ShippingRefusal;
use usecases::transition_order::OrderTransitionRefusal;

use accounts::{UsageCount, UsageKey};
use chrono::{TimeDelta, Timelike as _};
use futures_util::{future::join_all, join};
use kernel::{SellerId, StoreError, TransactionError};
use oauth::{ClientId, Limiter, Subject};
use offers::Decision;
use orders::{OrderNumber, OrderRef};
use usecases::{Failure, transition_order::Transition};

use crate::support::{
    Fixture, ModerateOffer, PlaceOrder, ReportShipment, TransitionOrder, changed, id, instant, offer,
    request, transact,
};

/// The number of deadlocks that the database has counted.
async fn deadlocks(fixture: &Fixture) -> i64 {
    fixture.wait_until_alone().await;
    let seen = "select deadlocks from pg_stat_database where datname = current_database()";
    fixture.count(seen).await
}

/// Repeats what a busy machine makes wait for a lock for too long; deadlocks are counted.
async fn patient<T, R: fmt::Debug>(run: impl AsyncFn() -> Result<T, Failure<R>>) -> Result<T, Failure<R>> {
    for _ in 0..20 {
        match run().await {
            Err(Failure::Store(TransactionError::Store(StoreError::Unavailable(_)))) => {}
            done => return done,
        }
    }
    run().await
}

/// One writer's operation on an order; refusals are allowed.
async fn change_order(busy: &adapter_postgres::Database, order: &OrderRef, owner: SellerId, n: usize) {
    let units = busy.units();
    let step =
        async |step| patient(async || transact(&*units, &TransitionOrder(order.clone(), step)).await).await;
    let transition = async |transition| match step(transition).await {
        Ok(_) | Err(Failure::Refused(OrderTransitionRefusal::Impossible(_))) => {}
        Err(error) => panic!("{error:?}"),
    };
    match n % 4 {
        0 => transition(Transition::Pay).await,
        1 => transition(Transition::Cancel).await,
        2 => transition(Transition::Deliver).await,
        _ => match patient(async || transact(&*units, &ReportShipment(owner, order.clone())).await).await {
            Ok(_) | Err(Failure::Refused(ShippingRefusal::Impossible { .. })) => {}
            Err(error) => panic!("{error:?}"),
        },
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_writers_of_the_same_offers_and_orders_meet_no_deadlock() {
    let fixture = Fixture::new().await;
    let (mut offers, mut orders) = (Vec::new(), Vec::new());
    for _ in 0..5 {
        let seller = fixture.seller().await;
        // Two subscriptions to all events, so that queues are locked, too.
        for _ in 0..2 {
            let application = fixture.client_of(seller).await;
            fixture.subscribe(seller, application).await;
        }
        for _ in 0..4 {
            offers.push((seller, fixture.offer(seller, 1_000).await));
        }
    }
    for n in 0..20 {
        // From one seller, or from three.
        let several = [offers[n], offers[(n + 7) % 20], offers[(n + 13) % 20]];
        let items = if n % 2 == 0 { &several[..] } else { &several[..1] };
        orders.push((fixture.place_order(items).await, offers[n].0));
    }
    let busy = fixture.another(32);
    let writers = (0..32_usize).map(|writer| {
        let (busy, orders, offers) = (&busy, &orders, &offers);
        async move {
            for step in 0..12 {
                let n = writer * 31 + step * 17;
                let (order, owner) = &orders[(n * 7) % 20];
                change_order(busy, order, *owner, n).await;
                let items = [offers[n % 20], offers[(n + 5) % 20]];
                let place = PlaceOrder(request(&items));
                match patient(async || transact(&*busy.units(), &place).await).await {
                    Ok(placed) if n % 3 == 0 => {
                        change_order(busy, &OrderRef::Id(placed.id), items[0].0, 1).await;
                    }
                    Ok(_) => {}
                    Err(error) => panic!("{error:?}"),
                }
                let (seller, offer) = offers[(n + 3) % 20];
                for decision in [Decision::Reject, Decision::Approve] {
                    let moderate = ModerateOffer(seller, offer, decision);
                    patient(async || {
                        transact(&*busy.units(), &moderate)
                            .await
                            .map_err(Failure::<()>::Store)
                    })
                    .await
                    .unwrap();
                }
            }
        }
    });
    // Queues fall asleep continuously, so that there is always one to wake and to lock.
    let asleep = async {
        let queues = fixture.texts("select id::text from subscriptions").await;
        for queue in queues.iter().cycle() {
            let sql = format!("update subscriptions set wake_at = null where id = '{queue}'");
            fixture.tamper(&sql).await;
        }
    };
    tokio::select! {
        _ = join_all(writers) => {}
        () = asleep => {}
    }
    // The stock taken by live orders plus the remaining stock equals the initial stock.
    let taken = "select coalesce(sum((item->>'quantity')::int), 0) from seller_orders, json_array_elements(items) item \
        where status <> 'cancelled'";
    let left = fixture.count("select sum(stock) from offers").await;
    assert_eq!(fixture.count(taken).await + left, 20 * 1_000);
    let in_part = "(select from seller_orders group by order_id having count(cancelled_at) not in (0, count(*))) orders";
    assert_eq!(fixture.rows_of(in_part).await, 0, "an order is cancelled whole");
    // One event per transition and subscription.
    for (event, moved) in [
        ("order.created", "true"),
        ("order.cancelled", "status = 'cancelled'"),
        ("order.paid", "paid_at is not null"),
    ] {
        let transitions = fixture.rows_of(&format!("seller_orders where {moved}")).await;
        let events = fixture
            .rows_of(&format!("deliveries where event = '{event}'"))
            .await;
        assert_eq!(events, 2 * transitions, "{event}");
    }
    drop(busy);
    assert_eq!(deadlocks(&fixture).await, 0, "a transaction had to be repeated");
}

#[tokio::test(flavor = "multi_thread")]
async fn transactions_lock_offers_in_one_order() {
    let fixture = Fixture::new().await;
    let seller = fixture.seller().await;
    let offers: Vec<_> = (0..200).map(|_| offer(seller)).collect();
    fixture.save_offers(offers.clone()).await;
    let run = async |reversed: bool| {
        let mut ids: Vec<_> = offers.iter().map(|offer| offer.id).collect();
        if reversed {
            ids.reverse();
        }
        let (mut done, mut tries) = (0, 0..60);
        while done < 20 {
            tries.next().unwrap();
            let tx = fixture.begin().await;
            // On a busy machine the others may hold them for longer than a lock is waited for.
            let locked = tx.lock_offers(seller, &ids).await;
            if let Err(StoreError::Unavailable(_)) = locked {
                continue;
            }
            let mut changes: Vec<_> = locked.unwrap().into_iter().map(changed).collect();
            if reversed {
                changes.reverse();
            }
            tx.save_offers(seller, changes).await.unwrap();
            tx.commit().await.unwrap();
            done += 1;
        }
    };
    join!(run(false), run(true), run(false), run(true));
}

/// Whoever changes a part or a delivery reads it under a lock that keeps others from changing it.
#[tokio::test]
async fn what_is_read_to_be_changed_is_locked() {
    let fixture = Fixture::new().await;
    let (application, queue) = fixture.subscribed().await;
    let delivery = fixture.enqueue(queue, 1).await[0];
    let offer = fixture.offer(queue.seller, 9).await;
    let order = fixture.place_order(&[(queue.seller, offer)]).await;
    let number = fixture.texts("select number from seller_orders").await.remove(0);
    let number = OrderRef::Number(OrderNumber::new(number).unwrap());
    let free = async |table: &str| {
        let unlocked = format!("select from {table} for no key update skip locked");
        fixture.rows(&unlocked).await.len()
    };
    for n in 0..4 {
        let table = if n < 3 { "seller_orders" } else { "subscriptions" };
        assert_eq!(free(table).await, 1, "{n}");
        let tx = fixture.begin().await;
        match n {
            0 => assert!(tx.lock_part(queue.seller, &order).await.unwrap().is_some()),
            1 => assert!(tx.lock_part(queue.seller, &number).await.unwrap().is_some()),
            2 => assert_eq!(tx.lock_order(&order).await.unwrap().len(), 1),
            _ => {
                let (client, subscription) = (Some(application), queue.subscription);
                let locked = tx.lock_delivery(queue.seller, client, subscription, delivery);
                assert!(locked.await.unwrap().is_some());
            }
        }
        assert_eq!(free(table).await, 0, "{n}");
        tx.commit().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_gate_counts_many_applications_in_any_order() {
    let (fixture, _clock) = Fixture::frozen().await;
    let seller = fixture.seller().await;
    let mut tokens = Vec::new();
    for _ in 0..30 {
        let application = fixture.application(seller).await;
        tokens.push(fixture.token(&application).await);
    }
    let gates: Vec<_> = (0..4).map(|_| fixture.database.gate()).collect();
    assert!(gates[0].look_up(tokens[0]).await.unwrap().is_ok());
    assert_eq!(fixture.rows_of("rate_windows").await, 0, "it is no request");
    for round in 0..20_usize {
        let calls = gates.iter().enumerate().flat_map(|(n, gate)| {
            let mut mixed = tokens.clone();
            mixed.rotate_left((round * 7 + n * 11) % 30);
            if n % 2 == 1 {
                mixed.reverse();
            }
            // Twice, so that a batch has several of one application.
            let mixed = mixed.into_iter().flat_map(|token| [token, token]);
            mixed.map(|token| gate.admit(token))
        });
        for admitted in join_all(calls).await {
            assert!(admitted.unwrap().is_ok());
        }
    }
    assert_eq!(fixture.rows_of("rate_windows where used = 160").await, 30);
}

#[tokio::test(flavor = "multi_thread")]
async fn batched_counts_of_many_subjects_get_distinct_places() {
    let (fixture, _clock) = Fixture::frozen().await;
    let subjects: Vec<_> = (0..9).map(|_| Subject::client(id().into())).collect();
    let limiters = [
        Limiter::TokenByClient,
        Limiter::TokenByAddress,
        Limiter::SignInByAccount,
    ];
    // Two processes with the same counters in opposite orders and slow statements: unsorted, they would
    // deadlock.
    let slow = "create function slow() returns trigger language plpgsql as \
          'begin perform pg_sleep(0.001); return new; end'; \
        create trigger slow before insert or update on rate_windows for each row execute function slow()";
    fixture.tamper(slow).await;
    let one = fixture.another(8).rate_counter();
    let other = fixture.another(8).rate_counter();
    let calls: Vec<_> = (0..54).map(|n| (limiters[n % 3], subjects[n / 3 % 9])).collect();
    let mut places = BTreeMap::<_, BTreeSet<_>>::new();
    for _ in 0..8 {
        let forth = calls
            .iter()
            .map(|(limiter, subject)| one.count(*limiter, *subject));
        let back = calls
            .iter()
            .rev()
            .map(|(limiter, subject)| other.count(*limiter, *subject));
        let (forth, back) = join!(join_all(forth), join_all(back));
        for ((limiter, subject), count) in calls.iter().zip(forth).chain(calls.iter().rev().zip(back)) {
            let (count, key) = (count.unwrap(), (limiter.code(), subject.uuid()));
            assert!(
                places.entry(key).or_default().insert(count.place),
                "a place is given once"
            );
            assert_eq!(count.counted_at, instant());
        }
    }
    for places in places.values() {
        assert!(places.iter().copied().eq(1..=32), "{places:?}");
    }
    assert_eq!((places.len(), deadlocks(&fixture).await), (27, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_usage_counts_of_an_application_add_up_by_hour_and_status() {
    let (fixture, clock) = Fixture::frozen().await;
    let (client_id, log) = (ClientId::from(id()), fixture.database.usage());
    let count = |seller, status, calls| UsageCount {
        key: UsageKey {
            seller,
            client_id,
            status,
        },
        calls,
    };
    let sellers: Vec<SellerId> = (0..50).map(|_| id().into()).collect();
    let add = |round: usize| {
        let mut counts: Vec<_> = sellers.iter().map(|seller| count(*seller, 200, 1)).collect();
        counts.rotate_left(round * 7 % 50);
        if round % 2 == 1 {
            counts.reverse();
        }
        log.add_usage(counts)
    };
    for done in join_all((0..20).map(add)).await {
        done.unwrap();
    }
    clock.advance(TimeDelta::hours(1)).await;
    let [one, other] = [sellers[0], sellers[1]];
    let counts = [
        (one, 200, 3),
        (other, 200, 4),
        (one, 429, 1),
        (one, 200, 2),
        (one, 404, 0),
    ];
    log.add_usage(
        counts
            .map(|(seller, status, calls)| count(seller, status, calls))
            .to_vec(),
    )
    .await
    .unwrap();
    let elsewhere: ClientId = id().into();
    for seller in [one, sellers[2]] {
        let key = UsageKey {
            client_id: elsewhere,
            ..count(seller, 200, 1).key
        };
        log.add_usage(vec![UsageCount { key, calls: 1 }]).await.unwrap();
    }
    assert_eq!(fixture.rows_of("last_uses where used_at = api_now()").await, 4);
    // Of this minute, and of neither another limiter, another application nor another minute.
    let counted = format!(
        "insert into rate_windows (window_start, kind, subject, used)
         select date_trunc('minute', api_now(), 'UTC') + later * interval '1 minute', {kind} + other, subject::uuid, used
         from (values (0, 0, '{client}', 7), (0, 1, '{client}', 8), (0, 0, '{elsewhere}', 9), (1, 0, '{client}', 10))
           as w (later, other, subject, used)",
        kind = Limiter::Api.code(),
        client = client_id.uuid(),
        elsewhere = elsewhere.uuid()
    );
    fixture.tamper(&counted).await;
    let panel = fixture.database.panel();
    for (since, expected) in [
        (0, &[(10, 200, 1000), (11, 200, 9), (11, 429, 1)][..]),
        (1, &[(11, 200, 9), (11, 429, 1)]),
    ] {
        let (hours, used) = panel
            .usage(id().into(), client_id, instant() + TimeDelta::hours(since))
            .await
            .unwrap();
        assert_eq!(used, 7);
        let hours = hours
            .iter()
            .map(|hour| (hour.hour.hour(), hour.status, hour.calls));
        assert_eq!(hours.collect::<Vec<_>>(), expected);
    }
}
