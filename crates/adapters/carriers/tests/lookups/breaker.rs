//! An open breaker: the stub gets no request.

use std::time::Duration;

use adapter_carriers::{Carriers, DEADLINE};
use orders::{Carrier, CarrierLookup, Lookup};
use url::Url;

use crate::{
    fixtures::{self, fault},
    stub::Reply,
    world::{self, CARRIERS, World, found, number, reason},
};

/// Asserts that the breaker stays open for exactly this number of seconds.
async fn is_left_alone(world: &World, seconds: i64) {
    let asked = world.asked();
    for wait in [0, seconds - 1] {
        world.clock.forward(wait);
        assert!(
            reason(world.ask().await).starts_with("not asked"),
            "{:?}",
            world.carrier
        );
    }
    assert_eq!(world.asked(), asked, "{:?}", world.carrier);
    world.clock.forward(1);
    world.ask().await;
    assert!(world.asked() > asked, "{:?} is asked again", world.carrier);
}

#[tokio::test]
async fn three_timeouts_or_five_failures_open_it_and_a_probe_closes_it() {
    let deadline = Duration::from_millis(400);
    world::each(&CARRIERS, deadline, async |world| {
        for _ in 0..3 {
            let began = std::time::Instant::now();
            assert_eq!(world.fails(Reply::Silence).await, "no answer in time");
            let took = began.elapsed();
            assert!((deadline..Duration::from_secs(2)).contains(&took), "{took:?}");
        }
        is_left_alone(world, 30).await;
        world.clock.forward(60);
        world.recovers().await;
        for _ in 0..5 {
            assert_eq!(world.fails(Reply::new(500, "")).await, "HTTP status 500");
        }
        is_left_alone(world, 30).await;
        is_left_alone(world, 60).await;
    })
    .await;
}

#[tokio::test]
async fn a_429_is_obeyed() {
    world::each(&CARRIERS, DEADLINE, async |world| {
        let until_then = "Tue, 06 Jan 2026 23:00:00 GMT";
        assert_eq!(world.fails(Reply::new(429, "{}")).await, "HTTP status 429");
        world.stub.says([Reply::new(429, "{}").with("retry-after", "7")]);
        is_left_alone(world, 60).await;
        world
            .stub
            .says([Reply::new(429, "{}").with("retry-after", until_then)]);
        is_left_alone(world, 7).await;
        world.stub.says([fixtures::delivered(world.carrier)]);
        is_left_alone(world, 3_600 - 67).await;
    })
    .await;
}

#[tokio::test]
async fn a_429_for_a_token_counts_alike() {
    let world = World::new(Carrier::Gls).await;
    let throttled = Reply::new(429, "").with("retry-after", "90");
    world.stub.gives([throttled, fixtures::token(Carrier::Gls, 1)]);
    assert_eq!(reason(world.ask().await), "HTTP status 429");
    is_left_alone(&world, 90).await;
    assert_eq!(world.requests(), (1, 2));
}

#[tokio::test]
async fn dhl_is_left_alone_until_midnight_once_the_quota_is_used_up() {
    let world = World::new(Carrier::Dhl).await;
    world.fails(Reply::new(429, "{}")).await;
    is_left_alone(&world, 60).await;
    // The clock is at 22:01:00.
    world
        .stub
        .says([fixtures::delivered(Carrier::Dhl), Reply::new(429, "{}")]);
    is_left_alone(&world, 2 * 3_600 - 60).await;
    // On the next day the first pause applies again.
    world.ask().await;
    is_left_alone(&world, 60).await;
}

#[tokio::test]
async fn rejected_requests_do_not_count() {
    world::each(&CARRIERS, DEADLINE, async |world| {
        let rejection = match world.carrier {
            Carrier::Dpd => Reply::new(500, fault("Invalid waybill")),
            _ => Reply::new(400, r#"{"code":"no such number"}"#),
        };
        for _ in 0..10 {
            let reason = world.fails(rejection.clone()).await;
            assert!(reason.starts_with("the carrier refuses the question"), "{reason}");
        }
        assert_eq!(world.asked(), 10, "{:?}", world.carrier);
    })
    .await;
}

#[tokio::test]
async fn carriers_do_not_affect_each_other() {
    let (inpost, gls) = (World::new(Carrier::Inpost).await, World::new(Carrier::Gls).await);
    let settings = |world: &World| {
        let url = Url::parse(&format!("http://{}/", world.stub.address)).unwrap();
        world::settings(world.carrier, &url, DEADLINE)
    };
    let mut both = settings(&inpost);
    both.accounts.extend(settings(&gls).accounts);
    let both = Carriers::new(&both, inpost.clock.clone()).unwrap();
    inpost.stub.says([Reply::new(500, "")]);
    for _ in 0..6 {
        let lookup = both.look_up(Carrier::Inpost, &number()).await;
        assert!(matches!(lookup, Lookup::Unavailable(_)));
        found(both.look_up(Carrier::Gls, &number()).await);
    }
    assert_eq!((inpost.asked(), gls.asked()), (5, 6));
}
