//! A slow but working network between program and database. Below the deadlines everything works, only
//! slower; above them the effect is the same as with a database that does not answer.

use std::time::{Duration, Instant};

use blackbox::{CarrierStub, StubAnswer, World, inpost_at, line, order_body, parcel};
use serde_json::json;
use testkit::Pace;

use crate::PROGRAM;
use crate::ledger::{Ledger, in_time};

fn pace(delay: u64, jitter: u64, bandwidth: Option<u32>) -> Pace {
    Pace {
        delay: Duration::from_millis(delay),
        jitter: Duration::from_millis(jitter),
        bandwidth,
    }
}

/// A carrier that uses up its whole deadline does not shorten the database's.
#[tokio::test]
async fn the_time_of_a_carrier_is_not_the_stores() {
    let carrier = CarrierStub::start().await;
    carrier.answers("SILENT-1", StubAnswer::Silence);
    let asking = |options| inpost_at(options, &carrier.url);
    let (world, link) = World::over_a_link(PROGRAM, asking).await;
    let trader = world.trader().await;
    let order = world.paid_order(&trader).await;
    link.slow_down(pace(60, 0, None));
    let began = Instant::now();
    let silent = json!({"carrier": "inpost", "tracking_number": "SILENT-1"});
    world.ship(&trader.token, &order.id, &silent).await.expect(201);
    // Together they take longer than the database alone is allowed to.
    assert!(began.elapsed() > Duration::from_secs(3), "{:?}", began.elapsed());
}

#[tokio::test]
async fn a_slow_way_to_the_database_slows_and_breaks_nothing() {
    let (world, link) = World::over_a_link(PROGRAM, |options| options).await;
    let mut ledger = Ledger::open(&world).await;
    let trader = ledger.trader().clone();
    let offer = world.any_offer(&trader.seller, json!({"stock": 100})).await;
    for slow in [
        pace(10, 0, None),
        // Like a bad line across a continent.
        pace(30, 30, Some(200_000)),
    ] {
        link.slow_down(slow);
        // A busy machine may take the rest of a request's time.
        let mut tries = 0..3;
        while ledger.write(&world, 8).await < 8 {
            assert!(tries.next().is_some(), "{slow:?}");
        }
        let order = world.paid(&[line(&trader.seller, &offer, 1)], json!({})).await;
        let shipped = world.ship(&trader.token, &order.id, &parcel("SLOW-1")).await;
        shipped.expect(201);
        world.get(&trader.token, "/v1/offers").await.expect(200);
        world.server.ready().await;
    }

    // Each statement takes longer than its timeout.
    link.slow_down(pace(1_600, 0, None));
    assert_eq!(ledger.write(&world, 8).await, 0);
    world.server.not_ready().await;
    link.slow_down(Pace::default());
    world.server.ready().await;
    ledger.holds(&world).await;
    world
        .place(&order_body(&[line(&trader.seller, &offer, 1)], json!({})))
        .await
        .expect(201);
    in_time(&world);
}
