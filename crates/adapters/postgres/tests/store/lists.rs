//! Lists of offers and orders: every combination of filters compared with a simple model, page by page.

use chrono::{DateTime, TimeDelta, Utc};
use kernel::{Keyset, Page, PageSize, SellerId};
use offers::{Offer, OfferFilter, OfferStatus};
use orders::{Carrier, Cause, OrderFilter, OrderStatus, SellerOrder};

use crate::support::{Fixture, instant, offer, paid, part, shipment, shipped};

/// Reads a whole list by following `next`.
async fn all<T>(size: i64, page: impl AsyncFn(Option<Keyset>, PageSize) -> Page<T>) -> Vec<T> {
    let (mut read, mut after) = (Vec::new(), None);
    loop {
        let page = page(after, PageSize::clamped(size)).await;
        assert!(
            !page.items.is_empty() || read.is_empty(),
            "an empty page was announced"
        );
        read.extend(page.items);
        after = page.next;
        if after.is_none() {
            return read;
        }
    }
}

async fn offers(fixture: &Fixture, seller: SellerId, filter: OfferFilter, size: i64) -> Vec<Offer> {
    let reader = fixture.database.offer_reader();
    all(size, async |after, size| {
        reader.offers(seller, filter, after, size).await.unwrap()
    })
    .await
}

async fn orders(fixture: &Fixture, seller: SellerId, filter: OrderFilter, size: i64) -> Vec<SellerOrder> {
    let reader = fixture.database.order_reader();
    all(size, async |after, size| {
        reader.orders(seller, filter, after, size).await.unwrap()
    })
    .await
}

fn minutes(n: i64) -> DateTime<Utc> {
    instant() + TimeDelta::minutes(n)
}

/// Offers in every status, several with the same timestamp, some updated later.
fn assorted_offers(seller: SellerId) -> Vec<Offer> {
    let mixed = |n: i64| Offer {
        status: OfferStatus::ALL[usize::try_from(n * 7 % 4).unwrap()],
        created_at: minutes(n / 3),
        updated_at: minutes(if n % 5 == 0 { 40 + n % 11 } else { n / 3 }),
        ..offer(seller)
    };
    (0..120).map(mixed).collect()
}

#[tokio::test]
async fn every_filter_in_every_page_size_reads_each_offer_once_in_order() {
    let fixture = Fixture::new().await;
    let (seller, other) = (fixture.seller().await, fixture.seller().await);
    let kept = assorted_offers(seller);
    fixture.save_offers(kept.clone()).await;
    fixture.save_offers(assorted_offers(other)).await;
    for updated_after in [None, Some(-1), Some(0), Some(20), Some(45), Some(99)] {
        for status in [None, Some(OfferStatus::Published), Some(OfferStatus::Rejected)] {
            let updated_after = updated_after.map(minutes);
            let fits = |offer: &&Offer| {
                status.is_none_or(|status| offer.status == status)
                    && updated_after.is_none_or(|instant| offer.updated_at > instant)
            };
            let mut expected: Vec<_> = kept.iter().filter(fits).cloned().collect();
            expected.sort_by_key(|offer| std::cmp::Reverse((offer.created_at, offer.id)));
            let filter = OfferFilter {
                status,
                updated_after,
            };
            for size in [1, 3, 40, 120, 200] {
                assert_eq!(
                    offers(&fixture, seller, filter, size).await,
                    expected,
                    "{filter:?} by {size}"
                );
            }
        }
    }
}

