//! The event journal: its numbers are in the order of commits, and its pages and its clearing cost the same however
//! long it is.

use std::collections::HashMap;

use adapter_postgres::{Database, Expired, finish};
use chrono::{DateTime, TimeDelta, Utc};
use kernel::{OfferId, SellerId};
use tokio::task::JoinSet;
use usecases::Transaction;
use webhooks::{JournalPage, JournalPlace, JournalRefusal, JournalStart, WebhookEvent};

use crate::support::{
    Fixture, LEASE, PlaceOrder, Work as _, answer, claim, handle, id, request, settings, transact,
};

const KEPT_FOR: TimeDelta = TimeDelta::days(3);

async fn read(
    database: &Database,
    seller: SellerId,
    start: JournalStart,
    names: &[WebhookEvent],
    limit: u16,
) -> Result<JournalPage, JournalRefusal> {
    let journals = database.journals(KEPT_FOR);
    journals.page(seller.into(), start, names, limit).await.unwrap()
}

/// All events from here on, by pages of three.
async fn rest(database: &Database, seller: SellerId, mut start: JournalStart) -> (Vec<String>, JournalPlace) {
    let mut orders = Vec::new();
    loop {
        let page = read(database, seller, start, &WebhookEvent::ALL, 3)
            .await
            .unwrap();
        assert!(page.events.len() <= 3);
        orders.extend(page.events.iter().map(|event| event.id.to_string()));
        if !page.has_more {
            return (orders, page.place);
        }
        start = JournalStart::After(page.place);
    }
}

