//! Name servers that lose a name, fail or do not answer, for receivers and carriers.

use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use blackbox::{
    CarrierStub, EVENTS, Expect as _, MachineNames, NameServer, Receiver, StubAnswer, World, local_receivers,
    threads_of,
};
use chrono::TimeDelta;
use serde_json::json;

use crate::{PROGRAM, admin::admin_json, inpost_at, set};

pub(crate) const HERE: &[Ipv4Addr] = &[Ipv4Addr::LOCALHOST];

/// The ways in which a name server fails.
pub(crate) const FAULTS: [fn(&NameServer, &str); 3] = [
    NameServer::forgets,
    NameServer::fails_at,
    NameServer::is_silent_about,
];

/// Names that fail in each of these ways.
const FAILING: [&str; 3] = ["absent.example", "broken.example", "silent.example"];
const SOUND: &str = "sound.example";

/// Time for one look-up or many at once, and for other requests meanwhile: two seconds, with a margin.
/// Waiting for the system's resolver would take ten.
const WITHIN: Duration = Duration::from_secs(6);

/// A receiver's URL with another host name for this machine.
fn by_name(receiver: &Receiver, name: &str) -> String {
    receiver.url.replace("127.0.0.1", name)
}

#[tokio::test]
async fn receivers_whose_names_do_not_resolve_are_retried_and_delay_no_other() {
    let known = [FAILING[0], FAILING[1], FAILING[2], SOUND].map(|name| (name, HERE));
    let names = NameServer::start(&known).await;
    let world = World::with(PROGRAM, |options| {
        local_receivers(options)
            .set("SELLER_API__WEBHOOKS__NAME_SERVERS", names.address)
            .set("SELLER_API__WEBHOOKS__RETRY_DELAYS", "100ms,1h,1h,1h,1h")
    })
    .await;
    let clock = world.database.control_clock().await;
    let (victim, other) = (world.integration().await, world.integration().await);
    let (lost, sound) = (Receiver::start().await, Receiver::start().await);
    let subscribe = async |token: &str, url: &str| world.subscribe_to(token, url, &EVENTS).await;
    for name in FAILING {
        subscribe(&victim.token, &by_name(&lost, name)).await.expect(201);
    }
    let made = subscribe(&other.token, &by_name(&sound, SOUND)).await;
    made.expect(201);

    for (fail, name) in FAULTS.into_iter().zip(FAILING) {
        fail(&names, name);
    }
    for name in FAILING {
        let begun = Instant::now();
        let refused = subscribe(&victim.token, &by_name(&lost, name)).await;
        refused.invalid("url");
        assert!(begun.elapsed() < WITHIN, "{name}: {:?}", begun.elapsed());
    }
    let before = threads_of(world.server.id());
    for n in 1..=6 {
        if n <= 2 {
            world.any_order(&victim.seller).await;
        }
        let begun = Instant::now();
        world.any_order(&other.seller).await;
        sound.has(n).await;
        assert!(begun.elapsed() < WITHIN, "{:?}", begun.elapsed());
    }
    let tried = "select count(*) from deliveries where attempt = 2";
    world.until_count("the second attempts", tried, &[], 6).await;
    for delivery in admin_json(&world, "webhooks pending").await {
        assert_eq!(delivery["error"], "the host's name does not resolve");
    }
    let took = "select count(*) from deliveries where attempt = 2 and duration_ms < 6000 and failure = $1";
    assert_eq!(world.count(took, &[&"dns"]).await, 6);
    // Idle threads exit after a while.
    let threads = threads_of(world.server.id());
    assert!(
        threads <= before,
        "{threads} after {before}: nobody waits in a thread"
    );
    assert_eq!(lost.connections(), 0);

    for name in FAILING {
        names.knows(name, HERE);
    }
    // Each delay has some jitter.
    clock.advance(TimeDelta::minutes(67)).await;
    let arrived = lost.has(6).await;
    let mut ids: Vec<_> = arrived.iter().map(|one| one.delivery().to_owned()).collect();
    ids.sort();
    ids.dedup();
    assert_eq!((ids.len(), lost.count()), (6, 6), "each once");
}

#[tokio::test]
async fn a_carrier_whose_name_fails_hinders_no_shipment() {
    const NAME: &str = "carrier.example";
    let Some(machine) = MachineNames::start(&[(NAME, HERE)]).await else {
        return;
    };
    let carrier = CarrierStub::start().await;
    let url = carrier.url.replace("127.0.0.1", NAME);
    let world = World::with(PROGRAM, |options| {
        let options = inpost_at(machine.given_to(options), &url);
        set(options, &[("TRACKING__POLL_INTERVAL", "1h")])
    })
    .await;
    let trader = world.trader().await;
    // Whether the carrier was queried; it reports every parcel as delivered.
    let ship = async |number: String| {
        carrier.answers(&number, StubAnswer::Delivered("2015-09-17T11:28:00.000+02:00"));
        let order = world.paid_order(&trader).await;
        let parcel = json!({"carrier": "inpost", "tracking_number": number});
        let begun = Instant::now();
        let made = world.ship(&trader.token, &order.id, &parcel).await.expect(201);
        assert!(begun.elapsed() < WITHIN, "{number}: {:?}", begun.elapsed());
        let asked = made.json()["delivered_already"] == true;
        assert_eq!(carrier.look_ups_of(&number), usize::from(asked), "{number}");
        asked
    };
    assert!(ship("FIRST".to_owned()).await);
    for (n, fail) in FAULTS.into_iter().enumerate() {
        fail(&machine.server, NAME);
        assert!(!ship(format!("LOST-{n}")).await);
        machine.server.knows(NAME, HERE);
        assert!(ship(format!("FOUND-{n}")).await, "as soon as the name is known");
    }

    // The system's resolver blocks a thread for ten seconds, so its use must be limited.
    machine.server.is_silent_about(NAME);
    let before = threads_of(world.server.id());
    let mut waiting = Vec::new();
    for n in 0..20 {
        let order = world.paid_order(&trader).await;
        let parcel = json!({"carrier": "inpost", "tracking_number": format!("MANY-{n}")});
        waiting.push(world.shipping(&trader.token, &order.id, &parcel));
    }
    let begun = Instant::now();
    let waiting: Vec<_> = waiting
        .into_iter()
        .map(|request| tokio::spawn(request.send()))
        .collect();
    for _ in 0..10 {
        let begun = Instant::now();
        world.get(&trader.token, "/v1/offers").await.expect(200);
        assert!(begun.elapsed() < WITHIN, "others go on");
    }
    for answer in waiting {
        let made = answer.await.unwrap().expect(201).json();
        assert_eq!(made["delivered_already"], false);
    }
    assert!(begun.elapsed() < WITHIN, "{:?}", begun.elapsed());
    let more = threads_of(world.server.id()).saturating_sub(before);
    assert!(more <= 16, "{more} threads more");
    world
        .server
        .log_with(|log| log.contains("the circuit breaker is open"))
        .await;
}
