//! Lists of offers and orders: combinations of filters compared with a plain query, page by page.

use std::collections::BTreeSet;
use std::pin::pin;
use std::time::{Duration, Instant};

use adapter_postgres::{ANSWER_TIMEOUT, DatabaseSettings};
use futures_util::future::{OptionFuture, join_all};
use futures_util::{FutureExt as _, join};
use kernel::{Keyset, Page, PageSize, Reader, SellerId};
use offers::{Offer, OfferCode, OfferFilter, OfferStatus};
use orders::{OrderFilter, OrderId, OrderNumber, OrderRef, OrderStatus, SellerOrder};
use testkit::{PgBouncer, StatementProxy, lock_waits};
use tokio::time::timeout;
use webhooks::{DeliveryFilter, WebhookEvent};

use crate::support::{CAPACITY, Fixture, handle, id, is_unavailable, settings};

/// Reads the ids of a whole list by following `next`.
async fn all<T>(
    size: i64,
    id: fn(&T) -> String,
    page: impl AsyncFn(Option<Keyset>, PageSize) -> Page<T>,
) -> Vec<String> {
    let (mut read, mut after) = (Vec::new(), None);
    loop {
        let page = page(after, PageSize::clamped(size)).await;
        assert!(
            !page.items.is_empty() || read.is_empty(),
            "an empty page was announced"
        );
        read.extend(page.items.iter().map(id));
        after = page.next;
        if after.is_none() {
            return read;
        }
    }
}

/// Offers and orders of a seller, with the ids that other sellers' have too: three of each instant, of which
/// one is updated a year later and one two years later, both with an EAN; three of five have an external id; every second one is a draft or cancelled, every
/// seventh order is a test order. As after any such growth, the tables are analyzed: with the plan for the
/// few rows of before, a page would join every row of the seller with every other.
const FILL: &str = "
    create temporary table items as select n, t, t + (n % 3) * interval '1 year' as updated from
      (select n, timestamptz '2026-01-01Z' + n / 3 * interval '1 s' as t from generate_series(1, {rows}) n) x;
    insert into offers (seller_id, id, created_at, updated_at, status, title, handle, url, ean, external_id)
      select '{seller}', md5(n::text)::uuid, t, updated, case when n % 2 = 0 then 'draft' else 'published' end, 't', 'h', 'u',
        case when n % 3 > 0 then 'ean' end, case when n % 5 < 3 then 'external_id' end from items;
    insert into seller_orders (seller_id, order_id, placed_at, updated_at, cancelled_at, is_test, several_sellers, status, number, items)
      select '{seller}', md5(n::text)::uuid, t, updated, case when n % 2 = 0 then t end, n % 7 = 0, false,
        case when n % 2 = 0 then 'cancelled' else 'pending' end, 'N-' || n,
        '[{\"offer\":\"00000000-0000-0000-0000-000000000001\",\"quantity\":1}]' from items;
    drop table items;
    analyze offers, seller_orders";

