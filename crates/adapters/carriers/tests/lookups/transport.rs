//! Each carrier when the way to it, or what comes back, is not as it should be.

use std::time::{Duration, Instant};

use adapter_carriers::DEADLINE;
use futures_util::future::join_all;
use orders::{Carrier, CarrierLookup, Lookup, TrackingStatus};
use tokio::{net::TcpStream, time::timeout};
use url::Url;

use crate::{
    fixtures,
    stub::Reply,
    world::{self, CARRIERS, Hand, World, at, found, number, reason, settings, until},
};

const PAGE: &str = "<!DOCTYPE html><html><body><h1>Maintenance</h1></body></html>";

async fn each(check: impl AsyncFn(&World)) {
    world::each(&CARRIERS, DEADLINE, check).await;
}

#[tokio::test]
async fn a_delivery_is_told_in_utc() {
    each(async |world| {
        let carrier = world.carrier;
        let lookup = world.ask().await;
        assert_eq!(
            lookup.delivery().and_then(|delivery| delivery.at),
            Some(at("2026-01-05T11:30:00Z"))
        );
        let sighting = found(lookup);
        assert_eq!(sighting.status, TrackingStatus::Delivered, "{carrier:?}");
        assert_eq!(sighting.raw_code, fixtures::delivered_code(carrier));
    })
    .await;
}

#[tokio::test]
async fn a_number_that_the_carrier_does_not_know_is_not_found() {
    each(async |world| {
        let carrier = world.carrier;
        for _ in 0..20 {
            assert_eq!(
                world.hears(fixtures::not_known(carrier)).await,
                Lookup::NotFound,
                "{carrier:?}"
            );
        }
        // It is an answer: the carrier is asked on and on.
        assert_eq!(world.asked(), 20);
    })
    .await;
}

