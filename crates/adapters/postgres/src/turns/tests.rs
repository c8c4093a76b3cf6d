//! Who begins when: rows, shares, applications, full queues, and what a crowd costs.

use std::{ops::RangeInclusive, task::Poll};

use futures_util::{FutureExt, future::BoxFuture, poll};
use kernel::OfferId;
use uuid::Uuid;

use super::*;

fn offer(seller: u128, id: u128) -> (SellerId, OfferId) {
    (Uuid::from_u128(seller).into(), Uuid::from_u128(id).into())
}

fn rows(offers: &[(SellerId, OfferId)]) -> LockSet {
    LockSet {
        sellers: [].into(),
        ..LockSet::of_offers(offers.iter().copied())
    }
}

type Taking = BoxFuture<'static, Result<Admission, StoreError>>;

fn take(turns: &Arc<Turns>, locks: LockSet) -> Taking {
    let turns = Arc::clone(turns);
    async move { turns.take(&locks, Duration::from_mins(1)).await }.boxed()
}

async fn admitted(taking: &mut Taking) -> Admission {
    match poll!(taking) {
        Poll::Ready(admitted) => admitted.unwrap(),
        Poll::Pending => panic!("it waits"),
    }
}

fn is_empty(turns: &Turns) -> bool {
    let state = turns.0.lock();
    state.queues.is_empty() && state.waiting.is_empty()
}

#[tokio::test]
async fn who_waits_holds_nothing_is_admitted_in_order_and_leaves_nothing_behind() {
    let turns = Turns::new(1);
    let (hot, other) = (offer(1, 1), offer(2, 2));
    let first = take(&turns, rows(&[hot])).await.unwrap();
    let (mut both, mut second) = (take(&turns, rows(&[hot, other])), take(&turns, rows(&[hot])));
    assert!(poll!(&mut both).is_pending() && poll!(&mut second).is_pending());
    // The other offer is free meanwhile.
    drop(admitted(&mut take(&turns, rows(&[other]))).await);
    drop(first);
    let both_held = admitted(&mut both).await;
    assert!(poll!(&mut second).is_pending() && poll!(take(&turns, rows(&[other]))).is_pending());
    drop(second);
    let mut third = take(&turns, rows(&[hot]));
    assert!(poll!(&mut third).is_pending());
    drop(both_held);
    drop(admitted(&mut third).await);
    assert!(is_empty(&turns));
}

#[tokio::test]
async fn work_for_two_busy_rows_is_passed_only_so_often() {
    let turns = Turns::new(1);
    let (one, two) = (offer(1, 1), offer(1, 2));
    let mut held = [
        take(&turns, rows(&[one])).await.unwrap(),
        take(&turns, rows(&[two])).await.unwrap(),
    ];
    let mut both = take(&turns, rows(&[one, two]));
    assert!(poll!(&mut both).is_pending());
    let mut passes = 0;
    loop {
        let place = passes % 2;
        let mut next = take(&turns, rows(&[[one, two][place]]));
        assert!(poll!(&mut next).is_pending());
        // There is always another one who wants the row.
        held[place] = match poll!(
            async {
                drop(std::mem::replace(
                    &mut held[place],
                    take(&turns, rows(&[])).await.unwrap(),
                ));
                next.await
            }
            .boxed()
        ) {
            Poll::Ready(admitted) => admitted.unwrap(),
            Poll::Pending => break,
        };
        passes += 1;
        // Tokio lets a task receive only so often at a time.
        tokio::task::yield_now().await;
    }
    assert_eq!(passes, usize::try_from(PASSES).unwrap());
    drop(held);
    drop(admitted(&mut both).await);
    assert!(is_empty(&turns));
}

#[tokio::test]
async fn work_that_waits_for_one_seller_stops_no_other() {
    let turns = Turns::new(1);
    let (hot, other) = (offer(1, 1), offer(2, 2));
    let held = take(&turns, LockSet::of_offers([hot])).await.unwrap();
    let mut both = take(&turns, LockSet::of_offers([hot, other]));
    assert!(poll!(&mut both).is_pending());
    for _ in 0..=PASSES {
        drop(admitted(&mut take(&turns, LockSet::of_offers([other]))).await);
        // Tokio lets a task receive only so often at a time.
        tokio::task::yield_now().await;
    }
    drop(held);
    drop(admitted(&mut both).await);
    assert!(is_empty(&turns));
}