#[tokio::test]
async fn every_combination_of_filters_and_page_sizes_reads_each_row_once_in_order() {
    let fixture = Fixture::new().await;
    let (offers, orders) = (fixture.database.offer_reader(), fixture.database.order_reader());
    let later = |column: &str, than: Option<&str>| {
        than.map_or(String::new(), |than| format!(" and {column} > '{than}'"))
    };
    // All, two of three, one of three, and some of both parts of a list. Of 9 000 rows two of three are more
    // than are sorted, so that another statement reads them.
    let updates = [
        None,
        Some("2025-01-01T00:00:00Z"),
        Some("2026-06-01T00:00:00Z"),
        Some("2027-06-01T00:00:00Z"),
        Some("2026-01-01T00:00:10Z"),
    ];
    for (rows, sizes) in [("60", &[1, 7, 200][..]), ("9000", &[200])] {
        let seller = fixture.seller().await;
        for seller in [seller, fixture.seller().await] {
            let fill = FILL.replace("{seller}", &seller.to_string());
            fixture.tamper(&fill.replace("{rows}", rows)).await;
        }
        for updated in updates {
            let updated_after = updated.map(|at| at.parse().unwrap());
            for filters in 0..2 << OfferCode::ALL.len() {
                let draft = filters & 1 == 1;
                let is_set = |(n, code)| (filters & 2 << n != 0).then_some(code);
                let codes: Vec<_> = OfferCode::ALL
                    .into_iter()
                    .enumerate()
                    .filter_map(is_set)
                    .collect();
                let matching = codes.iter().map(|code| format!(" and {0} = '{0}'", code.name()));
                // All fields are named, so that a new filter is combined here with the others.
                let filter = OfferFilter {
                    status: draft.then_some(OfferStatus::Draft),
                    updated_after,
                    codes: codes.iter().map(|code| (*code, code.name().to_owned())).collect(),
                };
                let expected = fixture.texts(&format!(
                    "select id::text from offers where seller_id = '{seller}' and (status = 'draft' or not {draft}) \
                       {}{} order by created_at desc, id desc",
                    matching.collect::<String>(), later("updated_at", updated))).await;
                assert!(
                    filters == 0 || updated.is_some() || !expected.is_empty(),
                    "{filter:?}"
                );
                for size in sizes {
                    let read = all(
                        *size,
                        |offer: &Offer| offer.id.to_string(),
                        async |after, size| {
                            offers
                                .offers(seller.into(), filter.clone(), after, size)
                                .await
                                .unwrap()
                        },
                    );
                    assert_eq!(read.await, expected, "{filter:?} by {size}");
                }
            }
            for (cancelled, placed) in [
                (false, None),
                (true, None),
                (false, updates[4]),
                (true, updates[4]),
            ] {
                let filter = OrderFilter {
                    status: cancelled.then_some(OrderStatus::Cancelled),
                    placed_after: placed.map(|at| at.parse().unwrap()),
                    updated_after,
                };
                let expected = fixture.texts(&format!(
                    "select order_id::text from seller_orders where seller_id = '{seller}' and not is_test \
                       and (status = 'cancelled' or not {cancelled}){}{} order by placed_at desc, order_id desc",
                    later("placed_at", placed), later("updated_at", updated))).await;
                for size in sizes {
                    let read = all(
                        *size,
                        |part: &SellerOrder| part.id.to_string(),
                        async |after, size| orders.orders(seller.into(), filter, after, size).await.unwrap(),
                    );
                    assert_eq!(read.await, expected, "{filter:?} by {size}");
                }
            }
        }
    }
}

/// An order may have a thousand items: four of those here make a page, whatever its filter.
#[tokio::test]
async fn a_page_of_long_orders_ends_after_a_megabyte_and_leads_on() {
    let fixture = Fixture::new().await;
    let (seller, orders) = (fixture.seller().await, fixture.database.order_reader());
    let fill = FILL.replace("{seller}", &seller.to_string());
    fixture.tamper(&fill.replace("{rows}", "60")).await;
    fixture
        .tamper("update seller_orders set items_length = 300000")
        .await;
    let early = Some("2020-01-01T00:00:00Z".parse().unwrap());
    for cancelled in [false, true] {
        for (placed_after, updated_after) in [(None, None), (early, None), (None, early)] {
            let filter = OrderFilter {
                status: cancelled.then_some(OrderStatus::Cancelled),
                placed_after,
                updated_after,
            };
            let sql = format!(
                "select order_id::text from seller_orders where not is_test and (status = 'cancelled' or not {cancelled}) \
                   order by placed_at desc, order_id desc"
            );
            for size in [4, 200] {
                let read = all(
                    size,
                    |part: &SellerOrder| part.id.to_string(),
                    async |after, size| {
                        let page = orders.orders(seller.into(), filter, after, size).await.unwrap();
                        assert!(
                            page.items.len() == 4 || page.next.is_none(),
                            "{filter:?} by {size:?}"
                        );
                        page
                    },
                );
                assert_eq!(read.await, fixture.texts(&sql).await, "{filter:?} by {size}");
            }
        }
    }
    let expected = fixture
        .texts("select order_id::text from seller_orders order by placed_at desc, order_id desc")
        .await;
    let ids = expected.iter().map(|id| id.parse().unwrap()).collect();
    let found = orders.orders_by_id(seller.into(), &ids).await.unwrap();
    let found: Vec<_> = found.iter().map(|part| part.id.to_string()).collect();
    assert_eq!(found, expected, "by their ids");
}

