//! The list of orders: every combination of filters against a plain model of the rules.

use chrono::{DateTime, TimeDelta, Utc};
use kernel::{Keyset, PageSize, SellerId};
use orders::{Carrier, Cause, OrderFilter, OrderStatus, SellerOrder};

use crate::support::{Fixture, instant, paid, part, shipment, shipped};

/// Sixty parts, several of them placed at one instant, in every status, changed sooner or later, every seventh a test.
fn some(seller: SellerId) -> Vec<SellerOrder> {
    let one = |n: i64| {
        let new = part(seller, instant() + TimeDelta::hours(n / 4));
        let later = new.placed_at + TimeDelta::hours((n * 7) % 20);
        let moved = match n % 5 {
            0 => new,
            1 => paid(new),
            2 => shipped(new, Carrier::Dpd),
            3 => new.cancel(later).unwrap().after,
            _ => {
                paid(new)
                    .ship(shipment(Carrier::Other), Cause::Seller, later)
                    .unwrap()
                    .after
            }
        };
        SellerOrder {
            is_test: n % 7 == 0,
            updated_at: moved.updated_at.max(later),
            ..moved
        }
    };
    (0..60).map(one).collect()
}

fn expected(parts: &[SellerOrder], filter: OrderFilter) -> Vec<SellerOrder> {
    let fits = |part: &&SellerOrder| {
        !part.is_test
            && filter.status.is_none_or(|status| part.status() == status)
            && filter.placed_after.is_none_or(|instant| part.placed_at > instant)
            && filter
                .updated_after
                .is_none_or(|instant| part.updated_at > instant)
    };
    let mut fitting = parts.iter().filter(fits).cloned().collect::<Vec<_>>();
    fitting.sort_by_key(|part| std::cmp::Reverse((part.placed_at, part.id)));
    fitting
}

#[tokio::test]
async fn every_combination_of_filters_lists_what_fits_in_pages_of_any_size() {
    let fixture = Fixture::new().await;
    let (seller, other) = (fixture.seller().await, fixture.seller().await);
    let parts = some(seller);
    fixture.save(&parts).await;
    fixture.save(&some(other)).await;
    let reader = fixture.database.order_reader();
    let read_all = async |filter: OrderFilter, size: i64| {
        let (mut found, mut after) = (Vec::new(), None::<Keyset>);
        loop {
            let page = reader
                .orders(seller, filter, after, PageSize::clamped(size))
                .await
                .unwrap();
            found.extend(page.items);
            after = page.next;
            if after.is_none() {
                return found;
            }
        }
    };
    let statuses = [
        None,
        Some(OrderStatus::Pending),
        Some(OrderStatus::Shipped),
        Some(OrderStatus::Delivered),
    ];
    let hours: [Option<i64>; 6] = [None, Some(-1), Some(0), Some(5), Some(14), Some(99)];
    let at = |hours: Option<i64>| -> Option<DateTime<Utc>> { Some(instant() + TimeDelta::hours(hours?)) };
    for status in statuses {
        for placed in hours {
            for updated in hours {
                let filter = OrderFilter {
                    status,
                    placed_after: at(placed),
                    updated_after: at(updated),
                };
                for size in [1, 7, 200] {
                    assert_eq!(
                        read_all(filter, size).await,
                        expected(&parts, filter),
                        "{filter:?} by {size}"
                    );
                }
            }
        }
    }
}

#[tokio::test]
async fn where_much_has_changed_the_list_is_the_same() {
    const MANY: &str = "insert into seller_orders (seller_id, order_id, placed_at, updated_at, is_test, several_sellers, \
          status, number, items)
        select (select id from sellers), ('01900000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid,
          timestamptz '2026-01-01Z' + n * interval '1 minute', timestamptz '2026-02-01Z' + (n % 3) * interval '1 day',
          false, false, 'pending', 'N-' || n, '[{\"offer\":\"00000000-0000-0000-0000-000000000001\",\"quantity\":1}]'
        from generate_series(1, 8000) n";
    let fixture = Fixture::new().await;
    let seller = fixture.seller().await;
    fixture.tamper(MANY).await;
    let reader = fixture.database.order_reader();
    let filter = |updated_after: &str| OrderFilter {
        updated_after: Some(updated_after.parse().unwrap()),
        placed_after: Some("2026-01-02T00:00:00Z".parse().unwrap()),
        ..OrderFilter::default()
    };
    let read_all = async |updated_after: &str| {
        let (mut found, mut after) = (Vec::new(), None::<Keyset>);
        loop {
            let filter = filter(updated_after);
            let page = reader
                .orders(seller, filter, after, PageSize::clamped(200))
                .await
                .unwrap();
            found.extend(page.items.iter().map(|part| (part.placed_at, part.id)));
            after = page.next;
            if after.is_none() {
                return found;
            }
        }
    };
    // Days of change: all, two of three (more than are sorted), one of three (few enough to be sorted).
    for (updated_after, first_day) in [
        ("2026-01-20T00:00:00Z", 0),
        ("2026-02-01T12:00:00Z", 1),
        ("2026-02-02T12:00:00Z", 2),
    ] {
        let found = read_all(updated_after).await;
        let sql = format!(
            "select count(*) from seller_orders where placed_at > '2026-01-02Z' \
            and (updated_at > '{updated_after}' or placed_at > '{updated_after}')"
        );
        assert!(
            found.is_sorted_by(|earlier, later| earlier > later),
            "{first_day}"
        );
        assert_eq!(
            i64::try_from(found.len()).unwrap(),
            fixture.count(&sql).await,
            "{first_day}"
        );
    }
}