#[tokio::test]
async fn the_marketplace_does_not_wait_behind_what_a_seller_sends() {
    let turns = Turns::new(1);
    let (hot, other) = (offer(1, 1), offer(1, 2));
    let held = take(&turns, LockSet::of_offers([hot])).await.unwrap();
    let order = |offer| LockSet {
        for_marketplace: true,
        ..LockSet::of_offers([offer])
    };
    // It waits for its rows, and has a share as well.
    let placed = admitted(&mut take(&turns, order(other))).await;
    for waits in [order(hot), order(offer(1, 3)), LockSet::of_seller(other.0)] {
        assert!(poll!(take(&turns, waits)).is_pending());
    }
    drop(placed);
    // A row is not kept free for a waiter that has no place in the seller's share yet.
    let mut of_seller = take(&turns, LockSet::of_offers([other]));
    assert!(poll!(&mut of_seller).is_pending());
    for _ in 0..=PASSES {
        drop(admitted(&mut take(&turns, order(other))).await);
        // Tokio lets a task receive only so often at a time.
        tokio::task::yield_now().await;
    }
    drop((held, of_seller));
    assert!(is_empty(&turns));
    // Nor when that is given up and taken by another at the moment of the last pass.
    let turns = Turns::new(2);
    let beside = take(&turns, LockSet::of_seller(other.0)).await.unwrap();
    let held = take(&turns, LockSet::of_offers([hot])).await.unwrap();
    let mut both = take(&turns, LockSet::of_offers([hot, other]));
    assert!(poll!(&mut both).is_pending());
    for _ in 2..PASSES {
        drop(admitted(&mut take(&turns, order(other))).await);
        tokio::task::yield_now().await;
    }
    let placed = admitted(&mut take(&turns, order(other))).await;
    let (mut last, mut next) = (
        take(&turns, order(hot)),
        take(&turns, LockSet::of_seller(other.0)),
    );
    assert!(poll!(&mut last).is_pending() && poll!(&mut next).is_pending());
    drop(held);
    drop(admitted(&mut last).await);
    let taken = admitted(&mut next).await;
    drop(admitted(&mut take(&turns, order(hot))).await);
    drop((beside, placed, taken, both));
    assert!(is_empty(&turns));
}

#[tokio::test]
async fn an_application_leaves_connections_to_other_sellers_and_to_its_sellers_others() {
    let turns = Turns::new(4);
    let [hostile, other] = [1, 2].map(|id| ClientId::from(Uuid::from_u128(id)));
    let by = |application, seller| {
        let seller = Uuid::from_u128(seller).into();
        take(&turns, LockSet::default().by_application(seller, application))
    };
    let mut held = Vec::new();
    for seller in [1, 1, 2, 3] {
        held.push(admitted(&mut by(hostile, seller)).await);
    }
    // Half of the first seller's, and its own whole share.
    let (mut of_seller, mut of_own) = (by(hostile, 1), by(hostile, 4));
    assert!(poll!(&mut of_seller).is_pending() && poll!(&mut of_own).is_pending());
    drop((
        admitted(&mut by(other, 1)).await,
        admitted(&mut by(other, 4)).await,
    ));
    let elsewhere = LockSet::default().by_application(Uuid::from_u128(5).into(), hostile);
    let refused = turns.take(&elsewhere, Duration::ZERO).await;
    assert!(matches!(refused, Err(StoreError::Unavailable(cause)) if cause.is::<ShareTaken>()));
    drop(held.pop());
    drop(admitted(&mut of_own).await);
    assert!(poll!(&mut of_seller).is_pending());
    drop(held);
    drop(admitted(&mut of_seller).await);
    assert!(is_empty(&turns));
}