#[tokio::test]
async fn long_reads_by_ids_take_turns_whoever_asks() {
    let fixture = Fixture::new().await;
    let proxy = StatementProxy::to(&fixture.test_database);
    let orders = handle(settings(proxy.url(), 1)).order_reader();
    let mut reads = Vec::new();
    for _ in 0..2 {
        let seller = fixture.seller().await;
        let fill = FILL.replace("{seller}", &seller.to_string());
        fixture.tamper(&fill.replace("{rows}", "12")).await;
        let sql = format!("select order_id::text from seller_orders where seller_id = '{seller}'");
        let ids = fixture.texts(&sql).await;
        let ids: BTreeSet<OrderId> = ids.iter().map(|id| id.parse().unwrap()).collect();
        reads.extend(vec![(seller, ids); 3]);
    }
    fixture
        .tamper("update seller_orders set items_length = 300000")
        .await;
    proxy.record();
    for found in join_all(
        reads
            .iter()
            .map(|(seller, ids)| orders.orders_by_id((*seller).into(), ids)),
    )
    .await
    {
        assert_eq!(found.unwrap().len(), 12);
    }
    let recorded = proxy.recorded();
    let read = recorded.iter().find(|statement| statement.sql.contains("unnest"));
    // Four fit into a megabyte: twelve ids, then eight, then four.
    let lengths = proxy
        .sent_with(&read.unwrap().sql)
        .into_iter()
        .map(|sent| sent.len());
    let lengths: Vec<_> = lengths.collect();
    let later: Vec<_> = lengths
        .iter()
        .filter(|length| Some(*length) != lengths.first())
        .collect();
    assert!(
        later.len() == 2 * reads.len() && later[0] > later[1],
        "{lengths:?}"
    );
    assert!(later.chunks(2).all(|read| read == &later[..2]), "{lengths:?}");
}

#[tokio::test]
async fn a_slow_list_ends_at_the_statement_timeout_after_its_caller_has_gone() {
    let fixture = Fixture::new().await;
    let seller = fixture.seller().await;
    let settings = DatabaseSettings {
        statement_timeout: Duration::from_millis(500),
        ..settings(fixture.test_database.url(), 1)
    };
    let (offers, filter) = (
        handle(settings).offer_reader(),
        OfferFilter {
            updated_after: Some(fixture.now().await),
            ..OfferFilter::default()
        },
    );
    fixture
        .tamper("begin; lock table offers in access exclusive mode")
        .await;
    tokio::select! {
        page = offers.offers(seller.into(), filter, None, PageSize::clamped(1)) => is_unavailable(page),
        () = fixture.wait_for_blocked_session() => {}
    }
    fixture.nothing_waits().await;
    fixture.tamper("rollback").await;
}

/// As those of rows with thousands of dead versions do.
#[tokio::test]
async fn reads_of_a_seller_that_take_long_leave_their_connection_to_others() {
    const LOCK: &str = "begin; lock table offers in access exclusive mode";
    let fixture = Fixture::new().await;
    let (slow, offers) = (fixture.seller().await, fixture.database.offer_reader());
    let size = PageSize::clamped(1);
    // Within a transaction, `pg_stat_activity` would stay as it is.
    let locking = fixture.test_database.connect().await;
    let lock = async || locking.batch_execute(LOCK).await.unwrap();
    let coded = OfferFilter {
        codes: vec![(OfferCode::EAN, "5901234123457".to_owned())],
        ..OfferFilter::default()
    };
    let read = async |kind: usize, seller: SellerId| match kind {
        0 => drop(
            offers
                .offers(seller.into(), OfferFilter::default(), None, size)
                .await
                .unwrap(),
        ),
        1 => drop(
            offers
                .offers(seller.into(), coded.clone(), None, size)
                .await
                .unwrap(),
        ),
        _ => drop(
            offers
                .offers_by_id(seller.into(), &[id().into()].into())
                .await
                .unwrap(),
        ),
    };
    let unlock_behind = async |sessions: i64| {
        let end = Instant::now() + Duration::from_secs(2);
        while fixture.count(lock_waits()).await < sessions {
            assert!(Instant::now() < end, "fewer sessions wait");
            tokio::task::yield_now().await;
        }
        locking.batch_execute("rollback").await.unwrap();
    };
    lock().await;
    is_unavailable(
        offers
            .offers(slow.into(), OfferFilter::default(), None, size)
            .await,
    );
    unlock_behind(0).await;
    for kind in 0..3 {
        let other = fixture.seller().await;
        lock().await;
        let reads = async { join!(read(kind, slow), read(kind, other)) };
        join!(reads, unlock_behind(2));
    }
}

