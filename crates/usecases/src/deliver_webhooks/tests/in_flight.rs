//! What a worker has in hand, call by call.

use std::collections::BTreeSet;

use uuid::Uuid;
use webhooks::{AttemptRecord, Outcome, Phase, Refill, SubscriptionQueues as _};

use super::{OK, SLOTS, World, queues};
use crate::deliver_webhooks::Slots;
use crate::deliver_webhooks::in_flight::{InFlight, Start};

fn delivered(start: &Start) -> AttemptRecord {
    AttemptRecord {
        lease: start.lease,
        delivery: start.delivery,
        from: start.from,
        next: start.from,
        phase: Phase::Delivered,
        outcome: Outcome::Answered(200),
        duration_ms: 1,
    }
}

#[tokio::test(start_paused = true)]
async fn the_store_learns_of_a_delivery_that_is_postponed_during_a_refill() {
    let world = World::default();
    world.queue(1, 2, OK);
    let mut in_flight = InFlight::new(SLOTS);
    let capacity = in_flight.begin_claim().unwrap();
    let mut claimed = world.store.claim(Uuid::nil(), capacity).await.unwrap();
    in_flight.end_claim();
    let starts = in_flight.add(claimed.queues.remove(0));
    in_flight.beat();
    let running_in = |refills: &[Refill]| refills.iter().map(|refill| refill.running.len()).sum::<usize>();

    let during = in_flight.refills(true);
    assert_eq!(running_in(&during), 2);
    in_flight.postpone(&starts[0]);
    in_flight.refilled(&during, world.store.refill(&during).await.unwrap());
    let after = in_flight.refills(false);
    assert_eq!(running_in(&after), 1);
    in_flight.refilled(&after, world.store.refill(&after).await.unwrap());
    assert_eq!(in_flight.refills(false), []);
}

#[tokio::test(start_paused = true)]
async fn a_refill_beside_a_claim_gets_what_has_become_free_since_the_claim_began() {
    let world = queues((1, 20), &OK, false, |_| 1);
    let mut in_flight = InFlight::new(Slots {
        per_queue: 4,
        ..SLOTS
    });
    let capacity = in_flight.begin_claim().unwrap();
    let mut claimed = world.store.claim(Uuid::nil(), capacity).await.unwrap();
    in_flight.end_claim();
    in_flight.claimed(&claimed);
    let starts = in_flight.add(claimed.queues.remove(0));
    in_flight.beat();
    let wanted = |refills: &[Refill]| refills.iter().map(|refill| refill.capacity).sum::<u16>();
    let claim = in_flight.begin_claim().unwrap();
    assert!(claim.left(Uuid::from_u128(1).into(), false) > 0);
    assert_eq!(wanted(&in_flight.refills(true)), 0);
    in_flight.end(delivered(&starts[0]));
    let recording = in_flight.next_recording().unwrap();
    in_flight.recorded(recording, &BTreeSet::new());
    assert_eq!(wanted(&in_flight.refills(true)), 1);
}

#[tokio::test(start_paused = true)]
async fn an_owners_window_follows_how_its_attempts_end() {
    let mut in_flight = InFlight::new(SLOTS);
    let window = async |in_flight: &mut InFlight, ends: &[u16]| {
        let world = queues((1, ends.len()), &OK, false, |_| 1);
        let capacity = in_flight.begin_claim().unwrap();
        let mut claimed = world.store.claim(Uuid::nil(), capacity).await.unwrap();
        in_flight.end_claim();
        let starts = in_flight.add(claimed.queues.remove(0));
        for (start, status) in starts.iter().zip(ends) {
            let outcome = Outcome::Answered(*status);
            in_flight.end(AttemptRecord {
                outcome,
                duration_ms: 1_000,
                ..delivered(start)
            });
        }
        let recording = in_flight.next_recording().unwrap();
        in_flight.recorded(recording, &BTreeSet::new());
        let capacity = in_flight.begin_claim().unwrap();
        in_flight.end_claim();
        let load = capacity.under_way.values().next();
        load.map_or(capacity.first_window, |load| load.window)
    };
    assert_eq!(window(&mut in_flight, &[200, 200]).await, 4);
    // A queue that fails takes half, once.
    assert_eq!(window(&mut in_flight, &[500, 500, 500]).await, 2);
    assert_eq!(window(&mut in_flight, &[500]).await, 1);
    // It doubles at a beat, since there is room and half of it was used.
    in_flight.beat();
    assert_eq!(window(&mut in_flight, &[200; 2]).await, 4);
    in_flight.beat();
    assert_eq!(window(&mut in_flight, &[200; 8]).await, 16);
    // Without attempts it shrinks.
    in_flight.beat();
    in_flight.beat();
    assert_eq!(window(&mut in_flight, &[200]).await, 3);
}

/// Its other queues would be postponed one after another, before everybody's that have waited for less long.
#[tokio::test(start_paused = true)]
async fn claims_pass_over_an_owner_whose_attempts_are_postponed_but_for_as_many_as_end() {
    let world = queues((1, 3), &OK, false, |_| 1);
    let mut in_flight = InFlight::new(SLOTS);
    let capacity = in_flight.begin_claim().unwrap();
    let mut claimed = world.store.claim(Uuid::nil(), capacity).await.unwrap();
    let queue = claimed.queues.remove(0);
    let owner = queue.owner;
    let starts = in_flight.add(queue);
    let left = |in_flight: &mut InFlight| in_flight.begin_claim().unwrap().left(owner, false);
    let before = left(&mut in_flight);
    in_flight.postpone(&starts[0]);
    assert_eq!(left(&mut in_flight), 0);
    in_flight.end(delivered(&starts[1]));
    assert_eq!([left(&mut in_flight), left(&mut in_flight)], [1, 0]);
    // Once a beat it is tried how many can begin, in many queues.
    in_flight.beat();
    let capacity = in_flight.begin_claim().unwrap();
    assert!(capacity.left(owner, false) > before && capacity.under_way[&owner].tries.is_some());
    assert_eq!(left(&mut in_flight), 0);
    in_flight.beat();
    assert!(in_flight.begin_claim().unwrap().under_way[&owner].tries.is_none());
}