#[tokio::test]
async fn a_wait_for_others_is_not_the_callers_own() {
    const LIMIT: Duration = Duration::from_millis(5);
    let turns = Turns::new(1);
    let (reader, strangers) = (LockSet::of_seller(offer(1, 1).0), LockSet::of_strangers());
    let offers = rows(&[offer(1, 1)]);
    for (locks, is_own) in [(&reader, true), (&strangers, false), (&offers, false)] {
        let _held = turns.take(locks, LIMIT).await.unwrap();
        let (refused, waited) = own_wait::measured(turns.take(locks, LIMIT)).await;
        assert!(refused.is_err());
        assert_eq!(waited >= LIMIT, is_own);
        assert_eq!(waited.is_zero(), !is_own);
    }
}

#[tokio::test(start_paused = true)]
async fn a_seller_is_refused_a_busy_row_but_a_stuck_one_is_a_failure() {
    let turns = Turns::new(4);
    let hot = rows(&[offer(1, 1)]);
    let is_row_taken = async |locks: &LockSet| match turns.take(locks, STUCK).await {
        Err(StoreError::Unavailable(cause)) => cause.is::<RowTaken>(),
        _ => panic!("it is admitted"),
    };
    let held = turns.take(&hot, STUCK).await.unwrap();
    assert!(is_row_taken(&hot).await);
    assert!(!is_row_taken(&hot.clone().by_marketplace()).await);
    assert!(!is_row_taken(&hot).await);
    drop(held);
    // Others had it meanwhile.
    let _held = turns.take(&hot, STUCK).await.unwrap();
    assert!(is_row_taken(&hot).await);
}

#[tokio::test]
async fn orders_over_many_sellers_leave_each_seller_a_place_for_others() {
    let turns = Turns::new(4);
    let order = |sellers: RangeInclusive<u128>| {
        let offers = sellers.map(|seller| offer(seller, seller));
        let rows = [].into();
        let shares = LockSet::of_offers(offers).by_marketplace();
        take(&turns, LockSet { rows, ..shares })
    };
    let mut held = Vec::new();
    for last in [10, 11, 12] {
        held.push(admitted(&mut order(1..=last)).await);
    }
    let mut waiting = order(21..=29);
    assert!(poll!(&mut waiting).is_pending());
    for few in [1..=1, 1..=8, 21..=28] {
        drop(admitted(&mut order(few)).await);
    }
    held.pop();
    drop(admitted(&mut waiting).await);
    drop(held);
    assert!(is_empty(&turns));
    // Where a share is one, these have it, too.
    let turns = Turns::new(1);
    let offers = (1..=9).map(|seller| offer(seller, seller));
    drop(
        turns
            .take(&LockSet::of_offers(offers), Duration::ZERO)
            .await
            .unwrap(),
    );
}

/// As a basket of several sellers does that has one of the hundred offers which batches change.
#[tokio::test]
async fn who_comes_first_begins_first_however_many_rows_others_wait_for() {
    let many: Vec<_> = (0..100).map(|id| offer(1, id)).collect();
    for _ in 0..20 {
        let turns = Turns::new(1);
        let held = take(&turns, rows(&many)).await.unwrap();
        let mut order = take(&turns, rows(&[many[50], offer(2, 1)]));
        let mut batch = take(&turns, rows(&many));
        assert!(poll!(&mut order).is_pending() && poll!(&mut batch).is_pending());
        drop(held);
        let ordered = admitted(&mut order).await;
        assert!(poll!(&mut batch).is_pending());
        drop(ordered);
        drop(admitted(&mut batch).await);
        // Tokio lets a task receive only so often at a time.
        tokio::task::yield_now().await;
    }
}

/// However many of the others wait, and for how long.
#[tokio::test]
async fn the_marketplace_and_its_sellers_take_turns_at_a_row() {
    let turns = Turns::new(1);
    let (hot, other) = (offer(1, 1), offer(2, 2));
    let change = || take(&turns, rows(&[hot]));
    let order = || {
        let for_marketplace = true;
        let rows = rows(&[hot, other]);
        take(
            &turns,
            LockSet {
                for_marketplace,
                ..rows
            },
        )
    };
    let kinds: [&dyn Fn() -> Taking; 2] = [&change, &order];
    for (crowd, few) in [(kinds[0], kinds[1]), (kinds[1], kinds[0])] {
        let held = crowd().await.unwrap();
        let (mut crowd, mut few) = ([0; 3].map(|_| crowd()), [0; 2].map(|_| few()));
        for waiting in crowd.iter_mut().chain(&mut few) {
            assert!(poll!(waiting).is_pending());
        }
        drop(held);
        for (one, other) in few.iter_mut().zip(&mut crowd) {
            let held = admitted(one).await;
            assert!(poll!(&mut *other).is_pending());
            drop(held);
            drop(admitted(other).await);
        }
        let [_, _, mut last] = crowd;
        drop(admitted(&mut last).await);
        assert!(is_empty(&turns));
    }
}

