//! Offers, orders, shipments and subscriptions: requests with idempotency keys.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use blackbox::{
    CarrierStub, EVENTS, Integration, Receiver, StubAnswer, World, inpost_at, items, line, number_of,
    offer_line, order_body, parcel, text, until,
};
use reqwest::Method;
use serde_json::{Value, json};
use testkit::{Layout, Request, ServerOptions, TestDatabase};

use crate::rig::{Case, Rig, Verdict, eventually_or};

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

    /// The request without an idempotency key. A change of an offer then has a transaction of several
    /// statements.
    pub(crate) fn unkeyed(self) -> Self {
        Self { keyed: false, ..self }
    }
}

/// An integration with this number of subscriptions to every event.
async fn integration(rig: &Rig, subscriptions: usize) -> Integration {
    let (own, receiver) = (rig.world.integration().await, Receiver::start().await);
    for _ in 0..subscriptions {
        rig.world.hook(&own.token, &receiver).await;
    }
    own
}

/// The id of its oldest subscription.
async fn hook_of(world: &World, own: &Integration) -> String {
    text(&items(&world.read(&own.token, "/v1/webhooks").await)[0], "id")
}

async fn case<F>(rig: &Rig, prepare: F) -> Trade<F>
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

async fn changes_an_offer(world: &World, own: &Integration) -> Call {
    let (token, offer) = (own.token.clone(), world.any_offer(&own.seller, json!({})).await);
    Box::new(move |world| world.patching(&token, &offer, &json!({"stock": 3})))
}

async fn orders_one_of_many(world: &World, own: &Integration) -> Call {
    orders_one_of(7, world, own).await
}

