//! The change feed.

use changes::{ChangeItem, Detail};
use kernel::SellerId;
use offers::{Offer, OfferPatch, Stock};
use usecases::{Transaction, patch_offer::patch_offer};

use super::fixture::{Fixture, begin, saved_offer, seller};

/// A seller sets a stock; the transaction is left open.
async fn set(fixture: &Fixture, seller: SellerId, offer: &Offer, pieces: i64) -> Box<dyn Transaction> {
    let tx = begin(fixture).await;
    let patch = OfferPatch {
        stock: Stock::new(pieces).ok(),
        ..OfferPatch::default()
    };
    patch_offer(&*tx, seller, offer.id, patch, tx.now())
        .await
        .unwrap();
    tx
}

/// All that is to be read from a place on, in pages of two.
async fn read_all(fixture: &Fixture) -> Vec<ChangeItem> {
    let (mut items, mut place) = (Vec::new(), None);
    loop {
        let page = fixture.feed().changes(place, 2).await.unwrap();
        if page.items.is_empty() {
            return items;
        }
        assert!(page.items.len() <= 2);
        items.extend(page.items);
        place = Some(page.next);
    }
}

fn stocks(items: &[ChangeItem]) -> Vec<i32> {
    let stock = |item: &ChangeItem| match item.detail {
        Detail::Stock(stock) => Some(stock.get()),
        _ => None,
    };
    items.iter().filter_map(stock).collect()
}

/// Page by page every item comes once, in the order in which they were written.
#[tokio::test]
async fn every_item_is_read_once_in_one_order() {
    let fixture = &Fixture::new().await;
    let seller = seller(fixture).await;
    let offer = saved_offer(fixture, seller, 1).await;
    for pieces in 10..15 {
        set(fixture, seller, &offer, pieces).await.commit().await.unwrap();
    }
    drop(set(fixture, seller, &offer, 99).await);
    fixture.quiet().await;
    let read = read_all(fixture).await;
    assert_eq!(stocks(&read), [10, 11, 12, 13, 14]);
    assert_eq!(read_all(fixture).await, read);
}

/// What a transaction writes that began before others does not appear behind a place that was read.
#[tokio::test]
async fn nothing_is_shown_behind_what_is_still_under_way() {
    let fixture = &Fixture::new().await;
    let seller = seller(fixture).await;
    let (slow, quick) = (
        saved_offer(fixture, seller, 1).await,
        saved_offer(fixture, seller, 1).await,
    );
    let earlier = set(fixture, seller, &slow, 10).await;
    set(fixture, seller, &quick, 20).await.commit().await.unwrap();
    let page = fixture.feed().changes(None, 10).await.unwrap();
    earlier.commit().await.unwrap();
    fixture.quiet().await;
    let rest = fixture.feed().changes(Some(page.next), 10).await.unwrap();
    let mut seen = stocks(&page.items);
    seen.extend(stocks(&rest.items));
    seen.sort_unstable();
    assert_eq!(seen, [10, 20]);
}
