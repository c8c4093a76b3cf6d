//! Transitions of a whole order by the marketplace: payment, cancellation, delivery.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use kernel::{Change, OfferId, SellerId, StoreError};
use offers::OfferStore;
use orders::{Delivery, OrderEvent, OrderRef, OrderStore, SellerOrder};

use crate::{Failure, failure::refuse};

/// A transition of every part of an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settlement {
    /// The payment is booked.
    Pay,
    /// The buyer or the staff cancels the order; stock is returned.
    Cancel,
    /// The marketplace records the delivery.
    Deliver,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// There is no such order.
    #[error("there is no such order")]
    NoSuchOrder,
    /// A part does not allow it, so no part changes.
    #[error(transparent)]
    Impossible(#[from] orders::Refusal),
}

/// Applies the transition to every part, or to none. Idempotent.
pub async fn settle_order(
    orders: &dyn OrderStore,
    offers: &dyn OfferStore,
    order: &OrderRef,
    step: Settlement,
    now: DateTime<Utc>,
) -> Result<Vec<SellerOrder>, Failure<Refusal>> {
    let parts = orders.lock_order(order).await?;
    if parts.is_empty() {
        return refuse(Refusal::NoSuchOrder);
    }
    let moved = parts.into_iter().map(|part| match step {
        Settlement::Pay => part.pay(now),
        Settlement::Cancel => part.cancel(now),
        Settlement::Deliver => part.deliver(Delivery { at: None }, now),
    });
    let changes = moved
        .collect::<Result<Vec<_>, _>>()
        .map_err(|refused| Failure::Refused(refused.into()))?;
    let after = changes.iter().map(|change| change.after.clone()).collect();
    let changes = changes
        .into_iter()
        .filter(|change| !change.events.is_empty())
        .collect::<Vec<_>>();
    if !changes.is_empty() {
        let returns = if step == Settlement::Cancel {
            taken_stock(&changes)
        } else {
            BTreeMap::new()
        };
        orders.save_parts(changes).await?;
        return_stock(offers, returns, now).await?;
    }
    Ok(after)
}

type Taken = BTreeMap<SellerId, BTreeMap<OfferId, i32>>;

/// The stock that the cancelled parts had taken. An offer of which nothing was taken is skipped, and not even locked.
fn taken_stock(cancelled: &[Change<SellerOrder, OrderEvent>]) -> Taken {
    let mut taken = Taken::new();
    // Test orders placed before `taken` was recorded show a `taken`, but took no stock.
    let parts = cancelled
        .iter()
        .map(|change| &change.after)
        .filter(|part| !part.is_test);
    for part in parts {
        for item in part.items.iter().filter(|item| item.taken > 0) {
            taken
                .entry(part.seller)
                .or_default()
                .insert(item.offer, item.taken);
        }
    }
    taken
}

async fn return_stock(offers: &dyn OfferStore, taken: Taken, now: DateTime<Utc>) -> Result<(), StoreError> {
    for (seller, items) in taken {
        let ids = items.keys().copied().collect::<Vec<_>>();
        let found = offers.lock_offers(seller, &ids).await?;
        let counted = found.into_iter().filter(|offer| offer.stock.is_some());
        let changes = counted.map(|offer| {
            let quantity = items.get(&offer.id).copied().unwrap_or_default();
            offer.return_stock(quantity, now)
        });
        let changes = changes.collect::<Vec<_>>();
        if !changes.is_empty() {
            offers.save_offers(seller, changes).await?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use offers::{Offer, Stock};
    use orders::OrderStatus;
    use uuid::Uuid;

    use super::*;
    use crate::MockTransaction;
    use crate::test_support::{now, offer, part};

    fn by_id() -> OrderRef {
        OrderRef::Id(Uuid::from_u128(9).into())
    }

    fn orders(parts: Vec<SellerOrder>, saves: usize) -> MockTransaction {
        let mut orders = MockTransaction::new();
        orders.expect_lock_order().returning(move |_| Ok(parts.clone()));
        orders.expect_save_parts().times(saves).returning(|_| Ok(()));
        orders
    }

    #[tokio::test]
    async fn cancelling_gives_stock_back_once() {
        let mut offers = MockTransaction::new();
        offers.expect_lock_offers().once().returning(|seller, ids| {
            Ok(ids
                .iter()
                .map(|id| Offer {
                    stock: Stock::new(5).ok(),
                    ..offer(seller, *id)
                })
                .collect())
        });
        offers
            .expect_save_offers()
            .once()
            .withf(|_, changes| changes[0].after.stock.unwrap().get() == 7)
            .returning(|_, _| Ok(()));
        let store = orders(vec![part(1, 2)], 1);
        let parts = settle_order(&store, &offers, &by_id(), Settlement::Cancel, now())
            .await
            .unwrap();
        let store = orders(parts, 0);
        assert!(
            settle_order(&store, &offers, &by_id(), Settlement::Cancel, now())
                .await
                .is_ok()
        );
    }

    #[tokio::test]
    async fn what_was_not_taken_does_not_come_back() {
        let mut uncounted = part(1, 2);
        uncounted.items[0].taken = 0;
        let store = orders(vec![uncounted], 1);
        // Offers are neither locked nor saved: the mock expects no call.
        let untouched = MockTransaction::new();
        let cancelled = settle_order(&store, &untouched, &by_id(), Settlement::Cancel, now()).await;
        assert_eq!(cancelled.unwrap()[0].status(), OrderStatus::Cancelled);
    }

    #[tokio::test]
    async fn one_part_that_cannot_move_holds_all_back() {
        let cancelled = part(2, 1).cancel(now()).unwrap().after;
        let store = orders(vec![part(1, 1), cancelled], 0);
        let failure = settle_order(&store, &MockTransaction::new(), &by_id(), Settlement::Pay, now())
            .await
            .unwrap_err();
        assert!(
            matches!(failure, Failure::Refused(Refusal::Impossible(refused)) if refused.status == OrderStatus::Cancelled)
        );
    }

    #[tokio::test]
    async fn an_unknown_order_is_refused() {
        let store = orders(Vec::new(), 0);
        let failure = settle_order(&store, &MockTransaction::new(), &by_id(), Settlement::Pay, now())
            .await
            .unwrap_err();
        assert!(matches!(failure, Failure::Refused(Refusal::NoSuchOrder)));
    }
}
