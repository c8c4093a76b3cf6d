//! Offers, orders, shipments and subscriptions: requests with idempotency keys.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use blackbox::{
    CarrierStub, EVENTS, Integration, Receiver, Says, World, line, number_of, offer_line, order_body,
};
use reqwest::Method;
use serde_json::{Value, json};
use testkit::{Request, ServerOptions};

use crate::rig::{Case, Held, Rig, eventually_or};

/// Time for the feed to catch up.
const FEED: Duration = Duration::from_secs(10);

/// Builds a request to the world's server.
pub(crate) type Call = Box<dyn Fn(&World) -> Request>;

fn call(request: impl Fn(&World) -> Request + 'static) -> Call {
    Box::new(request)
}

/// A request of an integration that has a subscription to every event.
pub(crate) struct Trade<F> {
    own: Integration,
    prepare: F,
    keyed: bool,
}

impl<F: AsyncFn(&World, &Integration) -> Call> Case for Trade<F> {
    type Subject = Call;

    fn is_keyed(&self) -> bool {
        self.keyed
    }

    async fn prepare(&self, world: &World) -> Call {
        (self.prepare)(world, &self.own).await
    }

    fn request(&self, world: &World, call: &Call) -> Request {
        call(world)
    }
}

impl<F: AsyncFn(&World, &Integration) -> Call> Trade<F> {
    /// A request with an idempotency key.
    pub(crate) const fn of(own: Integration, prepare: F) -> Self {
        Self {
            own,
            prepare,
            keyed: true,
        }
    }
}

/// An integration with this number of subscriptions. The first one is to every event.
async fn integration(rig: &Rig, subscriptions: usize) -> Integration {
    let (own, receiver) = (rig.world.integration().await, Receiver::start().await);
    for _ in 0..subscriptions {
        rig.world.hook(&own.token, &receiver).await;
    }
    own
}

pub(crate) async fn case<F>(rig: &Rig, prepare: F) -> Trade<F>
where
    F: AsyncFn(&World, &Integration) -> Call,
{
    Trade::of(integration(rig, 1).await, prepare)
}

fn office(path: String, body: Option<Value>) -> Call {
    Box::new(move |world| {
        let request = world.office(Method::POST, &path);
        match &body {
            Some(body) => request.json(body),
            None => request,
        }
    })
}

pub(crate) async fn changes_an_offer(world: &World, own: &Integration) -> Call {
    let (token, offer) = (own.token.clone(), world.any_offer(&own.seller, json!({})).await);
    Box::new(move |world| world.patching(&token, &offer, &json!({"stock": 3})))
}

pub(crate) async fn orders_one_of_many(world: &World, own: &Integration) -> Call {
    orders_one_of(7, world, own).await
}

pub(crate) async fn orders_the_last(world: &World, own: &Integration) -> Call {
    orders_one_of(1, world, own).await
}

async fn orders_one_of(stock: u32, world: &World, own: &Integration) -> Call {
    let offer = world.any_offer(&own.seller, json!({"stock": stock})).await;
    let order = order_body(&[line(&own.seller, &offer, 1)], json!({}));
    office("/orders".to_owned(), Some(order))
}

pub(crate) async fn pays(world: &World, own: &Integration) -> Call {
    let order = world.any_order(&own.seller).await;
    office(format!("/orders/{}/payment", order.id), None)
}

#[tokio::test]
async fn an_offer_is_changed_once() {
    let mut rig = Rig::new(&[]).await;
    let case = case(&rig, changes_an_offer).await;
    rig.hold(&case).await.unwrap();
}

#[tokio::test]
async fn an_order_is_placed_once_and_takes_its_stock_once() {
    let mut rig = Rig::new(&[]).await;
    let one = case(&rig, orders_one_of_many).await;
    rig.hold(&one).await.unwrap();
    let last = case(&rig, orders_the_last).await;
    rig.hold_against_rivals(&last).await.unwrap();
}

#[tokio::test]
async fn an_order_is_paid_once() {
    let mut rig = Rig::new(&[]).await;
    let case = case(&rig, pays).await;
    rig.hold(&case).await.unwrap();
}

#[tokio::test]
async fn an_order_is_cancelled_once_and_gives_its_stock_back_once() {
    let mut rig = Rig::new(&[]).await;
    let case = case(&rig, async |world, own| {
        let order = world.any_order(&own.seller).await;
        office(format!("/orders/{}/cancellation", order.id), None)
    });
    rig.hold(&case.await).await.unwrap();
}

#[tokio::test]
async fn a_buyer_is_erased_once() {
    let mut rig = Rig::new(&[]).await;
    let case = case(&rig, async |world, own| {
        let order = world.paid_order(&own.trader()).await;
        office(format!("/orders/{}/buyer-erasure", order.id), None)
    });
    rig.hold(&case.await).await.unwrap();
}

/// Options under which the program queries InPost at this address.
pub(crate) fn asks(carrier: &CarrierStub, options: ServerOptions) -> ServerOptions {
    options
        .set("SELLER_API__CARRIERS__INPOST__ENABLED", true)
        .set("SELLER_API__CARRIERS__INPOST__BASE_URL", &carrier.url)
        .set("SELLER_API__TRACKING__POLL_INTERVAL", "100ms")
}

