//! One busy offer or order takes from other sellers neither connections nor time.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use std::slice;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use blackbox::{Expect as _, Trader, World, line, logs_request, once_each, order_body};
use reqwest::Method;
use serde_json::json;
use testkit::{Answer, Pace, Request};
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep, sleep_until};

const PROGRAM: &str = env!("CARGO_BIN_EXE_seller-api-blackbox");

/// Requests of one seller, and the time within which they are sent. A machine that cannot do so many for a
/// hundred offers gets four times as long, and so on.
const REQUESTS: u32 = 2_000;
const WITHIN: Duration = Duration::from_secs(8);
const LONGEST: Duration = Duration::from_secs(128);
/// What a neighbour's request may take beside them, or so many times what it takes while they are for a
/// hundred offers: all of it shares two cores with the program, the proxy and the clients, in a debug build.
const LIMIT: Duration = Duration::from_millis(500);
const TIMES_SPREAD: u32 = 4;

/// Held by the test that runs, since each measures.
static MACHINE: Mutex<()> = Mutex::const_new(());

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

    async fn with_a_hundred_offers(world: &World) -> Vec<Self> {
        let mut shops = vec![Self::open(world).await];
        while shops.len() < 100 {
            let trader = shops[0].trader.clone();
            let offer = world.any_offer(&trader.seller, json!({"stock": 10_000})).await;
            shops.push(Self { trader, offer });
        }
        shops
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

/// What a shop's requests took beside others.
#[derive(Debug)]
struct Beside {
    /// The 99th percentile.
    slowest: Duration,
    /// What the program logged of those that failed.
    failed: Vec<String>,
}

/// Sends a shop's `PATCH`es and orders, one after another.
async fn beside(world: &World, shop: &Shop, with_orders: bool, ends: impl Fn(usize) -> bool) -> Beside {
    let (mut took, mut failed) = (Vec::new(), Vec::new());
    while !ends(took.len()) {
        let n = u32::try_from(took.len()).unwrap();
        let mut requests = vec![shop.patch(world, n)];
        requests.extend(with_orders.then(|| order(world, &[shop])));
        for request in requests {
            let began = Instant::now();
            let answer = request.send().await;
            took.push(began.elapsed());
            assert!(matches!(answer.status, 200 | 201 | 500), "{answer:?}");
            if answer.status == 500 {
                let trace_id = answer.must("x-trace-id");
                let log = world.server.log_with(|log| logs_request(log, trace_id)).await;
                failed.extend(
                    log.lines()
                        .filter(|line| line.contains(trace_id))
                        .map(String::from),
                );
            }
        }
        sleep(Duration::from_millis(10)).await;
    }
    took.sort_unstable();
    let slowest = took[took.len() * 99 / 100];
    Beside { slowest, failed }
}

/// Orders, changes and changes with a key, in turns; a few orders are for an offer of another seller too.
fn request(world: &World, shop: &Shop, in_carts: &Shop, n: u32) -> Request {
    match n % 3 {
        0 if n.is_multiple_of(24) => order(world, &[shop, in_carts]),
        0 => order(world, &[shop]),
        1 => shop.patch(world, n),
        _ => shop
            .patch(world, n)
            .header("idempotency-key", &format!("busy-{n}")),
    }
}

/// Sends the requests for `offers` of a seller. Returns their answers, and what requests of a neighbour take
/// meanwhile, and those of the shop that is in orders too.
async fn send_all(
    world: &Arc<World>,
    offers: &[Shop],
    neighbour: &Shop,
    in_carts: &Shop,
    within: Duration,
) -> (Vec<Answer>, [Beside; 2]) {
    let began = Instant::now();
    let requests: Vec<_> = (0..REQUESTS)
        .zip(offers.iter().cycle())
        .map(|(n, offer)| {
            let (world, offer, in_carts) = (Arc::clone(world), offer.clone(), in_carts.clone());
            tokio::spawn(async move {
                sleep_until(began + within * n / REQUESTS).await;
                request(&world, &offer, &in_carts, n).send().await
            })
        })
        .collect();
    let ended = Arc::new(AtomicBool::new(false));
    let [neighbour, in_carts] = [(neighbour, true), (in_carts, false)].map(|(shop, with_orders)| {
        let (world, shop, ended) = (Arc::clone(world), shop.clone(), Arc::clone(&ended));
        let ends = move |_| ended.load(Ordering::Relaxed);
        tokio::spawn(async move { beside(&world, &shop, with_orders, ends).await })
    });
    let mut answers = Vec::new();
    for request in requests {
        answers.push(request.await.unwrap());
    }
    ended.store(true, Ordering::Relaxed);
    (answers, [neighbour.await.unwrap(), in_carts.await.unwrap()])
}

#[tokio::test(flavor = "multi_thread")]
async fn two_thousand_requests_on_one_offer_harm_no_other() {
    let _alone = MACHINE.lock().await;
    let (world, link) = World::over_a_link(PROGRAM, |options| options).await;
    let world = Arc::new(world);
    let busy = Shop::open(&world).await;
    let neighbour = Shop::open(&world).await;
    let in_carts = Shop::open(&world).await;
    let spread = Shop::with_a_hundred_offers(&world).await;
    link.slow_down(Pace {
        delay: Duration::from_millis(1),
        ..Pace::default()
    });
    let mut within = WITHIN;
    let beside_spread = loop {
        let (_, beside) = send_all(&world, &spread, &neighbour, &in_carts, within).await;
        if within == LONGEST || beside.iter().all(|one| one.failed.is_empty()) {
            break beside;
        }
        within *= 4;
    };
    let busy_offers = slice::from_ref(&busy);
    let (answers, beside_busy) = send_all(&world, busy_offers, &neighbour, &in_carts, within).await;
    let (mut placed, mut changed, mut refused) = (0, 0, Vec::new());
    for (n, answer) in (0..).zip(answers) {
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
    let told = format!(
        "beside a busy offer {beside_busy:?}, beside a hundred {beside_spread:?}; {placed} orders, {changed} changes in {within:?}"
    );
    // Orders for both hold the offer that is in them too, each for a moment.
    for (n, times) in [(0, TIMES_SPREAD), (1, 2 * TIMES_SPREAD)] {
        let (busy, spread) = (&beside_busy[n], &beside_spread[n]);
        assert!(busy.failed.is_empty(), "{told}");
        assert!(
            busy.slowest < (LIMIT * times / TIMES_SPREAD).max(spread.slowest * times),
            "{told}"
        );
    }
    // How many is the machine's speed.
    assert!(placed > 0 && changed > 0, "{told}");
    // Whoever was refused has changed nothing, and may use its key again.
    assert_eq!(
        world.stock(&busy.trader.seller, &busy.offer).await,
        10_000 - placed
    );
    for n in refused.into_iter().filter(|n| n % 3 == 2).take(3) {
        request(&world, &busy, &in_carts, n).send().await.expect(200);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn bursts_for_one_offer_and_one_order_whose_rows_are_locked_harm_no_other() {
    let _alone = MACHINE.lock().await;
    let (world, link) = World::over_a_link(PROGRAM, |options| options).await;
    let (busy, neighbour) = (Shop::open(&world).await, Shop::open(&world).await);
    let spread = Shop::with_a_hundred_offers(&world).await;
    let busy_order = world.ordered(&busy.trader.seller, &[&busy.offer]).await;
    link.slow_down(Pace {
        delay: Duration::from_millis(1),
        ..Pace::default()
    });
    let payment = || world.office(Method::POST, &format!("/orders/{}/payment", busy_order.id));
    let at_once = async |burst: Vec<Request>| {
        let answers = tokio::spawn(once_each(burst));
        let beside = beside(&world, &neighbour, true, |requests| requests >= 60).await;
        (answers, beside)
    };
    let changes = (0..1_200).zip(spread.iter().cycle());
    let (answers, beside_spread) = at_once(changes.map(|(n, shop)| shop.patch(&world, n)).collect()).await;
    answers.await.unwrap();
    let rows = format!(
        "select from offers where id = '{}' for update; select from orders where order_id = '{}' for update",
        busy.offer, busy_order.id
    );
    let locked = world.open_transaction(&rows).await;
    let bursts = (0..600).flat_map(|n| [busy.patch(&world, n), payment()]);
    let (answers, beside_busy) = at_once(bursts.collect()).await;
    locked.end("rollback").await;
    let told = format!("beside locked rows {beside_busy:?}, beside a hundred offers {beside_spread:?}");
    assert!(beside_busy.failed.is_empty(), "{told}");
    assert!(
        beside_busy.slowest < LIMIT.max(beside_spread.slowest * TIMES_SPREAD),
        "{told}"
    );
    let answers = answers.await.unwrap();
    for answer in &answers {
        assert!(
            answer.status == 200 || answer.status == 500 && answer.header("retry-after").is_some(),
            "{answer:?}"
        );
    }
    // The first waits in the database.
    let mut changes = answers.iter().step_by(2);
    let refused = changes.rfind(|answer| answer.status == 500).unwrap();
    let trace_id = refused.must("x-trace-id");
    let log = world.server.log_with(|log| logs_request(log, trace_id)).await;
    let of_it: Vec<_> = log.lines().filter(|line| line.contains(trace_id)).collect();
    assert_eq!(of_it.len(), 1, "the request's own: {of_it:?}");
    assert!(of_it[0].contains("for the same offer"), "{of_it:?}");
    busy.patch(&world, 0).send().await.expect(200);
    payment().send().await.expect(200);
}
