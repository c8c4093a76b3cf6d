//! Exactly one effect, with any number of concurrent requests.

use blackbox::{Expect, Trader, World, at_once, parcel};
use serde_json::json;
use testkit::Answer;

use crate::{crowds::outcomes, unlimited};

async fn shipped_once(world: &World, trader: &Trader, order: &str) {
    assert_eq!(world.told("order.shipped", order).await, 1);
    assert_eq!(world.mails(order).await, 1);
    assert_eq!(world.order(&trader.token, order).await["status"], "shipped");
}

/// Asserts that one of the requests with the same key was executed. The others got its answer, or that it is in progress.
fn one_effect(answers: &[Answer], status: u16) {
    let outcomes = outcomes(answers);
    let known = |(got, code): &(u16, String)| *got == status || code == "idempotency_in_progress";
    assert!(outcomes.keys().all(known), "{outcomes:?}");
    let made: Vec<_> = answers.iter().filter(|answer| answer.status == status).collect();
    let fresh = made
        .iter()
        .filter(|answer| answer.header("idempotent-replayed").is_none());
    assert_eq!(fresh.count(), 1, "{outcomes:?}");
    assert!(made.iter().all(|answer| answer.bytes == made[0].bytes));
}

#[tokio::test(flavor = "multi_thread")]
async fn sixty_shipments_of_one_order_without_keys_or_each_with_its_own() {
    let world = unlimited().await;
    let trader = world.trader().await;
    let expected = [
        ((201, String::new()), 1),
        ((409, "already_shipped".to_owned()), 59),
    ];
    for keyed in [false, true] {
        let order = world.paid_order(&trader).await;
        let ship = |n: usize| {
            let request = world.shipping(&trader.token, &order.id, &parcel("PARCEL-1"));
            if keyed {
                request.header("idempotency-key", &format!("key-{n}"))
            } else {
                request
            }
        };
        assert_eq!(
            outcomes(&at_once((0..60).map(ship)).await),
            expected.clone().into()
        );
        if keyed {
            // The winner's key replays its answer. The other keys are free, and a repeat is rejected again.
            assert_eq!(
                outcomes(&at_once((0..60).map(ship)).await),
                expected.clone().into()
            );
        }
        shipped_once(&world, &trader, &order.id).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn many_requests_with_one_key_have_one_effect() {
    let world = unlimited().await;
    let trader = world.trader().await;
    let order = world.paid_order(&trader).await;
    let ship = || world.shipping(&trader.token, &order.id, &parcel("PARCEL-1"));
    let answers = at_once((0..60).map(|_| ship().header("idempotency-key", "s"))).await;
    one_effect(&answers, 201);
    shipped_once(&world, &trader, &order.id).await;
    let offer = world.any_offer(&trader.seller, json!({})).await;
    let body = json!({"stock": 3, "price": {"amount": 77, "currency": "PLN"}});
    let patch = || {
        let request = world.patching(&trader.token, &offer, &body);
        request.header("idempotency-key", "p")
    };
    one_effect(&at_once((0..20).map(|_| patch())).await, 200);
    for kind in ["offer.price_changed", "offer.stock_changed"] {
        assert_eq!(world.told(kind, &offer).await, 1);
    }
    let again = patch().send().await.expect(200);
    assert_eq!(again.must("idempotent-replayed"), "true");
}