#[tokio::test(start_paused = true)]
async fn what_one_seller_keeps_busy_stops_another_for_a_moment_alone() {
    let turns = Turns::new(8);
    let [hot, stuck] = [offer(1, 1), offer(2, 1)];
    let change = |offer| take(&turns, LockSet::of_offers([offer]));
    let held_long = admitted(&mut change(stuck)).await;
    let mut held = admitted(&mut change(hot)).await;
    let mut order = take(&turns, LockSet::of_offers([hot, stuck]).by_marketplace());
    assert!(poll!(&mut order).is_pending());
    for _ in 0..MARKETPLACE_PASSES {
        let mut next = change(hot);
        assert!(poll!(&mut next).is_pending());
        drop(held);
        held = admitted(&mut next).await;
    }
    drop(held);
    let mut next = change(hot);
    assert!(poll!(&mut next).is_pending());
    assert!(timeout(KEPT * 3 / 2, &mut order).await.is_err());
    held = admitted(&mut next).await;
    for _ in 0..2 * MARKETPLACE_PASSES {
        drop(held);
        held = admitted(&mut change(hot)).await;
    }
    drop(held_long);
    drop(held);
    drop(admitted(&mut order).await);
    assert!(is_empty(&turns));
}

/// As baskets do that have two offers which their seller changes in turns, and one of another seller.
#[tokio::test]
async fn the_marketplaces_turns_at_several_rows_come_together() {
    let turns = Turns::new(8);
    let [one, two, other] = [offer(1, 1), offer(1, 2), offer(2, 1)];
    let change = |offer| take(&turns, LockSet::of_offers([offer]));
    let mut held = Vec::new();
    for offer in [one, two] {
        held.push(Some(admitted(&mut change(offer)).await));
    }
    let mut changes = [one, two].map(|offer| (0..100).map(|_| change(offer)).collect::<Vec<_>>());
    for waiting in changes.iter_mut().flatten() {
        assert!(poll!(waiting).is_pending());
    }
    // They came last, and have the rows the other way round.
    let order = |offers: [_; 3]| take(&turns, LockSet::of_offers(offers).by_marketplace());
    let mut orders = vec![order([one, two, other]), order([two, one, other])];
    for waiting in &mut orders {
        assert!(poll!(waiting).is_pending());
    }
    let mut ends = 0;
    while !orders.is_empty() {
        // Never both rows at once.
        for (held, changes) in held.iter_mut().zip(&mut changes) {
            ends += 1;
            drop(held.take());
            // Tokio lets a task receive only so often at a time.
            tokio::task::yield_now().await;
            if let Poll::Ready(placed) = poll!(&mut orders[0]) {
                drop((placed, orders.remove(0)));
            }
            if let Poll::Ready(changed) = poll!(&mut changes[0]) {
                drop(changes.remove(0));
                *held = Some(changed.unwrap());
            }
            if orders.is_empty() {
                break;
            }
        }
        assert!(ends < 40, "{} orders wait", orders.len());
    }
    // The other seller is not stopped.
    drop(admitted(&mut change(other)).await);
    drop((held, changes));
    assert!(is_empty(&turns));
}

#[test]
fn a_look_begins_with_the_place_that_was_taken_at_the_last() {
    let places = [
        Place::Share(Uuid::nil().into()),
        Place::Row(Row::Family(Uuid::nil().into())),
    ];
    let mut state = State {
        share: 1,
        ..State::default()
    };
    let comer = Comer {
        ticket: 0,
        for_marketplace: false,
        has_rows_kept: false,
    };
    assert_eq!(state.find_busy(comer, &places, 1), None);
    for place in &places {
        state.queues.entry(place.clone()).or_default().taken = 1;
    }
    assert_eq!(
        [
            state.find_busy(comer, &places, 0),
            state.find_busy(comer, &places, 1)
        ],
        [Some(0), Some(1)]
    );
    state.queues.remove(&places[1]);
    assert_eq!(state.find_busy(comer, &places, 1), Some(0));
}

