//! Deliveries: one for each event and each living subscription to it, written with the event, and lanes that wake.

use std::time::Duration;

use kernel::{Change, SellerId};
use orders::{Carrier, Cause, OrderRef, Sighting, TrackingStatus};
use serde_json::{Value, json};
use tokio_postgres::{Client, Row, Transaction};
use usecases::{Work, settle_order::Settlement, transact};
use uuid::Uuid;

use crate::support::{
    Fixture, Place, Settle, answer, claim, id, instant, number, paid, part, request, shipment,
};

/// An application in a status, deleted or not.
async fn application(client: &Client, owner: SellerId, status: &str, deleted: bool) -> Uuid {
    let client_id = id();
    let insert = "insert into applications (client_id, owner_id, name, documentation_url, purpose, client_type, redirect_uris, \
        scopes, status, built_in, created_at, updated_at, deleted_at) values ($1, $2, $3, 'https://d', 'own_use', 'public', '{}', \
        1, $4, false, api_now(), api_now(), case when $5 then api_now() end)";
    let name = format!("App {}", number());
    client
        .execute(insert, &[&client_id, &owner.uuid(), &name, &status, &deleted])
        .await
        .unwrap();
    client_id
}

async fn subscribe(
    client: &Client,
    seller: SellerId,
    application: Uuid,
    events: &[&str],
    active: bool,
) -> Uuid {
    let subscription = id();
    let insert = "insert into subscriptions (seller_id, id, client_id, created_at, active, url, events, secret) \
        values ($1, $2, $3, api_now(), $4, 'https://r.example/', $5, 'sealed')";
    let values: [&(dyn tokio_postgres::types::ToSql + Sync); 5] =
        [&seller.uuid(), &subscription, &application, &active, &events];
    client.execute(insert, &values).await.unwrap();
    subscription
}

async fn deliveries(client: &Client) -> Vec<Row> {
    client.query("select subscription_id, event, id, body, attempt, due_at <= api_now() as due, created_at, due_at = created_at as now \
        from deliveries order by id", &[]).await.unwrap()
}

#[tokio::test]
async fn each_living_subscription_to_an_event_gets_one_delivery() {
    let fixture = Fixture::new().await;
    let (seller, other) = (fixture.seller().await, fixture.seller().await);
    let client = fixture.place.connect().await;
    let app = async |status, deleted| application(&client, seller, status, deleted).await;
    let (active, pending) = (app("active", false).await, app("pending", false).await);
    let (suspended, deleted) = (app("suspended", false).await, app("active", true).await);
    let both = ["order.created", "order.paid"];
    let one = subscribe(&client, seller, active, &both, true).await;
    let two = subscribe(&client, seller, pending, &["order.created"], true).await;
    for (owner, app, events, is_active) in [
        (seller, active, &["order.shipped"][..], true),
        (seller, active, &both[..], false),
        (seller, suspended, &both[..], true),
        (seller, deleted, &both[..], true),
        (other, active, &both[..], true),
    ] {
        subscribe(&client, owner, app, events, is_active).await;
    }
    let offer = fixture.offer(seller, 5).await;
    let order = fixture.place(&[(seller, offer)]).await;
    let rows = deliveries(&client).await;
    let told = rows
        .iter()
        .map(|row| (row.get(0), row.get(1)))
        .collect::<Vec<(Uuid, String)>>();
    let created = "order.created".to_owned();
    let mut expected = [(one, created.clone()), (two, created)];
    expected.sort();
    let mut sorted = told.clone();
    sorted.sort();
    assert_eq!(sorted, expected);
    let part = fixture
        .database
        .order_reader()
        .order(seller, &order)
        .await
        .unwrap()
        .unwrap();
    for row in &rows {
        let delivery: Uuid = row.get("id");
        assert_eq!(delivery.get_version_num(), 7);
        let expected = json!({"id": delivery.to_string(), "event": "order.created",
            "occurred_at": part.placed_at.to_rfc3339_opts(chrono::SecondsFormat::Micros, true),
            "data": {"order_id": part.id.to_string(), "order_number": part.number.as_str()}});
        assert_eq!(
            serde_json::from_slice::<Value>(row.get("body")).unwrap(),
            expected
        );
        assert!(
            row.get::<_, &[u8]>("body")
                .starts_with(format!("{{\"id\":\"{delivery}\",\"event\":\"").as_bytes())
        );
        assert!(row.get::<_, bool>("due") && row.get::<_, bool>("now") && row.get::<_, i16>("attempt") == 0);
    }
    transact(
        &*fixture.database.units(),
        &Settle(order.clone(), Settlement::Pay),
    )
    .await
    .unwrap();
    transact(&*fixture.database.units(), &Settle(order, Settlement::Pay))
        .await
        .unwrap();
    let paid = "select count(*) from deliveries where event = 'order.paid'";
    assert_eq!(fixture.count(paid).await, 1, "one transition, one event");
}

