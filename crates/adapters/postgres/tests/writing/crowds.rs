//! Many at once over the same offers and orders: nothing is lost, nothing is taken twice, and nobody hears of a deadlock.

use adapter_postgres::Database;
use futures_util::future::join_all;
use kernel::{Change, OfferId, SellerId};
use orders::{OrderRef, OrderStatus, Reason};
use usecases::{Failure, place_order, settle_order, settle_order::Settlement, ship_order, transact};

use crate::support::{Fixture, Place, Report, Restock, Settle, database, request};

/// Subscriptions to everything, two for each seller, so that lanes are locked too.
async fn subscribe(fixture: &Fixture) {
    fixture
        .tamper("insert into applications (client_id, owner_id, name, documentation_url, purpose, client_type, redirect_uris, \
              scopes, status, built_in, created_at, updated_at) \
            select gen_random_uuid(), id, 'App ' || seller_no, 'https://d', 'own_use', 'public', '{}', 1, 'active', false, \
              api_now(), api_now() from sellers; \
            insert into subscriptions (seller_id, id, client_id, created_at, active, url, events, secret) \
            select owner_id, gen_random_uuid(), client_id, api_now(), true, 'https://r.example/', \
              '{order.created,order.paid,order.shipped,order.delivered,order.cancelled,offer.rejected}', 'x' \
            from applications, generate_series(1, 2)")
        .await;
}

async fn market(sellers: usize, offers_each: usize, pieces: i64) -> (Fixture, Vec<(SellerId, OfferId)>) {
    let fixture = Fixture::new().await;
    let mut offers = Vec::new();
    for _ in 0..sellers {
        let seller = fixture.seller().await;
        for _ in 0..offers_each {
            offers.push((seller, fixture.offer(seller, pieces).await));
        }
    }
    subscribe(&fixture).await;
    (fixture, offers)
}

#[tokio::test(flavor = "multi_thread")]
async fn stock_never_falls_below_nothing() {
    let (fixture, offers) = market(2, 2, 25).await;
    let busy = database(fixture.place.url(), 16);
    // Each order takes one piece of every offer, in an order of its own: 40 buyers for 25 pieces.
    let buyers = (0..40).map(|n| {
        let (busy, mut items) = (&busy, offers.clone());
        items.rotate_left(n % 4);
        async move { transact(&*busy.units(), &Place(request(&items))).await }
    });
    let mut placed = 0;
    for outcome in join_all(buyers).await {
        match outcome {
            Ok(_) => placed += 1,
            Err(Failure::Refused(place_order::Refusal::Short(short))) => assert_eq!(short.len(), 4),
            Err(error) => panic!("{error}"),
        }
    }
    assert_eq!(placed, 25);
    assert_eq!(fixture.count("select sum(stock) from offers").await, 0);
    assert_eq!(fixture.count("select count(*) from seller_orders").await, 50);
    assert_eq!(
        fixture
            .count("select count(*) from deliveries where event = 'order.created'")
            .await,
        2 * 50
    );
}