/// An open transaction that has sent all of an order but its commit.
async fn open_order(fixture: &Fixture, items: &[(SellerId, OfferId)]) -> Box<dyn Transaction> {
    let claim = claim(items[0].0, &id().to_string(), "x");
    fixture.database.claims().claim(&claim, LEASE).await.unwrap();
    let tx = fixture.begin().await;
    PlaceOrder(request(items)).run(&*tx).await.unwrap();
    // The completion also flushes all announcements.
    tx.complete(&claim, &answer("")).await.unwrap();
    tx
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_has_its_number_once_all_before_it_are_committed() {
    let fixture = Fixture::new().await;
    let seller = fixture.seller().await;
    let (one, two) = (fixture.offer(seller, 9).await, fixture.offer(seller, 9).await);
    let last = async || {
        let numbers = fixture.database.journals(KEPT_FOR).last_numbers(&[seller]).await;
        numbers.unwrap().get(&seller).copied()
    };
    assert_eq!(last().await, None);
    let first = open_order(&fixture, &[(seller, one)]).await;
    // The second locks no row of the first but the journal's.
    let second = async {
        let opened = open_order(&fixture, &[(seller, two)]).await;
        opened.commit().await.unwrap();
    };
    let first = async {
        fixture.wait_for_blocked_session().await;
        assert_eq!(last().await, None);
        let (events, place) = rest(&fixture.database, seller, JournalStart::Oldest).await;
        assert!(events.is_empty() && place.number == 0);
        first.commit().await.unwrap();
    };
    futures_util::join!(first, second);
    assert_eq!(last().await, Some(2));
    let in_order = "select order_id::text from journal order by number";
    let by_stock = "select o.order_id::text from seller_orders o order by o.items->0->>'offer'";
    let [in_order, by_stock] = [fixture.texts(in_order).await, fixture.texts(by_stock).await];
    assert_eq!(in_order, by_stock, "the first is of the older offer");
    // What is rolled back leaves no gap.
    drop(open_order(&fixture, &[(seller, one)]).await);
    fixture.place_order(&[(seller, two)]).await;
    assert_eq!(last().await, Some(3));
    let (events, place) = rest(&fixture.database, seller, JournalStart::Oldest).await;
    assert_eq!((events.len(), place.number), (3, 3));
}

/// A subscription of the second seller is locked; the first one's sleeps.
#[tokio::test(flavor = "multi_thread")]
async fn no_seller_waits_for_the_deliveries_of_another_seller_of_an_order() {
    let fixture = Fixture::new().await;
    let (one, other) = (fixture.queue().await.seller, fixture.queue().await.seller);
    assert!(one < other, "its rows are written first");
    let cart = [
        (one, fixture.offer(one, 9).await),
        (other, fixture.offer(other, 9).await),
    ];
    let offer = fixture.offer(one, 9).await;
    let holder = fixture.test_database.connect().await;
    let lock = format!("begin; select from subscriptions where seller_id = '{other}' for update");
    holder.batch_execute(&lock).await.unwrap();
    let meanwhile = async {
        fixture.wait_for_blocked_session().await;
        fixture.place_order(&[(one, offer)]).await;
        assert_eq!(fixture.rows_of("journal").await, 1);
        holder.batch_execute("commit").await.unwrap();
    };
    futures_util::join!(fixture.place_order(&cart), meanwhile);
    assert_eq!(fixture.rows_of("journal").await, 3);
    let sellers = "select array_to_string(sellers, ' ') from orders order by cardinality(sellers)";
    let expected = [one.to_string(), format!("{one} {other}")];
    assert_eq!(fixture.texts(sellers).await, expected);
}

/// Orders of two processes, each of both sellers, while a reader follows.
#[tokio::test(flavor = "multi_thread")]
async fn a_reader_sees_each_event_once_in_order_while_many_commit() {
    const WRITERS: usize = 8;
    const ORDERS: usize = 12;
    let fixture = Fixture::new().await;
    let sellers = [fixture.seller().await, fixture.seller().await];
    let mut writers = JoinSet::new();
    for n in 0..WRITERS {
        let mut items = Vec::new();
        for seller in sellers {
            items.push((seller, fixture.offer(seller, 100).await));
        }
        if n % 2 == 0 {
            items.reverse();
        }
        let database = handle(settings(fixture.test_database.url(), 2));
        writers.spawn(async move {
            for _ in 0..ORDERS {
                let order = PlaceOrder(request(&items));
                transact(&*database.units(), &order).await.unwrap();
            }
        });
    }
    let (mut seen, mut start, mut all_written) = (Vec::new(), JournalStart::Oldest, false);
    while !all_written {
        while let Some(ended) = writers.try_join_next() {
            ended.unwrap();
        }
        all_written = writers.is_empty();
        let (events, place) = rest(&fixture.database, sellers[1], start).await;
        seen.extend(events);
        start = JournalStart::After(place);
    }
    let of = |seller: SellerId| {
        format!("select id::text from journal where seller_id = '{seller}' order by number")
    };
    assert_eq!(seen, fixture.texts(&of(sellers[1])).await);
    let mut numbers = HashMap::new();
    for seller in sellers {
        numbers.insert(seller, i64::try_from(WRITERS * ORDERS).unwrap());
    }
    let last = fixture.database.journals(KEPT_FOR).last_numbers(&sellers).await;
    assert_eq!(last.unwrap(), numbers);
}

#[tokio::test]
async fn the_journal_begins_when_the_schema_is_finished() {
    let (fixture, clock) = Fixture::frozen().await;
    let seller = fixture.seller().await;
    let offer = fixture.offer(seller, 9).await;
    let since = async |at: DateTime<Utc>| {
        let page = read(
            &fixture.database,
            seller,
            JournalStart::Since(at),
            &WebhookEvent::ALL,
            9,
        )
        .await;
        page.map(|page| page.events.len())
    };
    fixture.tamper("delete from instance where key = 'journal'").await;
    fixture.place_order(&[(seller, offer)]).await;
    for events in [0, 1] {
        clock.advance(TimeDelta::hours(1)).await;
        finish(fixture.test_database.url()).await.unwrap();
        let (found, place) = rest(&fixture.database, seller, JournalStart::Oldest).await;
        assert_eq!(
            (found.len(), place.number),
            (events, 1 + i64::try_from(events).unwrap())
        );
        if events == 0 {
            fixture.place_order(&[(seller, offer)]).await;
        }
    }
    let begun = fixture.now().await - TimeDelta::hours(1);
    assert_eq!(since(begun).await, Ok(1));
    let before = begun - TimeDelta::microseconds(1);
    assert_eq!(since(before).await, Err(JournalRefusal::TooOld(begun)));
    // A place of a journal that a restore to before the finish has ended: other events had its numbers since.
    let lost = JournalPlace {
        number: 1,
        event: Some(id().into()),
        at: before,
    };
    let after = JournalStart::After(lost);
    let refused = read(&fixture.database, seller, after, &WebhookEvent::ALL, 9).await;
    assert_eq!(refused, Err(JournalRefusal::NoLongerKept));
    clock.advance(KEPT_FOR).await;
    let kept_since = fixture.now().await - KEPT_FOR;
    assert_eq!(since(begun).await, Err(JournalRefusal::TooOld(kept_since)));
}

#[tokio::test]
async fn events_are_cleared_after_their_time() {
    let (fixture, clock) = Fixture::frozen().await;
    let begun = "update instance set set_at = '2026-01-01Z' where key = 'journal'";
    fixture.tamper(begun).await;
    let seller = fixture.seller().await;
    let offer = fixture.offer(seller, 9).await;
    fixture.place_order(&[(seller, offer)]).await;
    let (_, first) = rest(&fixture.database, seller, JournalStart::Oldest).await;
    clock.advance(TimeDelta::days(1)).await;
    fixture.place_order(&[(seller, offer)]).await;
    fixture
        .tamper("update instance set set_at = '2000-01-01Z' where key <> 'journal'")
        .await;
    for (hours, cleared) in [(48, 0), (1, 1), (24, 1)] {
        clock.advance(TimeDelta::hours(hours)).await;
        let batch = fixture.database.clear(Expired::Events(KEPT_FOR)).await;
        assert_eq!(batch.unwrap().rows, cleared, "after {hours} hours more");
    }
    let moved = "instance where set_at = (select set_at from instance where key = 'journal')";
    assert_eq!(fixture.rows_of(moved).await, 1, "no other time was moved");
    let after = JournalStart::After(first);
    let refused = read(&fixture.database, seller, after, &WebhookEvent::ALL, 9).await;
    assert_eq!(refused, Err(JournalRefusal::NoLongerKept));
    // Nor does a process hide the gap that keeps events for longer.
    let longer = fixture.database.journals(KEPT_FOR * 9);
    let cleared_to = fixture.now().await - KEPT_FOR;
    let before = cleared_to - TimeDelta::microseconds(1);
    let too_old = JournalRefusal::TooOld(cleared_to);
    for (since, refused) in [(cleared_to, None), (before, Some(too_old))] {
        let start = JournalStart::Since(since);
        let page = longer.page(seller.into(), start, &WebhookEvent::ALL, 9).await;
        assert_eq!(page.unwrap().err(), refused);
    }
    // Nor does one that keeps events for longer, and clears after one that keeps them for less.
    fixture.place_order(&[(seller, offer)]).await;
    clock.advance(KEPT_FOR * 3).await;
    fixture.place_order(&[(seller, offer)]).await;
    fixture
        .tamper("update instance set set_at = api_now() where key = 'journal'")
        .await;
    let begun = fixture.now().await;
    let cleared = fixture.database.clear(Expired::Events(KEPT_FOR * 2)).await;
    assert_eq!(cleared.unwrap().rows, 1);
    let at_begin = longer
        .page(seller.into(), JournalStart::Since(begun), &WebhookEvent::ALL, 9)
        .await;
    assert!(at_begin.unwrap().is_ok());
    let start = JournalStart::Since(begun - TimeDelta::microseconds(1));
    let refused = longer.page(seller.into(), start, &WebhookEvent::ALL, 9).await;
    assert_eq!(refused.unwrap().err(), Some(JournalRefusal::TooOld(begun)));
    fixture.tamper("delete from journal").await;
    // The numbers go on.
    fixture.place_order(&[(seller, offer)]).await;
    let (events, place) = rest(&fixture.database, seller, JournalStart::Oldest).await;
    assert_eq!((events.len(), place.number), (1, 5));
}

/// 100 000 events of one seller, one a second; every 1 000th is of an offer. As many of a thousand others.
const EVENTS: &str = "
    insert into journals values ('{seller}', 99999, '2026-02-01Z');
    insert into journals select md5('s' || n)::uuid, 100, '2026-02-01Z' from generate_series(0, 999) n;
    insert into journal (seller_id, number, id, event, occurred_at, recorded_at, order_id, order_number, offer_id)
      select case when m = 0 then '{seller}' else md5('s' || n % 1000)::uuid end, case when m = 0 then n else 1 + n / 1000 end,
        md5(n || '.' || m)::uuid, case when n % 1000 = 0 then 'offer.rejected' else 'order.paid' end, t, t,
        case when n % 1000 > 0 then md5('o' || n)::uuid end, case when n % 1000 > 0 then 'N-' || n end,
        case when n % 1000 = 0 then md5('o' || n)::uuid end
      from (select n, m, timestamptz '2026-01-01Z' + n * interval '1 s' as t from generate_series(0, 99999) n, generate_series(0, 1) m) as e
      where m = 1 or n > 0;
    update instance set set_at = '2026-01-01Z' where key = 'journal'";

#[tokio::test]
async fn pages_are_read_and_events_cleared_by_their_index() {
    // A page, and what judges its beginning.
    const PAGE: i64 = 201 + 20;
    let (fixture, clock) = Fixture::frozen().await;
    clock.freeze("2026-01-04T00:00:00Z".parse().unwrap()).await;
    let seller = fixture.seller().await;
    fixture
        .filled(&EVENTS.replace("{seller}", &seller.to_string()))
        .await;
    let id = "select id::text from journal where number = 70000";
    let deep = JournalPlace {
        number: 70_000,
        event: Some(fixture.texts(id).await[0].parse().unwrap()),
        at: fixture.now().await,
    };
    let since = JournalStart::Since("2026-01-01T20:00:00Z".parse().unwrap());
    for (what, start, names, found, number, most) in [
        (
            "since a time",
            since,
            WebhookEvent::ALL.as_slice(),
            200,
            72_139,
            PAGE,
        ),
        (
            "few",
            JournalStart::After(deep),
            &[WebhookEvent::OfferRejected],
            1,
            71_000,
            1_000 + 20,
        ),
    ] {
        let page = async |database: &Database| {
            let page = read(database, seller, start, names, 200).await.unwrap();
            assert_eq!((page.events.len(), page.place.number), (found, number), "{what}");
        };
        fixture.costs(what, most, page).await;
    }
    let sellers =
        "select id::text from (select md5('s' || n)::uuid as id from generate_series(0, 99) n) as s";
    let sellers = fixture.texts(sellers).await.into_iter();
    let sellers: Vec<SellerId> = sellers.map(|id| id.parse().unwrap()).collect();
    let look = async |database: &Database| {
        let numbers = database.journals(KEPT_FOR).last_numbers(&sellers).await.unwrap();
        assert_eq!(numbers.len(), 100);
    };
    fixture.costs("numbers of sellers", 220, look).await;
    for (more, most) in [(TimeDelta::zero(), 20), (TimeDelta::days(1), 2 * 1_000 + 20)] {
        clock.advance(more).await;
        let clear = async |database: &Database| {
            let cleared = database.clear(Expired::Events(KEPT_FOR)).await.unwrap();
            assert_eq!(cleared.more, most > 20);
        };
        fixture.costs("clearing", most, clear).await;
    }
}
