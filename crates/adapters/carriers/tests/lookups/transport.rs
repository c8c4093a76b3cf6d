//! Failures of the connection, and limits, for every carrier.

use std::time::{Duration, Instant};

use adapter_carriers::{Carriers, DEADLINE};
use futures_util::future::join_all;
use orders::{Carrier, CarrierLookup, Lookup};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;

use crate::world::{
    CARRIERS, World, clock, last_response, number, reason, reply, settings, truncated, until,
};
use crate::{fixtures, world};

async fn each(check: impl AsyncFn(&World)) {
    world::each(&CARRIERS, DEADLINE, check).await;
}

#[tokio::test]
async fn unusable_answers_are_failures_without_a_retry() {
    each(async |world| {
        let whole = fixtures::delivered_body(world.carrier);
        let large = format!("{}{whole}", " ".repeat(1024 * 1024));
        let redirect = |status| last_response(status, Some(("location", "/elsewhere")), "");
        for (reply, expected) in [
            (reply(500, ""), "HTTP status 500"),
            (redirect(301), "HTTP status 301"),
            (redirect(302), "HTTP status 302"),
            (redirect(307), "HTTP status 307"),
            (redirect(308), "HTTP status 308"),
            (reply(200, &whole[..whole.len() / 2]), "unreadable answer"),
            (truncated(&whole), "connection broken"),
            (reply(200, large), "the answer is too large"),
        ] {
            let reason = world.fails_with(reply).await;
            assert!(reason.starts_with(expected), "{:?}: {reason}", world.carrier);
            assert_eq!(world.count(), 1, "{:?}: {reason}", world.carrier);
            world.recovers().await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_failing_gateway_is_queried_once_more() {
    each(async |world| {
        for status in [502, 503, 504] {
            world.replies([reply(status, ""), fixtures::delivered(world.carrier)]);
            world.finds().await;
            assert_eq!(world.count(), 2);
            let reason = world.fails_with(reply(status, "")).await;
            assert_eq!(reason, format!("HTTP status {status}"));
            assert_eq!(world.count(), 4);
            world.recovers().await;
        }
    })
    .await;
    let hurried = World::within(Carrier::Dpd, Duration::from_millis(990)).await;
    hurried.fails_with(reply(503, "")).await;
    assert_eq!(hurried.count(), 1, "a retry needs a second of the deadline");
}

#[tokio::test]
async fn a_closed_port_is_a_failure_that_does_not_show_the_address() {
    // Bound but not listening during the test, so that no other process gets the port.
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let url = format!("http://{}/", socket.local_addr().unwrap());
    let carriers = Carriers::new(&settings(Carrier::Dhl, &url, DEADLINE), clock()).unwrap();
    let reason = reason(carriers.look_up(Carrier::Dhl, &number()).await);
    assert!(reason.starts_with("no connection: "), "{reason}");
    assert!(
        !reason.contains(number().as_str()) && !reason.contains("http://"),
        "{reason}"
    );
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
    let settings = settings(Carrier::Inpost, &format!("http://{address}/"), DEADLINE * 8);
    let carriers = Carriers::new(&settings, clock()).unwrap();
    let mut took = Vec::new();
    for _ in 0..3 {
        let began = Instant::now();
        let lookup = carriers.look_up(Carrier::Inpost, &number()).await;
        assert_eq!(reason(lookup), "no connection in time");
        took.push(began.elapsed());
    }
    // A busy machine makes some longer.
    let twice = Duration::from_secs(2)..Duration::from_secs(3);
    assert!(twice.contains(took.iter().min().unwrap()), "{took:?}");
}

#[tokio::test]
async fn a_carrier_gets_four_requests_at_a_time_and_others_wait_for_half_of_the_deadline() {
    world::each(&CARRIERS, Duration::from_secs(8), async |world| {
        world.pause();
        let queued = async {
            until(|| world.count() == 4).await;
            let began = Instant::now();
            let reasons = join_all((0..10).map(|_| world.fails())).await;
            let took = began.elapsed();
            assert_eq!(world.count(), 4, "{:?}", world.carrier);
            world.resume();
            (reasons, took)
        };
        let in_flight = join_all((0..4).map(|_| world.finds()));
        let worker = world.carriers.patient();
        let patient = async {
            until(|| world.count() == 4).await;
            worker.look_up(world.carrier, &number()).await
        };
        let (_, (reasons, took), patient) = tokio::join!(in_flight, queued, patient);
        assert!(matches!(patient, Lookup::Found(_)), "{patient:?}");
        for reason in reasons {
            assert!(reason.starts_with("not asked: too many"), "{reason}");
        }
        let half = Duration::from_secs(4)..Duration::from_secs(8);
        assert!(half.contains(&took), "{took:?}");
        // A full queue is no failure of the carrier.
        join_all((0..12).map(|_| world.finds())).await;
        assert_eq!(world.count(), 17, "{:?}", world.carrier);
    })
    .await;
}

#[tokio::test]
async fn a_silent_carrier_delays_no_other() {
    let (silent, other) = (World::new(Carrier::Inpost).await, World::new(Carrier::Dhl).await);
    silent.pause();
    let [mut both, others] = [&silent, &other].map(|world| settings(world.carrier, &world.url, DEADLINE));
    both.accounts.extend(others.accounts);
    let (carriers, number) = (Carriers::new(&both, clock()).unwrap(), number());
    let of_other = async {
        until(|| silent.count() == 4).await;
        carriers.look_up(other.carrier, &number).await
    };
    let silenced = join_all((0..5).map(|_| carriers.look_up(silent.carrier, &number)));
    tokio::select! {
        lookups = silenced => panic!("{lookups:?}"),
        lookup = of_other => assert!(matches!(lookup, Lookup::Found(_)), "{lookup:?}"),
    }
}