/// What one writer does to one order; refusals are part of the game.
async fn meddle(busy: &Database, order: &OrderRef, owner: SellerId, n: usize) {
    let units = busy.units();
    let settle = async |step| match transact(&*units, &Settle(order.clone(), step)).await {
        Ok(_) | Err(Failure::Refused(settle_order::Refusal::Impossible(_))) => {}
        Err(error) => panic!("{error:?}"),
    };
    match n % 4 {
        0 => settle(Settlement::Pay).await,
        1 => settle(Settlement::Cancel).await,
        2 => settle(Settlement::Deliver).await,
        _ => match transact(&*units, &Report::of(owner, order.clone())).await {
            Ok(_) | Err(Failure::Refused(ship_order::Refusal::Impossible { .. })) => {}
            Err(error) => panic!("{error:?}"),
        },
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn thirty_two_writers_over_twenty_offers_and_orders_meet_no_deadlock() {
    let (fixture, offers) = market(5, 4, 1_000).await;
    let mut orders = Vec::new();
    for n in 0..20 {
        // Of one seller, or of three.
        let items = if n % 2 == 0 {
            vec![offers[n], offers[(n + 7) % 20], offers[(n + 13) % 20]]
        } else {
            vec![offers[n]]
        };
        orders.push((fixture.place(&items).await, offers[n].0));
    }
    let busy = database(fixture.place.url(), 32);
    let writers = (0..32_usize).map(|writer| {
        let (busy, orders, offers) = (&busy, &orders, &offers);
        async move {
            for step in 0..12 {
                let n = writer * 31 + step * 17;
                let (order, owner) = &orders[(n * 7) % 20];
                meddle(busy, order, *owner, n).await;
                let items = [offers[n % 20], offers[(n + 5) % 20]];
                match transact(&*busy.units(), &Place(request(&items))).await {
                    Ok(placed) if n % 3 == 0 => meddle(busy, &OrderRef::Id(placed.id), items[0].0, 1).await,
                    Ok(_) => {}
                    Err(error) => panic!("{error:?}"),
                }
                reject(busy, offers[(n + 3) % 20]).await;
            }
        }
    });
    let client = fixture.place.connect().await;
    // Lanes fall asleep all the time, so that there is always one to wake and to lock.
    let asleep = async {
        let lanes = client.query("select id from subscriptions", &[]).await.unwrap();
        for lane in lanes.iter().cycle() {
            let id: uuid::Uuid = lane.get(0);
            client
                .execute("update subscriptions set wake_at = null where id = $1", &[&id])
                .await
                .unwrap();
        }
    };
    tokio::select! {
        _ = join_all(writers) => {}
        () = asleep => {}
    }
    drop(client);
    // What orders that stand have taken, and what is left, is all there was.
    let taken = "select coalesce(sum((item->>'quantity')::int), 0) from seller_orders, json_array_elements(items) item \
        where status <> 'cancelled'";
    assert_eq!(
        fixture.count(taken).await + fixture.count("select sum(stock) from offers").await,
        20 * 1_000
    );
    // One event for each transition, for each of the two subscriptions.
    for (event, status) in [
        ("order.created", "true"),
        ("order.cancelled", "status = 'cancelled'"),
        ("order.paid", "paid_at is not null"),
    ] {
        let transitions = fixture
            .count(&format!("select count(*) from seller_orders where {status}"))
            .await;
        let told = fixture
            .count(&format!(
                "select count(*) from deliveries where event = '{event}'"
            ))
            .await;
        assert_eq!(told, 2 * transitions, "{event}");
    }
    drop(busy);
    assert_eq!(deadlocks(fixture).await, 0, "repeating had to help");
}

/// How many deadlocks the database has seen. A server process hands its figures in when it ends.
async fn deadlocks(fixture: Fixture) -> i64 {
    let Fixture { place, database } = fixture;
    drop(database);
    let client = place.connect().await;
    let others = "select count(*) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()";
    while client.query_one(others, &[]).await.unwrap().get::<_, i64>(0) > 0 {
        tokio::task::yield_now().await;
    }
    let seen = "select deadlocks from pg_stat_database where datname = current_database()";
    client.query_one(seen, &[]).await.unwrap().get(0)
}

/// Moderation changes its mind: rejected, and shown again.
async fn reject(busy: &Database, (seller, offer): (SellerId, OfferId)) {
    for decision in [offers::Decision::Reject, offers::Decision::Approve] {
        let work = Moderate(seller, offer, decision);
        transact(&*busy.units(), &work).await.unwrap();
    }
}

struct Moderate(SellerId, OfferId, offers::Decision);

#[async_trait::async_trait]
impl usecases::Work for Moderate {
    type Done = ();
    type Error = usecases::UnitOfWorkError;

    async fn run(&self, tx: &dyn usecases::Transaction) -> Result<(), Self::Error> {
        let before = tx.lock_offers(self.0, &[self.1]).await?.remove(0);
        let change: Change<_, _> = before.moderate(self.2, tx.now());
        tx.save_offers(self.0, vec![change]).await?;
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_sixty_shipments_of_one_order_one_is_recorded() {
    let (fixture, offers) = market(1, 1, 5).await;
    let (seller, _) = offers[0];
    let order = fixture.place(&offers).await;
    transact(
        &*fixture.database.units(),
        &Settle(order.clone(), Settlement::Pay),
    )
    .await
    .unwrap();
    let busy = database(fixture.place.url(), 16);
    let reports = (0..60).map(|_| {
        let (busy, order) = (&busy, order.clone());
        async move { transact(&*busy.units(), &Report::of(seller, order)).await }
    });
    let mut recorded = 0;
    for outcome in join_all(reports).await {
        match outcome {
            Ok(part) => {
                assert_eq!(part.status(), OrderStatus::Shipped);
                recorded += 1;
            }
            Err(Failure::Refused(ship_order::Refusal::Impossible { refused, .. })) => {
                assert_eq!(refused.reason, Reason::AlreadyShipped);
            }
            Err(error) => panic!("{error:?}"),
        }
    }
    assert_eq!(recorded, 1);
    for (what, times) in [("mails", 1), ("parcels", 1), ("changes", 1)] {
        assert_eq!(
            fixture.count(&format!("select count(*) from {what}")).await,
            times,
            "{what}"
        );
    }
    assert_eq!(
        fixture
            .count("select count(*) from deliveries where event = 'order.shipped'")
            .await,
        2
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn of_twenty_changes_with_one_key_one_has_an_effect() {
    let (fixture, offers) = market(1, 1, 5).await;
    let (seller, offer) = offers[0];
    let busy = database(fixture.place.url(), 16);
    let lease = std::time::Duration::from_mins(1);
    let patches = (0..20).map(|n| {
        let busy = &busy;
        async move {
            let claim = crate::support::claim(seller, "one", "body");
            let claims = busy.claims();
            if claims.claim(&claim, lease).await.unwrap() != kernel::Claimed::Run {
                return 0;
            }
            let tx = busy.units().begin().await.unwrap();
            usecases::Work::run(&Restock(seller, offer, 100 + n), &*tx)
                .await
                .unwrap();
            tx.complete(&claim, &crate::support::answer("a")).await.unwrap();
            tx.commit().await.unwrap();
            1
        }
    });
    assert_eq!(join_all(patches).await.into_iter().sum::<i32>(), 1);
    assert_eq!(fixture.count("select count(*) from changes").await, 1);
}