#[tokio::test]
async fn sellers_who_look_at_their_deliveries_leave_connections_to_slow_lists() {
    let fixture = Fixture::new().await;
    let (deliveries, offers) = (fixture.database.subscriptions(), fixture.database.offer_reader());
    let seller = fixture.seller().await;
    fixture
        .tamper("begin; lock table deliveries in access exclusive mode")
        .await;
    let looks = (0..8).map(|_| {
        let filter = DeliveryFilter::default();
        deliveries.deliveries_of_seller(id().into(), filter, None, 1)
    });
    let filter = OfferFilter {
        updated_after: Some(fixture.now().await),
        ..OfferFilter::default()
    };
    let page = offers.offers(seller.into(), filter, None, PageSize::clamped(1));
    tokio::select! {
        biased;
        _ = join_all(looks) => panic!("it waited for those who look at their deliveries"),
        page = page => assert!(page.unwrap().items.is_empty()),
    }
    fixture.tamper("rollback").await;
}

/// What an event or an order caused is looked for in all that is kept.
#[tokio::test]
async fn what_operators_list_of_webhooks_has_no_time_limit() {
    let fixture = Fixture::new().await;
    let queue = fixture.queue().await;
    fixture.fill(queue, 2, 0).await;
    let lists = fixture.database.webhook_lists().await.unwrap();
    fixture
        .tamper("begin; lock table deliveries in access exclusive mode")
        .await;
    let filter = DeliveryFilter {
        event: Some(WebhookEvent::OrderPaid),
        ..DeliveryFilter::default()
    };
    let mut listed = pin!(lists.deliveries_of_seller(queue.seller, filter, None, 9));
    let longest = ANSWER_TIMEOUT + Duration::from_millis(500);
    assert!(timeout(longest, &mut listed).await.is_err());
    fixture.tamper("rollback").await;
    assert_eq!(listed.await.unwrap().len(), 2);
}

/// Also behind a pooler. A connection that is shared waits for the answers of the others until they time out.
#[tokio::test]
async fn a_statement_that_nobody_waits_for_is_ended_in_the_server() {
    let fixture = Fixture::new().await;
    let seller = fixture.seller().await;
    let lock = "begin; lock table connections, applications in access exclusive mode";
    let pooler = PgBouncer::is_installed().then(|| PgBouncer::start(&fixture.test_database, 3, 100));
    let pooler = OptionFuture::from(pooler).await;
    let urls = [
        Some(fixture.test_database.url()),
        pooler.as_ref().map(PgBouncer::url),
    ];
    for url in urls.into_iter().flatten() {
        let database = handle(settings(url, 1));
        let grants = database.grants();
        assert!(grants.connections(seller, None, 50).await.unwrap().is_empty());
        fixture.tamper(lock).await;
        tokio::select! {
            page = grants.connections(seller, None, 50) => is_unavailable(page),
            () = fixture.wait_for_blocked_session() => {}
        }
        fixture.nothing_waits().await;
        is_unavailable(database.applications().client(id().into()).await);
        fixture.nothing_waits().await;
        fixture.tamper("rollback").await;
        // Workers would leave one more behind with each repetition.
        let lock = "begin; lock table subscriptions, audit_log in access exclusive mode";
        fixture.tamper(lock).await;
        is_unavailable(database.subscription_queues().claim(id(), CAPACITY).await);
        is_unavailable(database.analyze_grown_tables().await);
        fixture.nothing_waits().await;
        fixture.tamper("rollback").await;
    }
}

/// Else a stranger who resets requests could have a connection opened for each.
#[tokio::test]
async fn a_statement_that_nobody_waits_for_but_ends_soon_leaves_its_connection_to_the_pool() {
    const OTHERS: &str = "select pid::text from pg_stat_activity
        where backend_type = 'client backend' and datname = current_database() and pid <> pg_backend_pid() order by pid";
    let fixture = Fixture::new().await;
    let (seller, database) = (fixture.seller().await, fixture.another(1));
    let (grants, locking) = (database.grants(), fixture.test_database.connect().await);
    let read = || grants.connections(seller, None, 50);
    // On a busy machine it may be too late.
    let mut is_kept = false;
    for _ in 0..10 {
        drop(read().await.unwrap());
        let before = fixture.texts(OTHERS).await;
        let lock = "begin; lock table connections in access exclusive mode";
        locking.batch_execute(lock).await.unwrap();
        tokio::select! {
            page = read() => is_unavailable(page),
            () = fixture.wait_for_blocked_session() => {}
        }
        locking.batch_execute("rollback").await.unwrap();
        drop(read().await.unwrap());
        is_kept |= fixture.texts(OTHERS).await == before;
    }
    assert!(is_kept);
}