async fn orders_the_last(world: &World, own: &Integration) -> Call {
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

/// Options under which the program queries InPost at this address.
pub(crate) fn asks(carrier: &CarrierStub, options: ServerOptions) -> ServerOptions {
    inpost_at(options, &carrier.url).set("SELLER_API__TRACKING__POLL_INTERVAL", "100ms")
}

/// Two rigs at once. The cases of a rig share its servers and database, since starts of programs take most of
/// the time.
#[tokio::test]
async fn an_order_takes_each_step_once() {
    tokio::join!(placed_paid_and_cancelled(), erased_and_shipped());
}

async fn placed_paid_and_cancelled() {
    let mut rig = Rig::new().await;
    let own = integration(&rig, 1).await;
    let placed = Trade::of(own.clone(), orders_one_of_many);
    rig.check(&placed).await.expect("an order is placed");
    let last = Trade::of(own.clone(), orders_the_last);
    rig.check_against_rivals(&last)
        .await
        .expect("the last piece is sold");
    let paid = Trade::of(own.clone(), pays);
    rig.check(&paid).await.expect("an order is paid");
    let cancelled = Trade::of(own, async |world: &World, own: &Integration| {
        let order = world.any_order(&own.seller).await;
        office(format!("/orders/{}/cancellation", order.id), None)
    });
    rig.check(&cancelled).await.expect("an order is cancelled");
}

async fn erased_and_shipped() {
    let carrier = CarrierStub::start().await;
    let mut rig = Rig::with(None, |options| asks(&carrier, options)).await;
    let own = integration(&rig, 1).await;
    let erased = Trade::of(own.clone(), async |world: &World, own: &Integration| {
        let order = world.paid_order(&own.trader()).await;
        office(format!("/orders/{}/buyer-erasure", order.id), None)
    });
    rig.check(&erased).await.expect("a buyer is erased");

    let adopted = || carrier.answers("PARCEL", StubAnswer::State("adopted_at_source_branch"));
    adopted();
    let shipped = Trade::of(own.clone(), async |world: &World, own: &Integration| {
        let (token, order) = (own.token.clone(), world.paid_order(&own.trader()).await);
        let parcel = json!({"carrier": "inpost", "tracking_number": "PARCEL"});
        call(move |world| world.shipping(&token, &order.id, &parcel))
    });
    rig.check(&shipped).await.expect("an order is shipped");
    carrier.answers("PARCEL", StubAnswer::Silence);
    let killed = rig.check_killed(&shipped, async || {
        let before = carrier.look_ups_of("PARCEL");
        until("the look-up", async || carrier.look_ups_of("PARCEL") > before).await;
        adopted();
    });
    killed.await.expect("the process is killed during the look-up");

    // No carrier is asked about these parcels.
    let corrected = Trade::of(own, async |world: &World, own: &Integration| {
        let order = world.paid_order(&own.trader()).await;
        let made = world.shipped(&own.token, &order.id, &parcel("AAAA1")).await;
        let (token, shipment) = (own.token.clone(), text(&made, "id"));
        let change = json!({"carrier": "gls", "tracking_number": "BBBB2"});
        call(move |world| world.correcting(&token, &order.id, &shipment, &change))
    });
    rig.check(&corrected).await.expect("a shipment is corrected");
}

#[tokio::test]
async fn an_offer_and_a_subscription_are_changed_once() {
    let mut rig = Rig::new().await;
    let own = integration(&rig, 1).await;
    let changed = Trade::of(own.clone(), changes_an_offer);
    rig.check(&changed).await.expect("an offer is changed");
    // Citus has no batches.
    if TestDatabase::layout() == Layout::Single {
        let batched = rig.check_batch(&changed).await;
        batched.expect("several offers are changed together");
    }
    let batch = Trade::of(own.clone(), async |world: &World, own: &Integration| {
        let sold = world.any_offer(&own.seller, json!({"stock": 5})).await;
        let priced = world.any_offer(&own.seller, json!({})).await;
        let items = json!({"items": [
            {"id": sold, "stock_adjustment": -1},
            {"id": priced, "price": {"amount": 4_900, "currency": "PLN"}},
            {"id": "none", "stock": 1},
        ]});
        let token = own.token.clone();
        call(move |world| world.at("POST", "/v1/offers/batch").bearer(&token).json(&items))
    });
    rig.check(&batch).await.expect("a batch of offers is changed");
    // No idempotency key: importing a line again changes nothing.
    let imported = Trade::of(own.clone(), async |world: &World, own: &Integration| {
        let n = number_of(&json!(world.any_offer(&own.seller, json!({})).await));
        let known = offer_line(n, json!({"stock": 9}));
        let new = offer_line(n + 500_000, json!({}));
        let lines = format!("{known}\n{new}");
        let path = format!("/sellers/{}/offers:import", own.seller.id);
        call(move |world| {
            let request = world.office(Method::POST, &path);
            request
                .header("content-type", "application/x-ndjson")
                .body(lines.clone())
        })
    })
    .unkeyed();
    rig.check(&imported).await.expect("two lines are imported");
    let moved = Trade::of(own.clone(), async |world: &World, own: &Integration| {
        let (token, hook) = (own.token.clone(), hook_of(world, own).await);
        let new = world.any_offer(&own.seller, json!({})).await;
        let change = json!({"url": format!("http://127.0.0.1:9/{new}")});
        call(move |world| world.changing(&token, &hook, &change))
    });
    rig.check(&moved).await.expect("a subscription is changed");
    // Every secret is another, so that a second rotation would be seen in the answers.
    let rotated = Trade::of(own.clone(), async |world: &World, own: &Integration| {
        let (token, hook) = (own.token.clone(), hook_of(world, own).await);
        let path = format!("/v1/webhooks/{hook}/secret-rotation");
        call(move |world| world.at("POST", &path).bearer(&token))
    });
    rig.check(&rotated).await.expect("a secret is rotated");
    let repeated = Trade::of(own.clone(), async |world: &World, _: &Integration| {
        let (own, _receiver, hook) = world.subscribed().await;
        let made = world.testing(&own.token, &hook.id).send().await.expect(201);
        let (token, id) = (own.token, text(&made.json(), "id"));
        // As its worker would.
        let deliver =
            "attempt = 1, due_at = null, delivered_at = api_now(), duration_ms = 1, response_status = 200";
        world
            .execute(&format!("update deliveries set {deliver} where id = '{id}'"))
            .await;
        call(move |world| world.redelivering(&token, &hook.id, &id))
    });
    rig.check(&repeated).await.expect("a delivery is made again");
    let ended = Trade::of(own, async |world: &World, own: &Integration| {
        let made = world
            .subscription(&own.token, "http://127.0.0.1:9/", &EVENTS)
            .await;
        let (token, id) = (own.token.clone(), text(&made, "id"));
        call(move |world| world.unsubscribing(&token, &id))
    });
    rig.check(&ended).await.expect("a subscription is deleted");
    // The twentieth is the last.
    let created = Trade::of(
        integration(&rig, 19).await,
        async |world: &World, own: &Integration| {
            let listed = world.read(&own.token, "/v1/webhooks").await;
            for hook in items(&listed).iter().skip(19) {
                world.unsubscribe(&own.token, &text(hook, "id")).await.expect(204);
            }
            let token = own.token.clone();
            let body = json!({"url": "http://127.0.0.1:9/", "events": EVENTS});
            call(move |world| world.subscribing(&token, &body))
        },
    );
    rig.check(&created).await.expect("a subscription is created");
    rig.check_against_rivals(&created)
        .await
        .expect("the last subscription is created");
    follow_the_feed(&mut rig, Duration::from_mins(2))
        .await
        .expect("a reader of the feed misses nothing");
}

/// Reads the feed while a change waits: changes that the reader has not seen come after its cursor.
///
/// The feed also waits for transactions of other tests, whose workers may be paused: `limit` is for the whole
/// wait.
async fn follow_the_feed(rig: &mut Rig, limit: Duration) -> Verdict {
    let case = case(rig, changes_an_offer).await.unkeyed();
    let other = rig.world.trader().await;
    let offer = rig.world.any_offer(&other.seller, json!({"stock": 0})).await;
    let stock = AtomicUsize::new(1);
    let read = async |rig: &Rig, after: &str| {
        let page = rig
            .world
            .office_read(&format!("/changes?limit=1000{after}"))
            .await;
        (items(&page).len(), format!("&after={}", text(&page, "next")))
    };
    let meanwhile = async |rig: &Rig| {
        let stock = json!({"stock": stock.fetch_add(1, Ordering::Relaxed)});
        rig.world.patch(&other.token, &offer, &stock).await.expect(200);
        let mut seen = (0, String::new());
        loop {
            let (count, next) = read(rig, &seen.1).await;
            if count == 0 {
                return seen;
            }
            seen = (seen.0 + count, next);
        }
    };
    let after = async |rig: &Rig, (seen, next): (usize, String)| {
        let all = usize::try_from(rig.count("select count(*) from changes").await).unwrap();
        let complete = eventually_or(limit, async || seen + read(rig, &next).await.0 == all).await;
        complete
            .then_some(())
            .ok_or_else(|| format!("the feed lacks some of {all} changes"))
    };
    rig.check_meanwhile(&case, meanwhile, after).await
}