#[tokio::test]
async fn two_events_of_one_move_are_two_deliveries() {
    let fixture = Fixture::new().await;
    let seller = fixture.seller().await;
    let client = fixture.place.connect().await;
    let app = application(&client, seller, "active", false).await;
    subscribe(&client, seller, app, &["order.shipped", "order.delivered"], true).await;
    subscribe(&client, seller, app, &["order.delivered"], true).await;
    let part = paid(part(seller, instant()));
    fixture.save(std::slice::from_ref(&part)).await;
    let mut new = shipment(Carrier::Dpd);
    new.sighting = Some(Sighting {
        status: TrackingStatus::Delivered,
        at: None,
        raw_code: String::new(),
    });
    let tx = fixture.begin().await;
    let locked = tx
        .lock_part(seller, &OrderRef::Id(part.id))
        .await
        .unwrap()
        .unwrap();
    tx.save_parts(vec![locked.ship(new, Cause::Seller, tx.now()).unwrap()])
        .await
        .unwrap();
    tx.commit().await.unwrap();
    let events = deliveries(&client)
        .await
        .iter()
        .map(|row| row.get("event"))
        .collect::<Vec<String>>();
    assert_eq!(
        events.iter().filter(|event| *event == "order.delivered").count(),
        2,
        "{events:?}"
    );
    assert_eq!(
        events.iter().filter(|event| *event == "order.shipped").count(),
        1,
        "{events:?}"
    );
    assert_eq!(fixture.count("select count(*) from changes").await, 2);
}

#[tokio::test]
async fn a_rejected_offer_is_told_and_what_is_undone_is_not() {
    let fixture = Fixture::new().await;
    let seller = fixture.seller().await;
    let client = fixture.place.connect().await;
    let app = application(&client, seller, "active", false).await;
    subscribe(&client, seller, app, &["offer.rejected"], true).await;
    let offer = fixture.offer(seller, 1).await;
    for commits in [false, true] {
        let tx = fixture.begin().await;
        let before = tx.lock_offers(seller, &[offer]).await.unwrap().remove(0);
        let change: Change<_, _> = before.moderate(offers::Decision::Reject, tx.now());
        tx.save_offers(seller, vec![change]).await.unwrap();
        if commits {
            tx.commit().await.unwrap();
        } else {
            drop(tx);
        }
        let rows = deliveries(&client).await;
        assert_eq!(rows.len(), usize::from(commits));
    }
    let body = deliveries(&client).await[0].get::<_, Vec<u8>>("body");
    assert_eq!(
        serde_json::from_slice::<Value>(&body).unwrap()["data"],
        json!({"offer_id": offer.to_string()})
    );
}