/// Orders may be large. Reads that nobody waits for are on the connection until they are answered.
#[tokio::test]
async fn a_seller_reads_few_orders_by_id_at_a_time() {
    let fixture = Fixture::new().await;
    let seller = fixture.seller().await;
    let proxy = StatementProxy::to(&fixture.test_database);
    let orders = handle(settings(proxy.url(), 1)).order_reader();
    let ids: BTreeSet<OrderId> = (0..12).map(|_| id().into()).collect();
    let read = || orders.orders_by_id(seller.into(), &ids);
    let numbered = OrderRef::Number(OrderNumber::new("ZAM-1".to_owned()).unwrap());
    let by_number = || orders.order(seller.into(), &numbered);
    read().await.unwrap();
    by_number().await.unwrap();
    fixture
        .tamper("begin; lock table seller_orders in access exclusive mode")
        .await;
    proxy.record();
    for _ in 0..40 {
        drop(read().now_or_never());
        drop(by_number().now_or_never());
        tokio::task::yield_now().await;
    }
    fixture.tamper("rollback").await;
    read().await.unwrap();
    by_number().await.unwrap();
    // Two of each, before these.
    assert_eq!(proxy.recorded().len(), 2 + 2 + 2);
    let one = OrderRef::Id(id().into());
    orders.order(seller.into(), &one).await.unwrap();
    proxy.record();
    join_all((0..40).map(|_| orders.order(seller.into(), &one))).await;
    assert!(proxy.recorded().len() >= 40 / 2, "{:?}", proxy.recorded());
}

#[tokio::test]
async fn pages_of_one_batch_hold_only_their_own_rows() {
    let fixture = Fixture::new().await;
    let (offers, orders) = (fixture.database.offer_reader(), fixture.database.order_reader());
    let mut questions = Vec::new();
    for rows in ["60", "0", "9"] {
        let seller = fixture.seller().await;
        let fill = FILL.replace("{seller}", &seller.to_string());
        fixture.tamper(&fill.replace("{rows}", rows)).await;
        for filtered in [false, true] {
            questions.extend([1, 7, 200].map(|size| (seller, filtered, PageSize::clamped(size))));
        }
    }
    let page = async |(seller, filtered, size): (SellerId, bool, PageSize), (offer, order)| {
        let drafts = OfferFilter {
            status: filtered.then_some(OfferStatus::Draft),
            ..OfferFilter::default()
        };
        let cancelled = OrderFilter {
            status: filtered.then_some(OrderStatus::Cancelled),
            ..OrderFilter::default()
        };
        let both = join!(
            offers.offers(seller.into(), drafts, offer, size),
            orders.orders(seller.into(), cancelled, order, size)
        );
        (both.0.unwrap(), both.1.unwrap())
    };
    // All at once, which are several batches, and then their next pages.
    let first = join_all(questions.iter().map(|question| page(*question, (None, None)))).await;
    let nexts: Vec<_> = first
        .iter()
        .map(|(offers, orders)| (offers.next, orders.next))
        .collect();
    let next = join_all(
        questions
            .iter()
            .zip(&nexts)
            .map(|(question, next)| page(*question, *next)),
    )
    .await;
    for (((question, first), next), after) in questions.into_iter().zip(first).zip(next).zip(nexts) {
        assert_eq!(page(question, (None, None)).await, first, "{question:?}");
        assert_eq!(page(question, after).await, next, "{question:?}");
    }
}

#[tokio::test]
async fn a_hundred_pages_of_one_seller_or_application_hold_up_no_page_of_another() {
    let fixture = Fixture::new().await;
    let offers = fixture.database.offer_reader();
    let (busy, other) = (fixture.seller().await, fixture.seller().await);
    let page = async |reader: Reader| {
        let page = offers.offers(reader, OfferFilter::default(), None, PageSize::clamped(50));
        assert!(page.await.unwrap().items.is_empty());
    };
    let application = Some(id());
    let of_application = || Reader {
        seller: id().into(),
        application,
    };
    let of_seller: Vec<_> = (0..100).map(|_| busy.into()).collect();
    for crowd in [of_seller, (0..100).map(|_| of_application()).collect()] {
        let mut hundred = pin!(join_all(crowd.into_iter().map(&page)));
        // Asked for last, and read before all these are.
        tokio::select! {
            biased;
            _ = &mut hundred => panic!("it waited for all pages of the others"),
            () = page(other.into()) => {}
        }
        hundred.await;
    }
}
