//! Lists, the feed and pages of the panel that must stay cheap however large the tables are: the rows and
//! pages that the server reads per call, with generic plans (which a prepared statement may get), except
//! where the transaction asks for others.

use accounts::{UsageCount, UsageKey};
use adapter_postgres::Database;
use chrono::TimeDelta;
use kernel::{Keyset, PageSize, SellerId};
use offers::{OfferCode, OfferFilter, OfferStatus};
use orders::{OrderFilter, OrderRef, OrderStatus};
use uuid::Uuid;
use webhooks::DeliveryFilter;

use crate::feed::follow;
use crate::support::{Fixture, Parties, id};

impl Fixture {
    /// A filled and analyzed database with generic plans.
    pub(crate) async fn filled(&self, fill: &str) {
        self.tamper(fill).await;
        // Rows of which the commit is not on disk yet would not become visible to all, and index-only scans
        // would read them.
        self.tamper("set synchronous_commit = on").await;
        self.tamper("select pg_logical_emit_message(true, '', '')").await;
        self.tamper("vacuum analyze").await;
        self.set("plan_cache_mode", "force_generic_plan").await;
    }

    /// A number of the server's statistics, once all sessions have reported theirs.
    pub(crate) async fn statistic(&self, sql: &str) -> i64 {
        self.reported().await;
        self.count(sql).await
    }

    /// Waits until all sessions have reported their statistics.
    async fn reported(&self) {
        self.wait_until_alone().await;
        self.tamper("select pg_stat_force_next_flush()").await;
    }

    /// Table rows read, and pages read of tables and indexes.
    async fn read(&self) -> (i64, i64) {
        self.reported().await;
        let sql = "select (select sum(seq_tup_read + coalesce(idx_tup_fetch, 0)) from pg_stat_user_tables)::bigint, \
            (select sum(heap_blks_hit + heap_blks_read + coalesce(idx_blks_hit + idx_blks_read, 0)) from pg_statio_user_tables)::bigint";
        let row = self.client.query_one(sql, &[]).await.unwrap();
        (row.get(0), row.get(1))
    }

    /// `work`, with its own handle, may read at most this many rows, and a proportional number of pages.
    pub(crate) async fn costs(&self, what: &str, most: i64, work: impl AsyncFnOnce(&Database)) {
        let before = self.read().await;
        let database = self.another(1);
        work(&database).await;
        drop(database);
        let after = self.read().await;
        let (rows, pages) = (after.0 - before.0, after.1 - before.1);
        // Each new connection looks at the database's identity.
        let most = most + 20;
        assert!(rows <= most, "{what}: {rows} rows");
        assert!(pages <= 6 * most + 300, "{what}: {pages} pages");
    }
}

const SELLER: &str = "00000000-0000-7000-8000-00000000a000";
/// The id of item number 70 000 of 100 000, newest first.
const DEEP: &str = "00000000-0000-7000-8000-000000007530";
const DEEP_AT: &str = "2026-01-01T08:20:00Z";
/// A page of 200, the row that shows whether more follow, and some rows for finding its start.
const PAGE: i64 = 201 + 20;