#[tokio::test]
async fn an_order_is_shipped_once() {
    let carrier = CarrierStub::start().await;
    let mut rig = Rig::with(&[], |options| asks(&carrier, options)).await;
    carrier.says("PARCEL", Says::State("adopted_at_source_branch"));
    let case = case(&rig, async |world, own| {
        let (token, order) = (own.token.clone(), world.paid_order(&own.trader()).await);
        let parcel = json!({"carrier": "inpost", "tracking_number": "PARCEL"});
        call(move |world| world.shipping(&token, &order.id, &parcel))
    });
    let case = case.await;
    rig.hold(&case).await.unwrap();
    carrier.says("PARCEL", Says::Silence);
    let killed = rig.hold_when_killed(&case, async || {
        let asked = carrier.asked("PARCEL");
        blackbox::eventually("the question", async || {
            (carrier.asked("PARCEL") > asked).then_some(())
        })
        .await;
        carrier.says("PARCEL", Says::State("adopted_at_source_branch"));
    });
    killed.await.unwrap();
}

#[tokio::test]
async fn a_subscription_is_made_once_and_the_twentieth_is_the_last() {
    let mut rig = Rig::new(&[]).await;
    let prepare = async |world: &World, own: &Integration| {
        let listed = world.get(&own.token, "/v1/webhooks").await.expect(200).json();
        for hook in listed["items"].as_array().unwrap().iter().skip(19) {
            world
                .unsubscribe(&own.token, hook["id"].as_str().unwrap())
                .await
                .expect(204);
        }
        let token = own.token.clone();
        let body = json!({"url": "http://127.0.0.1:9/", "events": EVENTS});
        call(move |world| world.subscribing(&token, &body))
    };
    let case = Trade::of(integration(&rig, 19).await, prepare);
    rig.hold(&case).await.unwrap();
    rig.hold_against_rivals(&case).await.unwrap();
}

#[tokio::test]
async fn a_subscription_ends_once() {
    let mut rig = Rig::new(&[]).await;
    let case = case(&rig, async |world, own| {
        let made = world
            .subscribe_to(&own.token, "http://127.0.0.1:9/", &EVENTS)
            .await
            .expect(201)
            .json();
        let (token, id) = (own.token.clone(), made["id"].as_str().unwrap().to_owned());
        call(move |world| world.unsubscribing(&token, &id))
    });
    rig.hold(&case.await).await.unwrap();
}

/// No idempotency key: importing a line again changes nothing.
#[tokio::test]
async fn a_line_of_an_import_counts_once() {
    let mut rig = Rig::new(&[]).await;
    let prepare = async |world: &World, own: &Integration| {
        let n = number_of(&json!(world.any_offer(&own.seller, json!({})).await));
        let lines = [
            offer_line(n, json!({"stock": 9})),
            offer_line(n + 500_000, json!({})),
        ]
        .join("\n");
        let path = format!("/sellers/{}/offers:import", own.seller.id);
        call(move |world| {
            let request = world
                .office(Method::POST, &path)
                .header("content-type", "application/x-ndjson");
            request.body(lines.clone())
        })
    };
    let case = Trade {
        own: integration(&rig, 1).await,
        prepare,
        keyed: false,
    };
    rig.hold(&case).await.unwrap();
}

/// Reads the feed while a change waits: changes that the reader has not seen come after its cursor.
pub(crate) async fn follows_the_feed(rig: &mut Rig) -> Held {
    let case = case(rig, changes_an_offer).await;
    let other = rig.world.trader().await;
    let offer = rig.world.any_offer(&other.seller, json!({"stock": 0})).await;
    let stock = AtomicUsize::new(1);
    let seen = AtomicUsize::new(0);
    let read = async |world: &World, after: &str| {
        let page = world
            .office_get(&format!("/changes?limit=1000{after}"))
            .await
            .expect(200)
            .json();
        let count = page["items"].as_array().unwrap().len();
        (count, format!("&after={}", page["next"].as_str().unwrap()))
    };
    let meanwhile = async |world: &World| {
        let stock = stock.fetch_add(1, Ordering::Relaxed);
        world
            .patch(&other.token, &offer, &json!({"stock": stock}))
            .await
            .expect(200);
        let (count, next) = read(world, "").await;
        seen.store(count, Ordering::Relaxed);
        next
    };
    let after = async |world: &World, next: String| {
        let there = usize::try_from(
            world
                .count("select count(*) from changes where $1 = ''", "")
                .await,
        )
        .unwrap();
        // The feed also waits for transactions of other tests.
        let seen = seen.load(Ordering::Relaxed);
        let all = eventually_or(FEED, async || seen + read(world, &next).await.0 == there).await;
        all.then_some(())
            .ok_or_else(|| format!("the feed lacks some of {there} changes"))
    };
    rig.hold_meanwhile(&case, meanwhile, after).await
}

#[tokio::test]
async fn whoever_follows_the_feed_misses_nothing() {
    follows_the_feed(&mut Rig::new(&[]).await).await.unwrap();
}
