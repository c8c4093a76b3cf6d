//! How workers start, are monitored and stop.

use std::time::{Duration, Instant};

use blackbox::{CarrierStub, World, events, eventually, inpost_at, parcel, until};
use testkit::{Client, ServerOptions, TestDatabase, TestWorker};
use tokio::{net::TcpListener, time::timeout};

use crate::{PROGRAM, run_over, set, stop, take_server, world_with};

#[tokio::test]
async fn a_worker_waits_for_the_schema() {
    let database = TestDatabase::empty().await;
    let (worker, url) = TestWorker::listening(&ServerOptions::new(PROGRAM), &database).await;
    let status = async |path: &str| {
        let answer = Client::new().get(&format!("{url}{path}")).send().await;
        assert!(answer.header("x-trace-id").is_some());
        answer.status
    };
    assert_eq!((status("/healthz").await, status("/readyz").await), (200, 503));
    run_over(database.url(), "migrate").await.success();
    until("readiness", async || status("/readyz").await == 200).await;
    assert_eq!((status("/metrics").await, status("/v1/me").await), (200, 404));
    worker.terminate();
    assert_eq!(worker.exit_code().await, Some(0));
}

#[tokio::test]
async fn audit_entries_and_closed_sellers_are_kept_as_long_as_configured() {
    let world = World::start(PROGRAM).await;
    let (recent, old) = (world.seller().await, world.seller().await);
    for seller in [&recent, &old] {
        world.close(&seller.id).await;
    }
    let age = format!(
        "update sellers set closed_at = api_now() - interval '3 days' where id = '{0}';
         update audit_log set at = api_now() - interval '3 days' where subject = '{0}'",
        old.id
    );
    world.execute(&age).await;
    let settings = [("RETENTION__CLOSED_SELLERS", "2d"), ("RETENTION__AUDIT", "2d")];
    let _worker = TestWorker::start(&set(ServerOptions::new(PROGRAM), &settings), &world.database);
    for count in [
        "select count(*) from audit_log where action = 'seller.closed' and subject = $1",
        "select count(*) from sellers where email not like '%@erased.invalid' and id::text = $1",
    ] {
        world
            .until_count("the old one is cleared", count, &[&old.id], 0)
            .await;
        world
            .until_count("the recent one is kept", count, &[&recent.id], 1)
            .await;
    }
}

/// A statement that always times out while the database is well is no outage: the log names the step, and the
/// other steps go on.
#[tokio::test]
async fn steps_that_fail_are_in_the_log_and_stop_no_other() {
    let world = World::start(PROGRAM).await;
    let _held = world
        .open_transaction("lock table links, parcels in access exclusive mode")
        .await;
    let old = "insert into changes (seller_id, at, kind, offer_id, stock) \
        select gen_random_uuid(), api_now() - interval '31 days', 'offer.stock_changed', gen_random_uuid(), 1";
    world.execute(old).await;
    let worker = TestWorker::start(&ServerOptions::new(PROGRAM), &world.database);
    for what in ["Links", "dhl", "the queues cannot be measured"] {
        let warnings = eventually("the warning", async || {
            let mut warnings = events(&worker.log());
            warnings.retain(|event| {
                let fields = &event["fields"];
                event["level"] == "WARN" && (fields["step"] == what || fields["message"] == what)
            });
            (!warnings.is_empty()).then_some(warnings)
        })
        .await;
        let cause = warnings[0]["fields"]["cause"].as_str().unwrap();
        let is_late = ["statement timeout", "no answer within"]
            .iter()
            .any(|text| cause.contains(text));
        assert!(warnings.len() == 1 && is_late, "{warnings:?}");
    }
    let left = "select count(*) from changes where at < api_now() - interval '30 days'";
    world.until_count("the deletion of others", left, &[], 0).await;
}

#[tokio::test]
async fn a_mail_server_that_never_answers_holds_up_neither_requests_nor_the_end_for_long() {
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = silent.local_addr().unwrap().port().to_string();
    let settings = [
        ("MAIL__HOST", "127.0.0.1"),
        ("MAIL__PORT", &port),
        ("MAIL__SECURITY", "plain"),
        ("MAIL__SENDER_NAME", "Shop"),
        ("MAIL__SENDER_ADDRESS", "shop@shop.example"),
        ("SERVER__SHUTDOWN_TIMEOUT", "2s"),
    ];
    let mut world = world_with(&settings).await;
    let trader = world.trader().await;
    let ship = async |world: &World| {
        let order = world.paid_order(&trader).await;
        world.shipped(&trader.token, &order.id, &parcel("1234")).await;
    };
    ship(&world).await;
    let asked = timeout(Duration::from_secs(20), silent.accept()).await;
    let (_held, _) = asked.unwrap().unwrap();
    ship(&world).await;
    let server = take_server(&mut world).await;
    let began = Instant::now();
    stop(server).await;
    let took = began.elapsed().as_millis();
    // The attempt goes on for half of the time.
    assert!((900..8_000).contains(&took), "{took} ms");
}

/// A thousand parcels of each of two carriers, of which one takes fifteen times as long for an answer.
#[tokio::test]
async fn a_slow_carrier_holds_up_no_other() {
    const QUICK: usize = 60;
    let (slow, quick) = (CarrierStub::start().await, CarrierStub::start().await);
    let settings = [
        ("CARRIERS__DHL__API_KEY", "a-key"),
        ("CARRIERS__DHL__BASE_URL", &quick.url),
        ("CARRIERS__DHL__DAILY_LIMIT", "1000000000"),
        ("TRACKING__POLL_INTERVAL", "1s"),
    ];
    let world = World::with(PROGRAM, |options| set(inpost_at(options, &slow.url), &settings)).await;
    let trader = world.trader().await;
    let order = world.paid_order(&trader).await;
    let shipped = world.ship(&trader.token, &order.id, &parcel("FIRST")).await;
    shipped.expect(201);
    slow.takes(Duration::from_millis(1_500));
    quick.takes(Duration::from_millis(100));
    let fill = "with copies as (insert into seller_orders
            select (jsonb_populate_record(o, jsonb_build_object('order_id', gen_random_uuid(), 'number', 'COPY-' || n,
                'carrier', (array['inpost', 'dhl'])[1 + n % 2], 'tracking_number', 'COPY-' || n))).*
            from seller_orders o, generate_series(1, 2000) n returning *)
        insert into parcels (seller_id, order_id, shipped_at, due_at, carrier, tracking_number)
        select seller_id, order_id, shipped_at, api_now(), carrier, tracking_number from copies";
    world.execute(fill).await;
    let before = slow.look_ups();
    until(
        "three look-ups of the slow one, as many as it gets at a time",
        async || slow.look_ups() >= before + 3,
    )
    .await;
    let (of_slow, of_quick) = (slow.look_ups(), quick.look_ups());
    until("the look-ups of the quick one", async || {
        quick.look_ups() >= of_quick + QUICK
    })
    .await;
    // With three look-ups at a time, thirty of the quick one take as long as two of the slow one.
    let asked = slow.look_ups() - of_slow;
    assert!(asked < QUICK / 2, "{asked} of the slow one meanwhile");
}
