//! Exactly one effect, with any number of concurrent requests.

use blackbox::{Expect, Trader, World, at_once, keyed, parcel};
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
    let fresh = made.iter().filter(|answer| !answer.is_replayed());
    assert_eq!(fresh.count(), 1, "{outcomes:?}");
    assert!(made.iter().all(|answer| answer.bytes == made[0].bytes));
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_sixty_shipments_of_an_order_succeeds_without_keys_or_with_different_ones() {
    let world = unlimited().await;
    let trader = world.trader().await;
    let expected = [
        ((201, String::new()), 1),
        ((409, "already_shipped".to_owned()), 59),
    ];
    // The winner's key replays its answer. The other keys are free, and a repeat is rejected again.
    for rounds in [1, 2] {
        let order = world.paid_order(&trader).await;
        let ship = |n: usize| {
            let request = world.shipping(&trader.token, &order.id, &parcel("PARCEL-1"));
            if rounds == 1 {
                request
            } else {
                keyed(request, &format!("key-{n}"))
            }
        };
        for _ in 0..rounds {
            let answers = at_once((0..60).map(ship)).await;
            assert_eq!(outcomes(&answers), expected.clone().into());
        }
        shipped_once(&world, &trader, &order.id).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn many_requests_with_one_key_have_one_effect() {
    let world = unlimited().await;
    let trader = world.trader().await;
    let order = world.paid_order(&trader).await;
    let ship = || keyed(world.shipping(&trader.token, &order.id, &parcel("PARCEL-1")), "s");
    one_effect(&at_once((0..60).map(|_| ship())).await, 201);
    shipped_once(&world, &trader, &order.id).await;
    let offer = world.any_offer(&trader.seller, json!({})).await;
    let body = json!({"stock": 3, "price": {"amount": 77, "currency": "PLN"}});
    let patch = || keyed(world.patching(&trader.token, &offer, &body), "p");
    one_effect(&at_once((0..20).map(|_| patch())).await, 200);
    for kind in ["offer.price_changed", "offer.stock_changed"] {
        assert_eq!(world.told(kind, &offer).await, 1);
    }
    assert!(patch().send().await.expect(200).is_replayed());
}
