//! Counts the statements and round trips to PostgreSQL per request, on the wire, so that an additional one is noticed.

use blackbox::{Pair, TRADE_SCOPES, World, line, order_body};
use reqwest::Method;
use serde_json::json;
use testkit::{Request, StatementProxy, TestDatabase};

use crate::PROGRAM;

/// Statements and round trips of one request without concurrent requests.
const SENT: [(&str, usize, usize); 11] = [
    ("GET /v1/me", 1, 1),
    ("GET /v1/offers/{id}", 2, 2),
    ("GET /v1/offers", 2, 2),
    ("GET /v1/orders", 2, 2),
    ("PATCH /v1/offers/{id}, keyed", 3, 3),
    ("PATCH /v1/offers/{id}", 8, 5),
    ("POST /v1/orders/{id}/shipments, keyed", 12, 6),
    ("POST /orders, keyed", 12, 7),
    ("POST /oauth/token, client_credentials", 4, 4),
    ("POST /oauth/token, refresh_token", 4, 4),
    ("POST /oauth/token, authorization_code", 4, 4),
];
/// Repetitions of each request; the minimum counts, since connecting, preparing and background work only add.
const REPEATS: usize = 12;

#[tokio::test]
async fn no_request_sends_more_statements_than_recorded_here() {
    let database = TestDatabase::create().await;
    let proxy = StatementProxy::to(&database, &[]);
    let world = World::over(PROGRAM, TestDatabase::at_url(proxy.url()), |options| {
        options
            .in_one_process()
            .set("SELLER_API__SERVER__WORKERS", "none")
            .set("SELLER_API__OAUTH__TOKEN_LIMIT_PER_IP", 1_000)
    })
    .await;
    let trader = world.trader().await;
    let (seller, token) = (&trader.seller, trader.token.as_str());
    let offer = world.any_offer(seller, json!({"stock": 1_000})).await;
    let mut orders = Vec::new();
    for _ in 0..REPEATS {
        orders.push(world.paid(&[line(seller, &offer, 1)], json!({})).await.id);
    }
    let application = world.application(seller, &TRADE_SCOPES).await;
    let mut member = world.member().await;
    let partner = world.partner(seller, &TRADE_SCOPES).await;
    let mut pair = world.pair(&mut member.browser, &partner, "offers:read").await;
    let asking = world.asking(&partner, "offers:read");
    let mut codes = Vec::new();
    for _ in 0..REPEATS {
        codes.push(world.code(&mut member.browser, &asking).await);
    }

    let get = async |path: &str| drop(world.get(token, path).await.expect(200));
    let parcel = |n: usize| json!({"carrier": "other", "tracking_number": format!("PARCEL{n}")});
    let price = |n: usize| json!({"price": {"amount": 10_000 + n, "currency": "PLN"}});
    let order = order_body(&[line(seller, &offer, 1)], json!({}));
    let keyed = async |request: Request, key: String| request.header("idempotency-key", &key).send().await;
    let sent = [
        fewest(&proxy, async |_| get("/v1/me").await).await,
        fewest(&proxy, async |_| get(&format!("/v1/offers/{offer}")).await).await,
        fewest(&proxy, async |_| get("/v1/offers?limit=10").await).await,
        fewest(&proxy, async |_| get("/v1/orders?limit=10").await).await,
        fewest(&proxy, async |n| {
            let patching = world.patching(token, &offer, &price(n));
            keyed(patching, format!("p{n}")).await.expect(200);
        })
        .await,
        fewest(&proxy, async |n| {
            drop(world.patched(token, &offer, &price(n + REPEATS)).await);
        })
        .await,
        fewest(&proxy, async |n| {
            let shipping = world.shipping(token, &orders[n], &parcel(n));
            keyed(shipping, format!("s{n}")).await.expect(201);
        })
        .await,
        fewest(&proxy, async |n| {
            let placing = world.office(Method::POST, "/orders").json(&order);
            keyed(placing, format!("o{n}")).await.expect(201);
        })
        .await,
        fewest(&proxy, async |_| drop(world.token(&application).await)).await,
        fewest(&proxy, async |_| {
            pair = Pair::of(world.refresh(&partner, &pair.refresh).await);
        })
        .await,
        fewest(&proxy, async |n| {
            drop(world.exchange(&partner, &asking, &codes[n]).await.expect(200));
        })
        .await,
    ];
    let names = SENT.iter().map(|(name, ..)| *name);
    let found = names
        .zip(sent)
        .map(|(name, (statements, round_trips))| (name, statements, round_trips));
    assert_eq!(found.collect::<Vec<_>>(), SENT);
}

/// Sends a request several times and returns the minimum of statements and round trips.
async fn fewest(proxy: &StatementProxy, mut request: impl AsyncFnMut(usize)) -> (usize, usize) {
    let mut fewest = (usize::MAX, usize::MAX);
    for n in 0..REPEATS {
        proxy.record();
        request(n).await;
        let recorded = proxy.recorded();
        // A simple query may have several statements.
        let several = |sql: &str| sql.split(';').filter(|one| one.len() > 1).count();
        let statements = recorded.iter().map(|one| several(&one.sql)).sum();
        fewest = (fewest.0.min(statements), fewest.1.min(proxy.round_trips()));
    }
    fewest
}
