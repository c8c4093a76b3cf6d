//! Lists of offers, page by page.

use chrono::{DateTime, TimeDelta, Utc};
use kernel::{PageSize, SellerId};
use offers::{Offer, OfferFilter, OfferReader, OfferStatus};

use crate::support::{Fixture, instant, offer};

/// Reads a whole list by following `next`.
async fn all(reader: &dyn OfferReader, seller: SellerId, filter: OfferFilter, size: i64) -> Vec<Offer> {
    let (mut read, mut after) = (Vec::new(), None);
    loop {
        let page = reader
            .offers(seller, filter, after, PageSize::clamped(size))
            .await
            .unwrap();
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

/// What a list has to hold, the slow way.
fn expected(offers: &[Offer], filter: OfferFilter) -> Vec<Offer> {
    let matches = |offer: &&Offer| {
        filter.status.is_none_or(|status| offer.status == status)
            && filter
                .updated_after
                .is_none_or(|instant| offer.updated_at > instant)
    };
    let mut found = offers.iter().filter(matches).cloned().collect::<Vec<_>>();
    found.sort_by_key(|offer| std::cmp::Reverse((offer.created_at, offer.id)));
    found
}

fn minutes(n: i64) -> DateTime<Utc> {
    instant() + TimeDelta::minutes(n)
}

/// Offers in every status, several of one instant, some of them changed later.
fn assorted(seller: SellerId) -> Vec<Offer> {
    let mixed = |n: i64| {
        let mut offer = offer(seller, minutes(n / 3));
        offer.status = OfferStatus::ALL[usize::try_from(n * 7 % 4).unwrap()];
        if n % 5 == 0 {
            offer.updated_at = minutes(40 + n % 11);
        }
        offer
    };
    (0..120).map(mixed).collect()
}

#[tokio::test]
async fn every_filter_in_every_page_size_reads_everything_once_in_order() {
    let fixture = Fixture::new().await;
    let (seller, other) = (fixture.seller().await, fixture.seller().await);
    let offers = assorted(seller.id);
    fixture.save(offers.clone()).await;
    fixture.save(assorted(other.id)).await;
    let reader = fixture.database.offer_reader();
    let instants = [
        None,
        Some(minutes(-1)),
        Some(minutes(0)),
        Some(minutes(20)),
        Some(minutes(45)),
        Some(minutes(99)),
    ];
    for updated_after in instants {
        for status in [None, Some(OfferStatus::Published), Some(OfferStatus::Rejected)] {
            let filter = OfferFilter {
                status,
                updated_after,
            };
            let expected = expected(&offers, filter);
            for size in [1, 3, 40, 120, 200] {
                assert_eq!(
                    all(reader.as_ref(), seller.id, filter, size).await,
                    expected,
                    "{filter:?} by {size}"
                );
            }
        }
    }
}

#[tokio::test]
async fn more_changes_than_are_sorted_are_read_all_the_same() {
    let fixture = Fixture::new().await;
    let seller = fixture.seller().await;
    fixture
        .tamper(&format!(
            "insert into offers (seller_id, id, created_at, updated_at, status, title, handle, url) \
             select '{}', gen_random_uuid(), t, case when n % 3 = 0 then t else t + interval '1 year' end, \
               case when n % 2 = 0 then 'draft' else 'published' end, 't', 'h', 'u' \
             from (select n, timestamptz '2026-01-01Z' + n * interval '1 s' as t from generate_series(1, 9000) n) x",
            seller.id
        ))
        .await;
    let reader = fixture.database.offer_reader();
    for (instant, status, total) in [
        ("2026-06-01T00:00:00Z", None, 6000),
        ("2026-06-01T00:00:00Z", Some(OfferStatus::Draft), 3000),
        ("2026-01-01T02:00:00Z", None, 1800 + 4800),
    ] {
        let filter = OfferFilter {
            status,
            updated_after: Some(instant.parse().unwrap()),
        };
        let read = all(reader.as_ref(), seller.id, filter, 200).await;
        assert_eq!(read.len(), total, "{filter:?}");
        assert!(read.is_sorted_by_key(|offer| std::cmp::Reverse((offer.created_at, offer.id))));
    }
}

#[tokio::test]
async fn a_list_that_is_empty_has_one_empty_page() {
    let fixture = Fixture::new().await;
    let seller = fixture.seller().await;
    let reader = fixture.database.offer_reader();
    let page = reader
        .offers(seller.id, OfferFilter::default(), None, PageSize::default())
        .await
        .unwrap();
    assert!(page.items.is_empty() && page.next.is_none());
}
