//! An open breaker: the stub gets no request.

use std::time::{Duration, Instant};

use adapter_carriers::{Carriers, DEADLINE};
use orders::{Carrier, CarrierLookup, Lookup};

use crate::world::{CARRIERS, SILENCE, World, number, reply, throttled};
use crate::{fixtures, world};

/// Long enough for an answer of the stub on a busy machine.
const LONG: Duration = Duration::from_secs(30);

/// Asserts that the breaker stays open for exactly this number of seconds.
async fn is_open_for(world: &World, seconds: i64) {
    let before = world.count();
    for wait in [0, seconds - 1] {
        world.clock.advance(wait);
        assert!(
            world.fails().await.starts_with("not asked"),
            "{:?}",
            world.carrier
        );
    }
    assert_eq!(world.count(), before, "{:?}", world.carrier);
    world.clock.advance(1);
    world.look_up().await;
    assert!(world.count() > before, "{:?} is queried again", world.carrier);
}

#[tokio::test]
async fn three_timeouts_or_five_failures_open_it_and_a_probe_closes_it() {
    let short = Duration::from_millis(400);
    world::each(&CARRIERS, short, async |world| {
        let mut took = Vec::new();
        for _ in 0..3 {
            let began = Instant::now();
            assert_eq!(world.fails_with(SILENCE).await, "no answer in time");
            took.push(began.elapsed());
        }
        // A busy machine makes some longer.
        let shortest = took.iter().min().unwrap();
        assert!((short..DEADLINE).contains(shortest), "{took:?}");
        is_open_for(world, 30).await;
    })
    .await;
    world::each(&CARRIERS, LONG, async |world| {
        for _ in 0..2 {
            for _ in 0..5 {
                assert_eq!(world.fails_with(reply(500, "")).await, "HTTP status 500");
            }
            is_open_for(world, 30).await;
            is_open_for(world, 60).await;
            world.clock.advance(120);
            world.recovers().await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_429_is_obeyed() {
    world::each(&CARRIERS, DEADLINE, async |world| {
        assert_eq!(world.fails_with(reply(429, "{}")).await, "HTTP status 429");
        world.replies([throttled("7")]);
        is_open_for(world, 60).await;
        world.replies([throttled("Tue, 06 Jan 2026 23:00:00 GMT")]);
        is_open_for(world, 7).await;
        world.replies([fixtures::delivered(world.carrier)]);
        is_open_for(world, 3_600 - 67).await;
    })
    .await;
    let world = World::new(Carrier::Gls).await;
    world.token_replies([throttled("90"), fixtures::token(Carrier::Gls, 1)]);
    assert_eq!(world.fails().await, "HTTP status 429");
    is_open_for(&world, 90).await;
    assert_eq!(world.counts(), (1, 2), "a 429 for a token counts alike");
}

#[tokio::test]
async fn dhl_is_not_queried_until_midnight_once_the_quota_is_used_up() {
    let world = World::new(Carrier::Dhl).await;
    world.fails_with(reply(429, "{}")).await;
    is_open_for(&world, 60).await;
    // The clock is at 22:01:00.
    world.replies([fixtures::delivered(Carrier::Dhl), reply(429, "{}")]);
    is_open_for(&world, 2 * 3_600 - 60).await;
    // On the next day the first pause applies again.
    world.look_up().await;
    is_open_for(&world, 60).await;
}

#[tokio::test]
async fn unknown_numbers_and_rejected_requests_do_not_count() {
    world::each(&CARRIERS, DEADLINE, async |world| {
        let rejection = match world.carrier {
            Carrier::Dpd => reply(500, "<Fault><faultstring>Invalid waybill</faultstring></Fault>"),
            _ => reply(400, r#"{"code":"no such number"}"#),
        };
        for _ in 0..10 {
            world.replies([fixtures::not_found(world.carrier)]);
            assert_eq!(world.look_up().await, Lookup::NotFound, "{:?}", world.carrier);
            let reason = world.fails_with(rejection.clone()).await;
            assert!(reason.starts_with("the carrier rejects the request"), "{reason}");
        }
        assert_eq!(world.count(), 20, "{:?}", world.carrier);
    })
    .await;
}

#[tokio::test]
async fn carriers_do_not_affect_each_other() {
    let (inpost, gls) = (World::new(Carrier::Inpost).await, World::new(Carrier::Gls).await);
    let settings = |world: &World| world::settings(world.carrier, &world.url, DEADLINE);
    let mut both = settings(&inpost);
    both.accounts.extend(settings(&gls).accounts);
    let both = Carriers::new(&both, inpost.clock.clone()).unwrap();
    inpost.replies([reply(500, "")]);
    for _ in 0..6 {
        let lookup = both.look_up(Carrier::Inpost, &number()).await;
        assert!(matches!(lookup, Lookup::Unavailable(_)));
        let lookup = both.look_up(Carrier::Gls, &number()).await;
        assert!(matches!(lookup, Lookup::Found(_)));
    }
    assert_eq!((inpost.count(), gls.count()), (5, 6));
}
