//! Exactly once, however many ask at a time.

use std::{collections::BTreeMap, sync::Arc};

use blackbox::{Expect, Trader, World, eventually, parcel};
use serde_json::json;
use testkit::{Answer, Request};

use crate::PROGRAM;

/// A world without a limit of requests.
pub(crate) async fn world() -> Arc<World> {
    let unlimited =
        |options: testkit::ServerOptions| options.set("SELLER_API__RATE_LIMIT__DEFAULT", 1_000_000);
    Arc::new(World::with(PROGRAM, unlimited).await)
}

/// Sends all at a time.
pub(crate) async fn all(requests: impl IntoIterator<Item = Request>) -> Vec<Answer> {
    let running: Vec<_> = requests
        .into_iter()
        .map(|request| tokio::spawn(request.send()))
        .collect();
    let mut answers = Vec::new();
    for answer in running {
        answers.push(answer.await.unwrap());
    }
    answers
}

/// How often which status and code came.
pub(crate) fn outcomes(answers: &[Answer]) -> BTreeMap<(u16, String), usize> {
    let mut outcomes = BTreeMap::new();
    for answer in answers {
        let code = answer
            .errors()
            .first()
            .map(|(code, _)| code.clone())
            .unwrap_or_default();
        *outcomes.entry((answer.status, code)).or_default() += 1;
    }
    outcomes
}

async fn shipped_once(world: &World, trader: &Trader, order: &str) {
    eventually("the feed", async || {
        (world.told("order.shipped", order).await > 0).then_some(())
    })
    .await;
    assert_eq!(world.told("order.shipped", order).await, 1);
    assert_eq!(world.mails(order).await, 1);
    assert_eq!(world.order(&trader.token, order).await["status"], "shipped");
}

#[tokio::test(flavor = "multi_thread")]
async fn sixty_shipments_of_one_order_without_keys() {
    let world = world().await;
    let trader = world.trader().await;
    let order = world.paid_order(&trader).await;
    let answers =
        all((0..60).map(|n| world.shipping(&trader.token, &order.id, &parcel(&format!("PARCEL-{n}"))))).await;
    let expected = [
        ((201, String::new()), 1),
        ((409, "already_shipped".to_owned()), 59),
    ];
    assert_eq!(outcomes(&answers), expected.into());
    shipped_once(&world, &trader, &order.id).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sixty_shipments_of_one_order_with_one_key() {
    let world = world().await;
    let trader = world.trader().await;
    let order = world.paid_order(&trader).await;
    let ship = || {
        world
            .shipping(&trader.token, &order.id, &parcel("PARCEL-1"))
            .header("idempotency-key", "k")
    };
    let answers = all((0..60).map(|_| ship())).await;
    let outcomes = outcomes(&answers);
    let known = |(status, code): &(u16, String)| *status == 201 || code == "idempotency_in_progress";
    assert!(outcomes.keys().all(known), "{outcomes:?}");
    let made: Vec<_> = answers.iter().filter(|answer| answer.status == 201).collect();
    assert_eq!(
        made.iter()
            .filter(|answer| answer.header("idempotent-replayed").is_none())
            .count(),
        1,
        "{outcomes:?}"
    );
    assert!(made.iter().all(|answer| answer.bytes == made[0].bytes));
    shipped_once(&world, &trader, &order.id).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sixty_shipments_of_one_order_each_with_a_key_of_its_own() {
    let world = world().await;
    let trader = world.trader().await;
    let order = world.paid_order(&trader).await;
    let ship = |n: usize| {
        let request = world.shipping(&trader.token, &order.id, &parcel("PARCEL-1"));
        request.header("idempotency-key", &format!("key-{n}"))
    };
    let first = all((0..60).map(ship)).await;
    let expected: BTreeMap<_, _> = [
        ((201, String::new()), 1),
        ((409, "already_shipped".to_owned()), 59),
    ]
    .into();
    assert_eq!(outcomes(&first), expected);
    let again = all((0..60).map(ship)).await;
    assert_eq!(
        outcomes(&again),
        expected,
        "the winner's key replays, the others are free and refused again"
    );
    shipped_once(&world, &trader, &order.id).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn twenty_patches_with_one_key_have_one_effect() {
    let world = world().await;
    let trader = world.trader().await;
    let offer = world.any_offer(&trader.seller, json!({})).await;
    let body = json!({"stock": 3, "price": {"amount": 77, "currency": "PLN"}});
    let patch = || {
        world
            .patching(&trader.token, &offer, &body)
            .header("idempotency-key", "k")
    };
    let answers = all((0..20).map(|_| patch())).await;
    let known = |(status, code): &(u16, String)| *status == 200 || code == "idempotency_in_progress";
    assert!(outcomes(&answers).keys().all(known), "{:?}", outcomes(&answers));
    let fresh = answers
        .iter()
        .filter(|answer| answer.status == 200 && answer.header("idempotent-replayed").is_none());
    assert_eq!(fresh.count(), 1);
    eventually("the feed", async || {
        (world.told("offer.price_changed", &offer).await > 0).then_some(())
    })
    .await;
    assert_eq!(
        [
            world.told("offer.price_changed", &offer).await,
            world.told("offer.stock_changed", &offer).await
        ],
        [1, 1]
    );
    assert_eq!(
        patch().send().await.expect(200).must("idempotent-replayed"),
        "true"
    );
}