#[tokio::test]
async fn useless_answers_are_no_answers() {
    each(async |world| {
        let carrier = world.carrier;
        let whole = match fixtures::delivered(carrier) {
            Reply::Http { body, .. } => body,
            other => panic!("{other:?}"),
        };
        let half = whole[..whole.len() / 2].to_owned();
        let large = format!("{}{whole}", " ".repeat(1024 * 1024));
        let replies = [
            (Reply::new(500, r#"{"error":"internal"}"#), "HTTP status 500"),
            (Reply::new(404, PAGE), "HTTP status 404"),
            (Reply::new(403, "{}"), "HTTP status 403"),
            (Reply::new(204, ""), "HTTP status 204"),
        ];
        for (reply, expected) in replies {
            assert_eq!(reason(world.hears(reply).await), expected, "{carrier:?}");
            assert_eq!(
                world.asked(),
                1,
                "{carrier:?}: none of these is worth a second try"
            );
            world.recovers().await;
        }
        let replies = [
            (Reply::new(200, PAGE), "unreadable answer"),
            (Reply::new(200, ""), "unreadable answer"),
            (Reply::new(200, "{}"), "unreadable answer"),
            (Reply::new(200, "<x/>"), "unreadable answer"),
            (Reply::new(200, &*half), "unreadable answer"),
            (Reply::Truncated(half), "the exchange broke off"),
            (Reply::Truncated(whole), "the exchange broke off"),
            (Reply::new(200, large), "the answer is too large"),
        ];
        for (reply, expected) in replies {
            let why = reason(world.hears(reply).await);
            assert!(why.starts_with(expected), "{carrier:?}: {why}");
            assert_eq!(world.asked(), 1, "{carrier:?}");
            world.recovers().await;
        }
    })
    .await;
}

#[tokio::test]
async fn redirects_are_not_followed() {
    each(async |world| {
        let carrier = world.carrier;
        for status in [301, 302, 307, 308] {
            let away = Reply::new(status, "").with("location", "/elsewhere");
            world.stub.says([away, fixtures::delivered(carrier)]);
            assert_eq!(
                reason(world.ask().await),
                format!("HTTP status {status}"),
                "{carrier:?}"
            );
            assert_eq!(world.asked(), 1, "{carrier:?}");
            world.recovers().await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_gateway_in_trouble_is_asked_once_more() {
    each(async |world| {
        let carrier = world.carrier;
        for status in [502, 503, 504] {
            world
                .stub
                .says([Reply::new(status, PAGE), fixtures::delivered(carrier)]);
            assert!(matches!(world.ask().await, Lookup::Found(_)), "{carrier:?}");
            assert_eq!(world.asked(), 2);
            assert_eq!(
                reason(world.hears(Reply::new(status, PAGE)).await),
                format!("HTTP status {status}")
            );
            assert_eq!(world.asked(), 4);
            world.recovers().await;
        }
    })
    .await;
}

#[tokio::test]
async fn there_is_no_second_try_without_a_second_left() {
    world::each(&CARRIERS, Duration::from_millis(990), async |world| {
        let carrier = world.carrier;
        assert_eq!(
            reason(world.hears(Reply::new(503, "")).await),
            "HTTP status 503",
            "{carrier:?}"
        );
        assert_eq!(world.asked(), 1);
    })
    .await;
}

#[tokio::test]
async fn silence_ends_at_the_deadline() {
    world::each(&CARRIERS, Duration::from_millis(400), async |world| {
        let carrier = world.carrier;
        let began = Instant::now();
        assert_eq!(
            reason(world.hears(Reply::Silence).await),
            "no answer in time",
            "{carrier:?}"
        );
        assert!(began.elapsed() >= Duration::from_millis(400));
        assert!(
            began.elapsed() < Duration::from_secs(2),
            "{carrier:?}: {:?}",
            began.elapsed()
        );
        assert_eq!(world.asked(), 1);
    })
    .await;
}

#[tokio::test]
async fn a_closed_port_is_tried_twice_and_told_without_the_address() {
    for carrier in CARRIERS {
        // Bound for as long as the test runs, and never listened to: nobody else gets the port.
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let port = socket.local_addr().unwrap().port();
        let url = Url::parse(&format!("http://127.0.0.1:{port}/")).unwrap();
        let settings = settings(carrier, &url, adapter_carriers::DEADLINE);
        let carriers =
            adapter_carriers::Carriers::new(&settings, std::sync::Arc::new(Hand::default())).unwrap();
        let why = reason(carriers.look_up(carrier, &number()).await);
        assert!(why.starts_with("no connection: "), "{carrier:?}: {why}");
        assert!(
            !why.contains(number().as_str()) && !why.contains("http://"),
            "{carrier:?}: {why}"
        );
    }
}

#[tokio::test]
async fn a_connection_that_does_not_come_about_is_tried_twice_for_a_second() {
    // A listener that accepts nobody, and whose queue is full.
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
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
    let carriers = adapter_carriers::Carriers::new(&settings, std::sync::Arc::new(Hand::default())).unwrap();
    let began = Instant::now();
    assert_eq!(
        reason(carriers.look_up(Carrier::Inpost, &number()).await),
        "no connection in time"
    );
    assert!(began.elapsed() >= Duration::from_secs(2), "{:?}", began.elapsed());
}

#[tokio::test]
async fn four_at_a_time_are_with_one_carrier() {
    each(async |world| {
        let carrier = world.carrier;
        world.stub.hold();
        let asking = join_all((0..12).map(|_| world.ask()));
        let opening = async {
            until(|| world.asked() == 4).await;
            // A fifth would come at once.
            tokio::time::sleep(Duration::from_millis(50)).await;
            assert_eq!(world.asked(), 4, "{carrier:?}");
            world.stub.open();
        };
        let (found, ()) = tokio::join!(asking, opening);
        assert!(
            found.iter().all(|lookup| matches!(lookup, Lookup::Found(_))),
            "{carrier:?}"
        );
        assert_eq!(
            (world.asked(), world.stub.most_at_a_time()),
            (12, 4),
            "{carrier:?}"
        );
    })
    .await;
}

#[tokio::test]
async fn waiting_for_others_takes_half_of_the_deadline_and_is_not_held_against_the_carrier() {
    let world = World::within(Carrier::Dhl, Duration::from_secs(2)).await;
    world.stub.hold();
    let first = join_all((0..4).map(|_| world.ask()));
    let second = async {
        until(|| world.asked() == 4).await;
        let began = Instant::now();
        let waited = join_all((0..10).map(|_| world.ask())).await;
        let took = began.elapsed();
        world.stub.open();
        (waited, took)
    };
    let (first, (second, took)) = tokio::join!(first, second);
    assert!(first.iter().all(|lookup| matches!(lookup, Lookup::Found(_))));
    assert!(
        second
            .into_iter()
            .all(|lookup| reason(lookup).starts_with("not asked: too many"))
    );
    assert!(
        (Duration::from_secs(1)..Duration::from_secs(2)).contains(&took),
        "{took:?}"
    );
    assert!(matches!(world.ask().await, Lookup::Found(_)));
    assert_eq!(world.asked(), 5);
}
