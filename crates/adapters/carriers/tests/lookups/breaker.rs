//! Each carrier in lasting trouble is left alone: the stub sees no request.

use std::time::Duration;

use adapter_carriers::DEADLINE;
use orders::{Carrier, CarrierLookup, Lookup};

use crate::{
    fixtures,
    stub::Reply,
    world::{self, CARRIERS, World, number, reason},
};

async fn each(check: impl AsyncFn(&World)) {
    world::each(&CARRIERS, DEADLINE, check).await;
}

/// Asserts that the carrier is left alone for exactly so long from now on.
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
async fn five_failures_open_it_and_the_probe_closes_it() {
    each(async |world| {
        let carrier = world.carrier;
        for _ in 0..5 {
            assert_eq!(reason(world.hears(Reply::new(500, "")).await), "HTTP status 500");
        }
        is_left_alone(world, 30).await;
        is_left_alone(world, 60).await;
        world.clock.forward(120);
        for _ in 0..3 {
            assert!(
                matches!(world.hears(fixtures::delivered(carrier)).await, Lookup::Found(_)),
                "{carrier:?}"
            );
        }
    })
    .await;
}

#[tokio::test]
async fn three_timeouts_open_it() {
    world::each(&CARRIERS, Duration::from_millis(400), async |world| {
        let carrier = world.carrier;
        world.stub.says([Reply::Silence]);
        for _ in 0..3 {
            assert_eq!(reason(world.ask().await), "no answer in time", "{carrier:?}");
        }
        is_left_alone(world, 30).await;
    })
    .await;
}

#[tokio::test]
async fn a_429_is_obeyed() {
    each(async |world| {
        let carrier = world.carrier;
        let until_then = "Tue, 06 Jan 2026 23:00:00 GMT";
        assert_eq!(
            reason(world.hears(Reply::new(429, "{}")).await),
            "HTTP status 429"
        );
        world.stub.says([Reply::new(429, "{}").with("retry-after", "7")]);
        is_left_alone(world, 60).await;
        world
            .stub
            .says([Reply::new(429, "{}").with("retry-after", until_then)]);
        is_left_alone(world, 7).await;
        world.stub.says([fixtures::delivered(carrier)]);
        is_left_alone(world, 3_600 - 67).await;
    })
    .await;
}

#[tokio::test]
async fn a_429_for_a_token_counts_alike() {
    let world = World::new(Carrier::Gls).await;
    world.stub.gives([
        Reply::new(429, "").with("retry-after", "90"),
        fixtures::token(Carrier::Gls, 1),
    ]);
    assert_eq!(reason(world.ask().await), "HTTP status 429");
    is_left_alone(&world, 90).await;
    assert_eq!((world.asked(), world.token_requests()), (1, 2));
}

#[tokio::test]
async fn dhl_is_left_alone_until_midnight_once_the_quota_is_used_up() {
    let world = World::new(Carrier::Dhl).await;
    world.hears(Reply::new(429, "{}")).await;
    is_left_alone(&world, 60).await;
    // The clock stands at 22:01:00.
    world
        .stub
        .says([fixtures::delivered(Carrier::Dhl), Reply::new(429, "{}")]);
    is_left_alone(&world, 2 * 3_600 - 60).await;
    // On the next day it begins anew.
    world.ask().await;
    is_left_alone(&world, 60).await;
}

#[tokio::test]
async fn questions_that_the_carrier_refuses_do_not_count() {
    each(async |world| {
        let carrier = world.carrier;
        let refusal = match carrier {
            Carrier::Dpd => {
                let fault = "<faultcode>S:Server</faultcode><faultstring>Invalid waybill</faultstring>";
                let envelope = format!(
                    "<S:Envelope xmlns:S=\"http://schemas.xmlsoap.org/soap/envelope/\"><S:Body><S:Fault>{fault}\
                     </S:Fault></S:Body></S:Envelope>"
                );
                Reply::new(500, envelope)
            }
            _ => Reply::new(400, r#"{"code":"no such number"}"#),
        };
        for _ in 0..10 {
            let why = reason(world.hears(refusal.clone()).await);
            assert!(why.starts_with("the carrier refuses the question"), "{carrier:?}: {why}");
        }
        assert_eq!(world.asked(), 10, "{carrier:?}");
    })
    .await;
}

#[tokio::test]
async fn a_look_up_that_is_given_up_leaves_the_probe_to_the_next() {
    let world = World::new(Carrier::Inpost).await;
    for _ in 0..5 {
        world.hears(Reply::new(500, "")).await;
    }
    world.clock.forward(30);
    world.stub.says([Reply::Silence]);
    let given_up = tokio::time::timeout(Duration::from_millis(50), world.ask()).await;
    assert!(given_up.is_err());
    assert!(matches!(
        world.hears(fixtures::delivered(Carrier::Inpost)).await,
        Lookup::Found(_)
    ));
}

#[tokio::test]
async fn one_carriers_trouble_is_not_anothers() {
    let (inpost, gls) = (World::new(Carrier::Inpost).await, World::new(Carrier::Gls).await);
    let url = |world: &World| url::Url::parse(&format!("http://{}/", world.stub.address)).unwrap();
    let deadline = adapter_carriers::DEADLINE;
    let mut settings = crate::world::settings(Carrier::Inpost, &url(&inpost), deadline);
    settings.gls = crate::world::settings(Carrier::Gls, &url(&gls), deadline).gls;
    let both = adapter_carriers::Carriers::new(&settings, inpost.clock.clone()).unwrap();
    inpost.stub.says([Reply::new(500, "")]);
    for _ in 0..6 {
        assert!(matches!(
            both.look_up(Carrier::Inpost, &number()).await,
            Lookup::Unavailable(_)
        ));
        assert!(matches!(
            both.look_up(Carrier::Gls, &number()).await,
            Lookup::Found(_)
        ));
    }
    assert_eq!((inpost.asked(), gls.asked()), (5, 6));
}