#[tokio::test]
async fn a_lane_that_sleeps_is_woken_and_one_that_is_worked_on_is_left_alone() {
    let fixture = Fixture::new().await;
    let seller = fixture.seller().await;
    let client = fixture.place.connect().await;
    let app = application(&client, seller, "active", false).await;
    let lanes = [
        ("asleep", "null", "false", true),
        (
            "waits for a retry",
            "api_now() + interval '1 hour'",
            "false",
            true,
        ),
        ("awake", "api_now() - interval '1 hour'", "false", false),
        ("leased", "api_now() + interval '30 s'", "true", false),
    ];
    let mut expected = Vec::new();
    for (name, wake_at, leased, woken) in lanes {
        let lane = subscribe(&client, seller, app, &["order.created"], true).await;
        let set = format!(
            "update subscriptions set wake_at = {wake_at}, leased = {leased}, \
            fence = case when {leased} then id end where id = '{lane}'"
        );
        client.batch_execute(&set).await.unwrap();
        let before: Option<chrono::DateTime<chrono::Utc>> = client
            .query_one("select wake_at from subscriptions where id = $1", &[&lane])
            .await
            .unwrap()
            .get(0);
        expected.push((name, lane, before, woken));
    }
    let offer = fixture.offer(seller, 5).await;
    fixture.place(&[(seller, offer)]).await;
    assert_eq!(deliveries(&client).await.len(), 4);
    for (name, lane, before, woken) in expected {
        let row = client
            .query_one(
                "select wake_at, wake_at <= api_now() from subscriptions where id = $1",
                &[&lane],
            )
            .await
            .unwrap();
        let after: Option<chrono::DateTime<chrono::Utc>> = row.get(0);
        assert_eq!(after != before, woken, "{name}");
        assert!(!woken || row.get::<_, bool>(1), "{name}");
    }
}

/// An owner of lanes has found nothing to do, and puts them to sleep: under a lock that shuts new work out, by what a later
/// statement finds.
async fn put_to_sleep(client: &mut Client) -> Transaction<'_> {
    let tx = client.transaction().await.unwrap();
    tx.execute("select from subscriptions for update", &[])
        .await
        .unwrap();
    let sleep = "update subscriptions s set wake_at = (select min(due_at) from deliveries d where d.seller_id = s.seller_id \
        and d.subscription_id = s.id and d.due_at is not null)";
    tx.execute(sleep, &[]).await.unwrap();
    tx
}

/// A lane that is awake though nothing waits in it, and an order that brings it work.
async fn awake_lane() -> (Fixture, Place) {
    let fixture = Fixture::new().await;
    let seller = fixture.seller().await;
    let client = fixture.place.connect().await;
    let app = application(&client, seller, "active", false).await;
    subscribe(&client, seller, app, &["order.created"], true).await;
    fixture
        .tamper("update subscriptions set wake_at = api_now() - interval '1 s'")
        .await;
    let offer = fixture.offer(seller, 1).await;
    (fixture, Place(request(&[(seller, offer)])))
}

const AWAKE: &str = "select count(*) from subscriptions where wake_at <= api_now()";

#[tokio::test]
async fn a_lane_is_not_put_to_sleep_over_work_that_is_about_to_be_committed() {
    let (fixture, order) = awake_lane().await;
    let claim = claim(id().into(), "k", "a");
    fixture
        .database
        .claims()
        .claim(&claim, Duration::from_mins(1))
        .await
        .unwrap();
    let tx = fixture.begin().await;
    order.run(&*tx).await.unwrap();
    // With the completion all that is told has been written.
    tx.complete(&claim, &answer("a")).await.unwrap();
    let mut owner = fixture.place.connect().await;
    let sleep = async { put_to_sleep(&mut owner).await.commit().await.unwrap() };
    let mut sleep = std::pin::pin!(sleep);
    let waits = "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'";
    let slept = tokio::select! {
        () = &mut sleep => true,
        () = async { while fixture.count(waits).await == 0 {} } => false,
    };
    tx.commit().await.unwrap();
    if !slept {
        sleep.await;
    }
    assert_eq!(fixture.count(AWAKE).await, 1, "asleep with work");
}

#[tokio::test]
async fn a_lane_that_falls_asleep_while_work_comes_is_woken() {
    let (fixture, order) = awake_lane().await;
    let mut owner = fixture.place.connect().await;
    let sleep = put_to_sleep(&mut owner).await;
    let units = fixture.database.units();
    let placed = transact(&*units, &order);
    let mut placed = std::pin::pin!(placed);
    let waits = "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'";
    tokio::select! {
        placed = &mut placed => panic!("the order was placed past the lock: {placed:?}"),
        () = async { while fixture.count(waits).await == 0 {} } => {}
    }
    sleep.commit().await.unwrap();
    placed.await.unwrap();
    assert_eq!(fixture.count(AWAKE).await, 1, "asleep with work");
}