/// Sixty parts in every status, several placed at the same time, updated sooner or later, every seventh a test order.
fn assorted_orders(seller: SellerId) -> Vec<SellerOrder> {
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

#[tokio::test]
async fn every_filter_in_every_page_size_reads_each_order_once_in_order() {
    let fixture = Fixture::new().await;
    let (seller, other) = (fixture.seller().await, fixture.seller().await);
    let parts = assorted_orders(seller);
    fixture.save(&parts).await;
    fixture.save(&assorted_orders(other)).await;
    let hours = [None, Some(-1), Some(0), Some(5), Some(14), Some(99)];
    let instants = hours.map(|hours| hours.map(|hours| instant() + TimeDelta::hours(hours)));
    for status in [
        None,
        Some(OrderStatus::Pending),
        Some(OrderStatus::Shipped),
        Some(OrderStatus::Delivered),
    ] {
        for placed_after in instants {
            for updated_after in instants {
                let fits = |part: &&SellerOrder| {
                    !part.is_test
                        && status.is_none_or(|status| part.status() == status)
                        && placed_after.is_none_or(|instant| part.placed_at > instant)
                        && updated_after.is_none_or(|instant| part.updated_at > instant)
                };
                let mut expected: Vec<_> = parts.iter().filter(fits).cloned().collect();
                expected.sort_by_key(|part| std::cmp::Reverse((part.placed_at, part.id)));
                let filter = OrderFilter {
                    status,
                    placed_after,
                    updated_after,
                };
                for size in [1, 7, 200] {
                    assert_eq!(
                        orders(&fixture, seller, filter, size).await,
                        expected,
                        "{filter:?} by {size}"
                    );
                }
            }
        }
    }
}

/// If more was updated than is sorted, another statement reads the list.
#[tokio::test]
async fn where_much_has_changed_the_lists_are_the_same() {
    let fixture = Fixture::new().await;
    let seller = fixture.seller().await;
    let fill = "
        insert into offers (seller_id, id, created_at, updated_at, status, title, handle, url)
          select '{seller}', gen_random_uuid(), t, t + (n % 3) * interval '1 year', case when n % 2 = 0 then 'draft' else 'published' end,
            't', 'h', 'u'
          from (select n, timestamptz '2026-01-01Z' + n * interval '1 s' as t from generate_series(1, 9000) n) x;
        insert into seller_orders (seller_id, order_id, placed_at, updated_at, is_test, several_sellers, status, number, items)
          select '{seller}', gen_random_uuid(), t, t + (n % 3) * interval '1 year', false, false, 'pending', 'N-' || n,
            '[{\"offer\":\"00000000-0000-0000-0000-000000000001\",\"quantity\":1}]'
          from (select n, timestamptz '2026-01-01Z' + n * interval '1 s' as t from generate_series(1, 9000) n) x";
    fixture
        .tamper(&fill.replace("{seller}", &seller.to_string()))
        .await;
    // All, two of three (more than are sorted), one of three (few enough to be sorted), plus those created later.
    for (instant, status, total) in [
        ("2025-01-01T00:00:00Z", None, 9_000),
        ("2026-06-01T00:00:00Z", None, 6_000),
        ("2026-06-01T00:00:00Z", Some(OfferStatus::Draft), 3_000),
        ("2027-06-01T00:00:00Z", None, 3_000),
        ("2026-01-01T02:00:00Z", None, 1_800 + 4_800),
    ] {
        let updated_after = Some(instant.parse().unwrap());
        let filter = OfferFilter {
            status,
            updated_after,
        };
        let read = offers(&fixture, seller, filter, 200).await;
        assert_eq!(read.len(), total, "{filter:?}");
        assert!(read.is_sorted_by_key(|offer| std::cmp::Reverse((offer.created_at, offer.id))));
        let filter = OrderFilter {
            updated_after,
            placed_after: Some("2026-01-01T00:10:00Z".parse().unwrap()),
            ..OrderFilter::default()
        };
        let read = orders(&fixture, seller, filter, 200).await;
        let sql = format!("seller_orders where placed_at > '2026-01-01 00:10Z' and updated_at > '{instant}'");
        assert_eq!(
            i64::try_from(read.len()).unwrap(),
            fixture.rows_of(&sql).await,
            "{filter:?}"
        );
        assert!(read.is_sorted_by_key(|part| std::cmp::Reverse((part.placed_at, part.id))));
    }
}
