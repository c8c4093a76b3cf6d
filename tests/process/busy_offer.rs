//! One busy offer takes from other sellers neither connections nor time.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use blackbox::{Trader, World, line, order_body};
use reqwest::Method;
use serde_json::json;
use testkit::{Pace, Request};
use tokio::time::{Instant, sleep, sleep_until};

use crate::PROGRAM;

/// Requests on the busy offer, and the time within which they are sent.
const REQUESTS: u32 = 2_000;
const WITHIN: Duration = Duration::from_secs(8);
/// What a neighbour's request may take, or so many times what it takes alone: all of it shares two cores with the program, the proxy and the
/// clients, in a debug build.
const LIMIT: Duration = Duration::from_millis(500);
const TIMES_ALONE: u32 = 10;

/// A seller with an offer.
#[derive(Clone)]
struct Shop {
    trader: Trader,
    offer: String,
}

impl Shop {
    async fn open(world: &World) -> Self {
        let trader = world.trader().await;
        world.set_limit(&trader.token, 100_000).await;
        let offer = world.any_offer(&trader.seller, json!({"stock": 10_000})).await;
        Self { trader, offer }
    }

    fn patch(&self, world: &World, n: u32) -> Request {
        let price = json!({"price": {"amount": 1_000 + n, "currency": "PLN"}});
        world.patching(&self.trader.token, &self.offer, &price)
    }
}

/// An order for one of each offer.
fn order(world: &World, shops: &[&Shop]) -> Request {
    let lines: Vec<_> = shops
        .iter()
        .map(|shop| line(&shop.trader.seller, &shop.offer, 1))
        .collect();
    world
        .office(Method::POST, "/orders")
        .json(&order_body(&lines, json!({})))
}

/// Sends a shop's `PATCH`es and orders, one after another, and returns the 99th percentile of their durations.
async fn slowest(world: &World, shop: &Shop, with_orders: bool, ends: impl Fn(usize) -> bool) -> Duration {
    let mut took = Vec::new();
    while !ends(took.len()) {
        let n = u32::try_from(took.len()).unwrap();
        let mut requests = vec![shop.patch(world, n)];
        requests.extend(with_orders.then(|| order(world, &[shop])));
        for request in requests {
            let began = Instant::now();
            let answer = request.send().await;
            took.push(began.elapsed());
            assert!(matches!(answer.status, 200 | 201), "{answer:?}");
        }
        sleep(Duration::from_millis(10)).await;
    }
    took.sort_unstable();
    took[took.len() * 99 / 100]
}

/// Orders, changes and changes with a key, in turns; a few orders are for an offer of another seller too.
fn busy_request(world: &World, busy: &Shop, in_carts: &Shop, n: u32) -> Request {
    match n % 3 {
        0 if n.is_multiple_of(24) => order(world, &[busy, in_carts]),
        0 => order(world, &[busy]),
        1 => busy.patch(world, n),
        _ => busy
            .patch(world, n)
            .header("idempotency-key", &format!("busy-{n}")),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_thousand_requests_on_one_offer_harm_no_other() {
    let (world, link) = World::over_a_link(PROGRAM, |options| options).await;
    let world = Arc::new(world);
    let (busy, neighbour, in_carts) = (
        Shop::open(&world).await,
        Shop::open(&world).await,
        Shop::open(&world).await,
    );
    link.slow_down(Pace {
        delay: Duration::from_millis(1),
        ..Pace::default()
    });
    let alone = slowest(&world, &neighbour, true, |sent| sent >= 100).await;

    let began = Instant::now();
    let requests = (0..REQUESTS).map(|n| {
        let (world, busy, in_carts) = (Arc::clone(&world), busy.clone(), in_carts.clone());
        tokio::spawn(async move {
            sleep_until(began + WITHIN * n / REQUESTS).await;
            busy_request(&world, &busy, &in_carts, n).send().await
        })
    });
    let requests: Vec<_> = requests.collect();
    let ended = Arc::new(AtomicBool::new(false));
    // Orders for both hold the offer that is in them too, each for a moment.
    let limit = LIMIT.max(alone * TIMES_ALONE);
    let beside =
        [(neighbour, true, limit), (in_carts.clone(), false, limit * 2)].map(|(shop, with_orders, limit)| {
            let (world, ended) = (Arc::clone(&world), Arc::clone(&ended));
            let asking = async move {
                let ends = |_| ended.load(Ordering::Relaxed);
                (slowest(&world, &shop, with_orders, ends).await, limit)
            };
            tokio::spawn(asking)
        });
    let (mut placed, mut changed, mut refused) = (0, 0, Vec::new());
    for (n, request) in (0..).zip(requests) {
        let answer = request.await.unwrap();
        match answer.status {
            201 => placed += 1,
            200 => changed += 1,
            _ => {
                assert_eq!((answer.status, answer.code().as_str()), (500, "internal_error"));
                assert!(answer.header("retry-after").is_some());
                refused.push(n);
            }
        }
    }
    ended.store(true, Ordering::Relaxed);
    for neighbour in beside {
        let (slowest, limit) = neighbour.await.unwrap();
        assert!(
            slowest < limit,
            "{slowest:?}; {alone:?} without the busy offer; {placed} orders, {changed} changes"
        );
    }
    // Whoever was refused has changed nothing, and may use its key again.
    assert_eq!(
        world.stock(&busy.trader.seller, &busy.offer).await,
        10_000 - placed
    );
    assert!(placed > 10 && changed > 20, "{placed} orders, {changed} changes");
    for n in refused.into_iter().filter(|n| n % 3 == 2).take(3) {
        busy_request(&world, &busy, &in_carts, n).send().await.expect(200);
    }
}
