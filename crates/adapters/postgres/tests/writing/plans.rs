//! What has to stay cheap however many orders there are: the adapter's own statements, as the server saw them, planned for any
//! values and run at depth over 200 000 orders of one seller.

use chrono::{DateTime, Utc};
use kernel::{Keyset, PageSize, SellerId};
use orders::{OrderFilter, OrderRef, OrderStatus};

use self::plan::{Plan, sent};
use crate::support::Fixture;

#[path = "../shared/plan.rs"]
mod plan;

const TABLE: &str = "seller_orders";

const SELLER: &str = "00000000-0000-7000-8000-00000000a000";
const PAGE: i64 = 201;
/// The order number 160 000 of 200 000, newest first.
const DEEP_AT: &str = "2026-01-01T11:06:40Z";
const DEEP_ID: &str = "00000000-0000-7000-8000-000000009c40";

/// 200 000 orders of one seller, one a second, of which a half is cancelled; every 100th has changed in June, and one in 20 in
/// May. A quarter as many of other sellers.
const FILL: &str = "
    insert into sellers (id, name, email, created_at) overriding system value
      select ('00000000-0000-7000-8000-00000000a' || lpad(n::text, 3, '0'))::uuid, 's', 's' || n || '@x', api_now()
      from generate_series(0, 20) n;
    insert into seller_orders (seller_id, order_id, placed_at, updated_at, cancelled_at, is_test, several_sellers, status,
        number, items)
      select ('00000000-0000-7000-8000-00000000a' || lpad(case when m = 0 then 0 else 1 + n % 20 end::text, 3, '0'))::uuid,
        ('00000000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid, t,
        case when n % 100 = 0 then '2026-06-01' when n % 20 = 0 then '2026-05-01' else t end,
        case when n % 2 = 0 then t end, false, false, case when n % 2 = 0 then 'cancelled' else 'pending' end, 'N-' || n || '-' || m,
        '[{\"offer\":\"00000000-0000-0000-0000-000000000001\",\"title\":\"A kettle of 1.7 l\",\"quantity\":1,\"unit_price\":12999}]'
      from (select n, m, timestamptz '2026-01-01Z' + n * interval '1 s' as t
        from generate_series(1, 200000) n, generate_series(0, 1) m where m = 0 or n % 4 = 0) x;
    analyze seller_orders, sellers";

fn quoted(text: &str) -> String {
    format!("'{text}'")
}

#[tokio::test]
async fn reads_of_orders_use_their_index_at_any_depth() {
    let fixture = Fixture::new().await;
    fixture.tamper(FILL).await;
    fixture.tamper("vacuum seller_orders").await;
    let client = fixture.place.connect().await;
    let seller: SellerId = SELLER.parse().unwrap();
    let reader = fixture.database.order_reader();
    let (first, deep) = (
        None,
        Some(Keyset {
            at: DEEP_AT.parse().unwrap(),
            id: DEEP_ID.parse().unwrap(),
        }),
    );
    let (statuses, instants) = (
        [None, Some(OrderStatus::Cancelled)],
        [None, Some("2026-01-01T01:00:00Z")],
    );
    for status in statuses {
        for placed_after in instants {
            for after in [first, deep] {
                for (updated_after, few) in [
                    (None, false),
                    (Some("2025-01-01T00:00:00Z"), false),
                    (Some("2026-05-15T00:00:00Z"), true),
                    (Some("2026-04-15T00:00:00Z"), false),
                ] {
                    let instant =
                        |text: Option<&str>| -> Option<DateTime<Utc>> { Some(text?.parse().unwrap()) };
                    let filter = OrderFilter {
                        status,
                        placed_after: instant(placed_after),
                        updated_after: instant(updated_after),
                    };
                    let what = format!("{filter:?} after {after:?}");
                    let page = reader
                        .orders(seller, filter, after, PageSize::clamped(200))
                        .await
                        .unwrap();
                    assert_eq!(page.items.len(), 200, "{what}");
                    let sql = sent(&client, TABLE).await;
                    let arguments = arguments(filter, updated_after, few, after);
                    let plan = Plan::of(&client, &sql, &arguments.join(", ")).await;
                    let by_status = if status.is_some() {
                        "seller_orders_newest_by_status_idx"
                    } else {
                        "seller_orders_newest_idx"
                    };
                    // One in 20 has changed in spring: the walk passes the others over. Of the cancelled it is one in 10.
                    let spring = updated_after.is_some_and(|at| at.starts_with("2026-04"));
                    let (index, rows) = if few {
                        ("seller_orders_updated_idx", 2_000)
                    } else {
                        (by_status, if spring { 21 * PAGE } else { PAGE })
                    };
                    plan.scans(TABLE, index, rows, &what);
                    assert!(few || !plan.sorts(), "{what}");
                }
            }
        }
    }

    let by_id = OrderRef::Id(DEEP_ID.parse().unwrap());
    assert!(reader.order(seller, &by_id).await.unwrap().is_some());
    let arrays = [
        format!("array['{SELLER}', '{SELLER}']::uuid[]"),
        format!("array['{DEEP_ID}', '{SELLER}']::uuid[]"),
    ];
    let plan = Plan::of(&client, &sent(&client, TABLE).await, &arrays.join(", ")).await;
    // Either index over both columns does; the filter must not be what tells sellers apart.
    plan.scans(TABLE, "seller_orders_parts_idx", 2, "by id");
    assert!(!plan.0.iter().any(|node| node["Filter"].is_string()), "{plan:#?}");
    let by_number = OrderRef::parse("N-40000-0").unwrap();
    assert!(reader.order(seller, &by_number).await.unwrap().is_some());
    let plan = Plan::of(
        &client,
        &sent(&client, TABLE).await,
        &format!("{}, {}", quoted(SELLER), quoted("N-40000-0")),
    )
    .await;
    plan.scans(TABLE, "seller_orders_number_key", 1, "by number");
    assert_eq!(
        fixture
            .database
            .order_directory()
            .parts(&by_id)
            .await
            .unwrap()
            .len(),
        2
    );
    let plan = Plan::of(&client, &sent(&client, TABLE).await, &quoted(DEEP_ID)).await;
    plan.scans(TABLE, "seller_orders_parts_idx", 2, "all parts");
}

/// The values of a page's statement, in its order.
fn arguments(
    filter: OrderFilter,
    updated_after: Option<&str>,
    few: bool,
    after: Option<Keyset>,
) -> Vec<String> {
    let instant = |at: DateTime<Utc>| quoted(&at.to_rfc3339());
    let mut arguments = vec![quoted(SELLER)];
    arguments.extend(filter.status.map(|status| quoted(status.as_str())));
    // Everything was placed after this one, so all of it is found by that.
    let everything = updated_after.is_some_and(|at| at.starts_with("2025"));
    if few {
        arguments.extend([quoted(updated_after.unwrap()), "5001".to_owned()]);
    }
    match (filter.placed_after, everything) {
        (Some(at), _) => arguments.push(instant(at)),
        (None, true) => arguments.push(quoted(updated_after.unwrap())),
        (None, false) => {}
    }
    if let Some(at) = updated_after.filter(|_| !everything) {
        arguments.push(quoted(at));
        arguments.extend((!few).then(|| quoted(at)));
    }
    arguments.extend(
        after
            .into_iter()
            .flat_map(|after| [instant(after.at), quoted(&after.id.to_string())]),
    );
    arguments.push(PAGE.to_string());
    arguments.extend(few.then(|| quoted(SELLER)));
    arguments
}