/// As batches of offers do that have all but one in common: each is looked at once for every end of
/// another, not once for each of its rows.
#[tokio::test]
async fn a_crowd_for_many_rows_is_looked_at_once() {
    let turns = Turns::new(1);
    let common: Vec<_> = (0..99).map(|id| offer(1, id)).collect();
    let held = take(&turns, rows(&[offer(1, 99)])).await.unwrap();
    let mut crowd: Vec<_> = (0..ROW_QUEUE - 1)
        .map(|_| take(&turns, rows(&[common.as_slice(), &[offer(1, 99)]].concat())))
        .collect();
    for waiting in &mut crowd {
        assert!(poll!(waiting).is_pending());
    }
    let began = std::time::Instant::now();
    for _ in 0..10 {
        drop(admitted(&mut take(&turns, rows(&common))).await);
    }
    // 2 500 looks, each of up to a hundred rows; at once for each row, there would be 250 000.
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    drop((held, crowd));
    assert!(is_empty(&turns));
}

/// Batches of different offers: while the share is full, none of their rows is looked up.
#[tokio::test]
async fn a_crowd_for_a_share_is_not_looked_at_row_by_row() {
    let admitting = async |rows: u128| {
        let turns = Turns::new(1);
        let batch = |n: u128| LockSet::of_offers((0..rows).map(|id| offer(1, 100 * n + id)));
        let mut held = take(&turns, batch(0)).await.unwrap();
        let mut crowd: Vec<_> = (1..500).map(|n| take(&turns, batch(n))).collect();
        for waiting in &mut crowd {
            assert!(poll!(waiting).is_pending());
        }
        let began = std::time::Instant::now();
        for waiting in &mut crowd {
            drop(held);
            held = admitted(waiting).await;
            // Tokio lets a task receive only so often at a time.
            tokio::task::yield_now().await;
        }
        let took = began.elapsed();
        drop((held, crowd));
        assert!(is_empty(&turns));
        took
    };
    let (single, batches) = (admitting(1).await, admitting(100).await);
    // Row by row, they would take about fifty times as long.
    assert!(batches < 10 * single, "{batches:?}, {single:?} for single rows");
}

#[tokio::test]
async fn a_full_queue_refuses_its_row_or_its_seller_alone() {
    let turns = Turns::new(2);
    let (hot, other, seller) = (offer(1, 1), offer(1, 2), LockSet::of_seller(offer(1, 1).0));
    let held = take(&turns, LockSet::of_offers([hot])).await.unwrap();
    let mut waiting = Vec::new();
    let mut wait = |locks: &LockSet| {
        let mut taking = take(&turns, locks.clone());
        assert!((&mut taking).now_or_never().is_none());
        waiting.push(taking);
    };
    (0..ROW_QUEUE).for_each(|_| wait(&LockSet::of_offers([hot])));
    let refused = take(&turns, LockSet::of_offers([other, hot])).await;
    assert!(matches!(refused, Err(StoreError::Unavailable(_))));
    // What the seller sends does not keep the marketplace out.
    let of_marketplace = LockSet {
        for_marketplace: true,
        ..LockSet::of_offers([hot])
    };
    let mut placed = take(&turns, of_marketplace);
    assert!(poll!(&mut placed).is_pending());
    // The seller's second place is free, and there is no third one.
    let beside = admitted(&mut take(&turns, LockSet::of_offers([other]))).await;
    (ROW_QUEUE..SHARE_QUEUE).for_each(|_| wait(&seller));
    let refused = take(&turns, seller).await;
    assert!(matches!(refused, Err(StoreError::Unavailable(cause)) if cause.is::<ShareTaken>()));
    drop(admitted(&mut take(&turns, LockSet::of_offers([offer(2, 2)]))).await);
    // The first of those who do not wait for the row.
    drop(beside);
    drop(admitted(&mut waiting[ROW_QUEUE]).await);
    drop((held, waiting, placed));
    assert!(is_empty(&turns));
}