/// 100 000 offers and orders of one seller, one a second; half of them are drafts, or cancelled; every 100th
/// was updated in June, and one in 10 in May; all have one EAN, and two each external id. As many offers of
/// other sellers, and a quarter as many parts of the same orders.
const LISTS: &str = "
    insert into sellers (id, name, email, created_at) overriding system value
      select ('00000000-0000-7000-8000-00000000a' || lpad(n::text, 3, '0'))::uuid, 's', 's' || n || '@x', api_now()
      from generate_series(0, 20) n;
    create temporary table things as
      select ('00000000-0000-7000-8000-00000000a' || lpad(case when m = 0 then 0 else 1 + n % 20 end::text, 3, '0'))::uuid as seller,
        ('00000000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid as id, n, m, timestamptz '2026-01-01Z' + n * interval '1 s' as t,
        case when n % 100 = 0 then '2026-06-01' when n % 10 = 0 then '2026-05-01'
          else timestamptz '2026-01-01Z' + n * interval '1 s' end as updated
      from generate_series(1, 100000) n, generate_series(0, 1) m;
    insert into offers (seller_id, id, created_at, updated_at, status, title, handle, url, price_amount, price_source, ean, external_id)
      select seller, id, t, updated, case when n % 2 = 0 then 'draft' else 'published' end, repeat('t', 80), 'h',
        'https://shop.example/' || n, 5, 'manual', 'same', 'SKU-' || n % 50000 from things;
    insert into seller_orders (seller_id, order_id, placed_at, updated_at, cancelled_at, is_test, several_sellers, status,
        number, items)
      select seller, id, t, updated, case when n % 2 = 0 then t end, false, false,
        case when n % 2 = 0 then 'cancelled' else 'pending' end, 'N-' || n || '-' || m,
        '[{\"offer\":\"00000000-0000-0000-0000-000000000001\",\"title\":\"A kettle of 1.7 l\",\"quantity\":1,\"unit_price\":12999}]'
      from things where m = 0 or n % 4 = 0;
    insert into changes (seller_id, at, kind, order_id) select seller, t, 'order.shipped', id from things where n % 100 = 0";

async fn coded_offers_are_read_by_their_index(fixture: &Fixture, seller: SellerId, size: PageSize) {
    // Of all offers none, two, and a page, matching or not.
    let absent = OfferCode::ALL.map(|code| (code, "another", None, (0, false), 12));
    let coded = [
        (OfferCode::EXTERNAL_ID, "SKU-7", None, (2, false), 12),
        (OfferCode::EAN, "same", None, (200, true), PAGE),
        (
            OfferCode::EAN,
            "same",
            Some(OfferStatus::Rejected),
            (0, true),
            PAGE,
        ),
    ];
    for (code, text, status, expected, most) in absent.into_iter().chain(coded) {
        let filter = OfferFilter {
            status,
            updated_after: None,
            codes: vec![(code, text.to_owned())],
        };
        let what = format!("{filter:?}");
        let read = async |database: &Database| {
            let page = database
                .offer_reader()
                .offers(seller.into(), filter, None, size)
                .await;
            let page = page.unwrap();
            assert_eq!((page.items.len(), page.next.is_some()), expected, "{what}");
        };
        fixture.costs(&what, most, read).await;
    }
}

#[tokio::test]
async fn deep_pages_of_lists_are_read_by_their_index() {
    let fixture = Fixture::new().await;
    fixture.filled(LISTS).await;
    let seller: SellerId = SELLER.parse().unwrap();
    let (size, deep) = (PageSize::clamped(200), DEEP.parse().unwrap());
    let after = Some(Keyset {
        at: DEEP_AT.parse().unwrap(),
        id: deep,
    });
    // All those created since then; 1 000 updated ones, few enough to be sorted; 10 000, of which the walk
    // meets one in 10.
    for (updated_after, most) in [
        (None, PAGE),
        (Some("2025-01-01T00:00:00Z"), PAGE),
        (Some("2026-05-15T00:00:00Z"), 2 * 1_000 + PAGE),
        (Some("2026-04-15T00:00:00Z"), 5_001 + 11 * PAGE),
    ] {
        let updated_after = updated_after.map(|at| at.parse().unwrap());
        for status in [None, Some(OfferStatus::Draft)] {
            let filter = OfferFilter {
                status,
                updated_after,
                ..OfferFilter::default()
            };
            let what = format!("{filter:?}");
            let read = async |database: &Database| {
                let reader = database.offer_reader();
                let page = reader.offers(seller.into(), filter.clone(), after, size).await;
                assert_eq!(page.unwrap().items.len(), 200, "{what}");
            };
            fixture.costs(&what, most, read).await;
        }
        for (status, placed_after) in [
            (None, None),
            (Some(OrderStatus::Cancelled), None),
            (
                Some(OrderStatus::Cancelled),
                Some("2026-01-01T01:00:00Z".parse().unwrap()),
            ),
        ] {
            let filter = OrderFilter {
                status,
                placed_after,
                updated_after,
            };
            let what = format!("{filter:?}");
            let read = async |database: &Database| {
                let page = database
                    .order_reader()
                    .orders(seller.into(), filter, after, size)
                    .await;
                assert_eq!(page.unwrap().items.len(), 200, "{what}");
            };
            fixture.costs(&what, most, read).await;
        }
    }
    coded_offers_are_read_by_their_index(&fixture, seller, size).await;
    let one = async |database: &Database| {
        let offer = database.offer_reader().offer(seller.into(), deep.into()).await;
        let by_id = OrderRef::Id(deep.into());
        let order = database
            .order_reader()
            .order(seller.into(), &by_id)
            .await
            .unwrap();
        let by_number = "N-30000-0".parse::<OrderRef>().unwrap();
        let numbered = database.order_reader().order(seller.into(), &by_number).await;
        assert_eq!(numbered.unwrap(), order);
        let parts = database.order_directory().parts(&by_id).await.unwrap();
        assert!(offer.unwrap().is_some() && order.is_some() && parts.len() == 2);
    };
    fixture.costs("one", 12, one).await;
    let hundred = async |database: &Database| {
        let ids = (1..=100).map(|n| Uuid::from_u128(deep.as_u128() - n * 100));
        let offer_ids = ids.clone().map(Into::into).collect();
        let order_ids = ids.map(Into::into).collect();
        let offers = database
            .offer_reader()
            .offers_by_id(seller.into(), &offer_ids)
            .await;
        let orders = database
            .order_reader()
            .orders_by_id(seller.into(), &order_ids)
            .await;
        assert_eq!((offers.unwrap().len(), orders.unwrap().len()), (100, 100));
    };
    fixture.costs("a hundred", 2 * 100 + 20, hundred).await;
    follow(&*fixture.database.change_reader(), None, 100).await;
    let feed = async |database: &Database| {
        let reader = database.change_reader();
        let first = reader.changes(None, 50).await.unwrap();
        let second = reader.changes(Some(first.next), 50).await.unwrap();
        assert_eq!(second.items.len(), 50);
    };
    fixture.costs("the feed", 120, feed).await;
}

/// 50 000 offers and orders of one seller, of which the oldest 20 000 were updated in June; the newest ten
/// are rejected, or cancelled.
const FAR_END: &str = "
    insert into sellers (id, name, email, created_at) values ('00000000-0000-7000-8000-00000000a000', 's', 's@x', api_now());
    create temporary table things as
      select ('00000000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid as id, n, timestamptz '2026-01-01Z' + n * interval '1 s' as t,
        case when n <= 20000 then '2026-06-01Z' else timestamptz '2026-01-01Z' + n * interval '1 s' end as updated
      from generate_series(1, 50000) n;
    insert into offers (seller_id, id, created_at, updated_at, status, title, handle, url)
      select '00000000-0000-7000-8000-00000000a000', id, t, updated, case when n > 49990 then 'rejected' else 'draft' end, 't', 'h', 'u'
      from things;
    insert into seller_orders (seller_id, order_id, placed_at, updated_at, cancelled_at, is_test, several_sellers, status, number, items)
      select '00000000-0000-7000-8000-00000000a000', id, t, updated, case when n > 49990 then t end, false, false,
        case when n > 49990 then 'cancelled' else 'pending' end, 'N-' || n,
        '[{\"offer\":\"00000000-0000-0000-0000-000000000001\",\"quantity\":1}]' from things";

/// The first page costs a bounded number of rows, and the pages lead to this many items, some over empty
/// ones.
async fn leads_to(
    fixture: &Fixture,
    items: usize,
    what: &str,
    page: impl AsyncFn(&Database, Option<Keyset>) -> (usize, Option<Keyset>),
) {
    const EXAMINED: i64 = 2 * 5_001 + 2 * PAGE;
    let entries = "select sum(idx_tup_read)::bigint from pg_stat_user_indexes";
    let before = fixture.statistic(entries).await;
    let first = async |database: &Database| assert_eq!(page(database, None).await.0, 0, "{what}");
    fixture.costs(what, EXAMINED, first).await;
    let read = fixture.count(entries).await - before;
    assert!(read <= EXAMINED, "{what}: {read} index entries");
    let (mut found, mut after) = (0, None);
    loop {
        let (here, next) = page(&fixture.database, after).await;
        found += here;
        after = next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(found, items, "{what}");
}

#[tokio::test]
async fn whatever_the_filter_a_page_examines_a_bounded_number_of_rows_and_leads_on() {
    let fixture = Fixture::new().await;
    fixture.filled(FAR_END).await;
    let seller: SellerId = SELLER.parse().unwrap();
    let size = PageSize::clamped(200);
    let updated_after = Some("2026-05-01T00:00:00Z".parse().unwrap());
    for (rare, items) in [(false, 20_000), (true, 0)] {
        let filter = OfferFilter {
            status: rare.then_some(OfferStatus::Rejected),
            updated_after,
            ..OfferFilter::default()
        };
        let page = async |database: &Database, after| {
            let reader = database.offer_reader();
            let page = reader
                .offers(seller.into(), filter.clone(), after, size)
                .await
                .unwrap();
            (page.items.len(), page.next)
        };
        leads_to(&fixture, items, &format!("{filter:?}"), page).await;
        let filter = OrderFilter {
            status: rare.then_some(OrderStatus::Cancelled),
            placed_after: Some("2025-01-01T00:00:00Z".parse().unwrap()),
            updated_after,
        };
        let page = async |database: &Database, after| {
            let reader = database.order_reader();
            let page = reader.orders(seller.into(), filter, after, size).await.unwrap();
            (page.items.len(), page.next)
        };
        leads_to(&fixture, items, &format!("{filter:?}"), page).await;
    }
}

/// 20 000 tokens of the sellers' own applications.
const OWN_USE: &str = "
    insert into families (id, seller_id, client_id, kind, scopes)
      select gen_random_uuid(), seller_id, client_id, kind, scopes from families, generate_series(1, 20000)
      where kind = 'client_credentials';
    insert into access_tokens (family_id, hash, expires_at)
      select id, sha256(uuid_send(id)), api_now() + interval '1 day' from families where kind = 'client_credentials'
      on conflict do nothing";

/// 2 000 more sellers, each with an application like the first one: too many to be read whole.
pub(crate) const OTHERS: &str = "
    insert into sellers (id, name, email, created_at)
      select gen_random_uuid(), 's', 's' || n || '@x', api_now() from generate_series(1, 2000) n;
    insert into applications select (jsonb_populate_record(null::applications,
        to_jsonb(a) || jsonb_build_object('client_id', gen_random_uuid(), 'name', 'Other ' || s.email, 'owner_id', s.id))).*
      from (select * from applications limit 1) a, sellers s where s.name = 's'";

/// 300 more subscriptions like the first one, and 60 failed deliveries to each.
const RECEIVERS: &str = "
    insert into subscriptions select (jsonb_populate_record(null::subscriptions,
        to_jsonb(s) || jsonb_build_object('id', gen_random_uuid()))).*
      from (select * from subscriptions limit 1) s, generate_series(1, 300);
    insert into deliveries (seller_id, subscription_id, id, created_at, attempt, response_status, event, body)
      select seller_id, id, api_uuid(api_now()), api_now(), 6, 500, 'order.paid', convert_to(repeat('x', 1000), 'UTF8')
      from subscriptions, generate_series(1, 60)";

/// 5 000 more consents to an application.
const CONSENTS: &str = "
    insert into families select (jsonb_populate_record(null::families, to_jsonb(f) || jsonb_build_object('id', gen_random_uuid(), 'created_at', clock_timestamp()))).*
      from (select * from families where generation is not null limit 1) f, generate_series(1, 5000)";

#[tokio::test]
async fn the_panel_reads_the_rows_that_it_shows() {
    let fixture = Fixture::new().await;
    let parties = Parties::new(&fixture).await;
    parties.pair(&fixture).await;
    let (seller, client_id) = (parties.seller, parties.client_id());
    fixture.token(&fixture.application(seller).await).await;
    let counted = (0..2_000_u128).flat_map(|n| {
        [
            (id().into(), 200),
            (id().into(), 404),
            (seller, 200 + u16::try_from(n % 300).unwrap()),
        ]
    });
    let counted = counted.map(|(seller, status)| UsageCount {
        key: UsageKey {
            seller,
            client_id,
            status,
        },
        calls: 2,
    });
    let usage = fixture.database.usage();
    usage.add_usage(counted.collect()).await.unwrap();
    fixture.subscribe(seller, client_id).await;
    fixture
        .filled(&format!("{OWN_USE};{RECEIVERS};{OTHERS};{CONSENTS}"))
        .await;
    let now = fixture.now().await;
    let shown = async |database: &Database| {
        let since = now - TimeDelta::days(1);
        let (hours, _) = database.panel().usage(seller, client_id, since).await.unwrap();
        let calls = |status| -> u64 {
            let of_it = hours.iter().filter(|hour| hour.status == status);
            of_it.map(|hour| hour.calls).sum()
        };
        assert_eq!((calls(201), calls(404), calls(200)), (14, 4_012, 4_014));
    };
    fixture
        .costs("the usage of an application", 2 * 300 + 20, shown)
        .await;
    let shown = async |database: &Database| {
        let connections = database.grants().connections(seller, None, 50).await.unwrap();
        assert!(connections.iter().all(|connection| connection.used_at.is_some()) && connections.len() == 1);
    };
    // The newest fifty consents.
    fixture.costs("the connections of a seller", 50 + 30, shown).await;
    let shown = async |database: &Database| {
        let (reader, mut listed) = (database.subscriptions(), Vec::new());
        for rows in [200, 101] {
            let after = listed.last().copied();
            let page = reader.subscriptions_of_seller(seller, after, 200).await.unwrap();
            assert_eq!(page.len(), rows);
            listed.extend(page.iter().map(|own| own.subscription.id));
            let chosen = reader.subscription_of_seller(seller, listed[0]).await.unwrap();
            assert_eq!(chosen.map(|own| own.subscription.id), Some(listed[0]));
        }
        assert!(listed.is_sorted() && listed.windows(2).all(|two| two[0] != two[1]));
    };
    // Each with the rows that tell whether it has ended: application, its owner, the seller, connection.
    fixture
        .costs("the subscriptions of a seller", 5 * 303 + 50, shown)
        .await;
    for failed in [false, true] {
        let filter = DeliveryFilter {
            failed,
            ..DeliveryFilter::default()
        };
        let shown = async |database: &Database| {
            let (reader, mut listed) = (database.subscriptions(), Vec::new());
            for _ in 0..2 {
                let before = listed.last().copied();
                let page = reader.deliveries_of_seller(seller, filter, before, 51).await;
                let page = page.unwrap();
                assert_eq!(page.len(), 51);
                for row in &page {
                    assert!(row.active && row.app_name.starts_with("App "));
                }
                listed.extend(page.iter().map(|row| row.delivery.id));
            }
            assert!(listed.windows(2).all(|two| two[0] > two[1]));
        };
        // Each subscription and its application, and what tells the state of a delivery.
        let most = 2 * (2 * 301 + 51 * 6);
        fixture.costs("the deliveries of a seller", most, shown).await;
    }
}

/// 20 000 tokens of the family that each begins with.
const MANY_TOKENS: &str = "
    insert into families (id, seller_id, client_id, kind, scopes)
      select gen_random_uuid(), seller_id, client_id, kind, scopes from families, generate_series(1, 20000);
    insert into access_tokens (family_id, hash) select id, sha256(uuid_send(id)) from families";

#[tokio::test]
async fn a_plan_made_for_few_rows_is_replaced_once_the_tables_have_grown() {
    let fixture = Fixture::new().await;
    let seller = fixture.seller().await;
    let token = fixture.token(&fixture.application(seller).await).await;
    fixture.tamper("analyze").await;
    let gate = fixture.database.gate();
    // From the sixth time on the server keeps its plan.
    for grows in [true, false] {
        for _ in 0..10 {
            assert!(gate.admit(token).await.unwrap().is_ok());
        }
        if grows {
            fixture.tamper(MANY_TOKENS).await;
            fixture.database.analyze_grown_tables().await.unwrap();
        }
    }
    let read = "select sum(seq_tup_read)::bigint from pg_stat_user_tables where relname in ('families', 'access_tokens')";
    let read = fixture.statistic(read).await;
    assert!(read < 50_000, "{read} rows");
}
