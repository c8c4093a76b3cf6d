//! Failures of the connection and invalid answers, for every carrier.

use std::time::{Duration, Instant};

use adapter_carriers::{Carriers, DEADLINE};
use futures_util::future::join_all;
use orders::{Carrier, CarrierLookup, Lookup, TrackingStatus};
use tokio::{
    net::{TcpSocket, TcpStream},
    time::timeout,
};
use url::Url;

use crate::{
    fixtures,
    stub::Reply,
    world::{self, CARRIERS, World, at, found, number, reason, settings, until},
};

const PAGE: &str = "<!DOCTYPE html><html><body><h1>Maintenance</h1></body></html>";

async fn each(check: impl AsyncFn(&World)) {
    world::each(&CARRIERS, DEADLINE, check).await;
}

#[tokio::test]
async fn a_delivery_has_its_instant_in_utc() {
    each(async |world| {
        let lookup = world.ask().await;
        let delivered_at = lookup.delivery().and_then(|delivery| delivery.at);
        assert_eq!(delivered_at, Some(at("2026-01-05T11:30:00Z")));
        let sighting = found(lookup);
        assert_eq!(sighting.status, TrackingStatus::Delivered, "{:?}", world.carrier);
        assert_eq!(sighting.raw_code, fixtures::delivered_code(world.carrier));
    })
    .await;
}

#[tokio::test]
async fn an_unknown_number_is_not_found_and_no_failure_of_the_carrier() {
    each(async |world| {
        for _ in 0..20 {
            let lookup = world.hears(fixtures::not_known(world.carrier)).await;
            assert_eq!(lookup, Lookup::NotFound, "{:?}", world.carrier);
        }
        assert_eq!(world.asked(), 20);
    })
    .await;
}

#[tokio::test]
async fn unusable_answers_are_failures_without_a_retry() {
    each(async |world| {
        let Reply::Http { body: whole, .. } = fixtures::delivered(world.carrier) else {
            panic!("no body");
        };
        let half = whole[..whole.len() / 2].to_owned();
        let large = format!("{}{whole}", " ".repeat(1024 * 1024));
        let redirect = |status| Reply::new(status, "").with("location", "/elsewhere");
        for (reply, expected) in [
            (Reply::new(500, r#"{"error":"internal"}"#), "HTTP status 500"),
            (Reply::new(404, PAGE), "HTTP status 404"),
            (Reply::new(403, "{}"), "HTTP status 403"),
            (Reply::new(204, ""), "HTTP status 204"),
            (redirect(301), "HTTP status 301"),
            (redirect(302), "HTTP status 302"),
            (redirect(307), "HTTP status 307"),
            (redirect(308), "HTTP status 308"),
            (Reply::new(200, PAGE), "unreadable answer"),
            (Reply::new(200, ""), "unreadable answer"),
            (Reply::new(200, "{}"), "unreadable answer"),
            (Reply::new(200, "<x/>"), "unreadable answer"),
            (Reply::new(200, &*half), "unreadable answer"),
            (Reply::Truncated(half), "the exchange broke off"),
            (Reply::Truncated(whole), "the exchange broke off"),
            (Reply::new(200, large), "the answer is too large"),
        ] {
            let reason = world.fails(reply).await;
            assert!(reason.starts_with(expected), "{:?}: {reason}", world.carrier);
            assert_eq!(world.asked(), 1, "{:?}: {reason}", world.carrier);
            world.recovers().await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_failing_gateway_is_asked_once_more() {
    each(async |world| {
        for status in [502, 503, 504] {
            let failure = Reply::new(status, PAGE);
            world
                .stub
                .says([failure.clone(), fixtures::delivered(world.carrier)]);
            found(world.ask().await);
            assert_eq!(world.asked(), 2);
            assert_eq!(world.fails(failure).await, format!("HTTP status {status}"));
            assert_eq!(world.asked(), 4);
            world.recovers().await;
        }
    })
    .await;
    let hurried = World::within(Carrier::Dpd, Duration::from_millis(990)).await;
    hurried.fails(Reply::new(503, "")).await;
    assert_eq!(hurried.asked(), 1, "a retry needs a second of the deadline");
}

#[tokio::test]
async fn a_closed_port_is_a_failure_that_does_not_show_the_address() {
    // Bound but not listening during the test, so that no other process gets the port.
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let url = Url::parse(&format!("http://{}/", socket.local_addr().unwrap())).unwrap();
    for carrier in CARRIERS {
        let carriers = Carriers::new(&settings(carrier, &url, DEADLINE), World::clock()).unwrap();
        let reason = reason(carriers.look_up(carrier, &number()).await);
        assert!(reason.starts_with("no connection: "), "{carrier:?}: {reason}");
        assert!(
            !reason.contains(number().as_str()) && !reason.contains("http://"),
            "{carrier:?}: {reason}"
        );
    }
}

#[tokio::test]
async fn connecting_is_tried_twice_for_a_second() {
    // A listener with a full queue that never accepts.
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = socket.listen(1).unwrap();
    let address = listener.local_addr().unwrap();
    let mut queue = Vec::new();
    while let Ok(connected) = timeout(Duration::from_millis(100), TcpStream::connect(address)).await {
        queue.push(connected.unwrap());
        assert!(queue.len() < 16, "the queue has an end");
    }
    let url = Url::parse(&format!("http://{address}/")).unwrap();
    let settings = settings(Carrier::Inpost, &url, DEADLINE);
    let carriers = Carriers::new(&settings, World::clock()).unwrap();
    let began = Instant::now();
    let lookup = carriers.look_up(Carrier::Inpost, &number()).await;
    assert_eq!(reason(lookup), "no connection in time");
    assert!(began.elapsed() >= Duration::from_secs(2), "{:?}", began.elapsed());
}

#[tokio::test]
async fn one_carrier_gets_four_requests_at_a_time() {
    each(async |world| {
        world.stub.hold();
        let opening = async {
            until(|| world.asked() == 4).await;
            // A fifth request would arrive at once.
            tokio::time::sleep(Duration::from_millis(50)).await;
            world.stub.open();
        };
        let (lookups, ()) = tokio::join!(join_all((0..12).map(|_| world.ask())), opening);
        for lookup in lookups {
            found(lookup);
        }
        let counts = (world.asked(), world.stub.most_at_a_time());
        assert_eq!(counts, (12, 4), "{:?}", world.carrier);
    })
    .await;
}

#[tokio::test]
async fn the_queue_takes_half_of_the_deadline_and_is_no_failure_of_the_carrier() {
    let world = World::within(Carrier::Dhl, Duration::from_secs(2)).await;
    world.stub.hold();
    let queued = async {
        until(|| world.asked() == 4).await;
        let began = Instant::now();
        let lookups = join_all((0..10).map(|_| world.ask())).await;
        let took = began.elapsed();
        world.stub.open();
        (lookups, took)
    };
    let (asked, (queued, took)) = tokio::join!(join_all((0..4).map(|_| world.ask())), queued);
    for lookup in asked {
        found(lookup);
    }
    for lookup in queued {
        assert!(reason(lookup).starts_with("not asked: too many"));
    }
    let half = Duration::from_secs(1)..Duration::from_secs(2);
    assert!(half.contains(&took), "{took:?}");
    found(world.ask().await);
    assert_eq!(world.asked(), 5);
}
