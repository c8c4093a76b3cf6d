//! Transitions of a whole order by the marketplace: payment, cancellation, delivery.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use kernel::{OfferId, SellerId, StoreError};
use offers::OfferStore;
use orders::{OrderRef, OrderStore, SellerOrder};

use crate::{Announcement, Failure, LockSet, Row, failure::ensure};

/// A transition of every part of an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transition {
    /// The payment is booked.
    Pay,
    /// The buyer or the staff cancels the order; stock is returned.
    Cancel,
    /// The marketplace records the delivery.
    Deliver,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum OrderTransitionRefusal {
    #[error("no such order")]
    NoSuchOrder,
    /// A part does not allow it, so no part changes.
    #[error(transparent)]
    Impossible(#[from] orders::CommandRefusal),
}

/// What the transition of an order with these parts locks: of one that is cancelled the offers too, whose stock is
/// returned. Its events wait for their sellers' journals.
pub fn locks(order: &OrderRef, parts: &[SellerOrder], transition: Transition) -> LockSet {
    let items = parts
        .iter()
        .flat_map(|part| part.items.iter().map(move |item| (part.seller, item.offer)));
    let returned = match transition {
        Transition::Cancel => LockSet::of_offers(items),
        Transition::Pay | Transition::Deliver => LockSet {
            sellers: parts.iter().map(|part| part.seller).collect(),
            ..LockSet::default()
        },
    };
    returned.and(Row::Order(order.clone()))
}

/// Applies the transition to every part, or to none. Idempotent.
pub async fn transition_order(
    orders: &dyn OrderStore<Announcement>,
    offers: &dyn OfferStore<Announcement>,
    order: &OrderRef,
    transition: Transition,
    now: DateTime<Utc>,
) -> Result<Vec<SellerOrder>, Failure<OrderTransitionRefusal>> {
    let parts = orders.lock_order(order).await?;
    ensure(!parts.is_empty(), OrderTransitionRefusal::NoSuchOrder)?;
    let moved = parts.into_iter().map(|part| match transition {
        Transition::Pay => part.pay(now),
        Transition::Cancel => part.cancel(now),
        Transition::Deliver => part.deliver(now),
    });
    let moved = moved
        .collect::<Result<Vec<_>, _>>()
        .map_err(|refused| Failure::Refused(refused.into()))?;
    let after = moved.iter().map(|change| change.after.clone()).collect();
    let effective = moved.into_iter().filter(|change| !change.events.is_empty());
    let effective: Vec<_> = effective
        .map(|change| Announcement::of_order(change, now))
        .collect();
    let changed: Vec<_> = effective.iter().map(|change| change.after.clone()).collect();
    if !effective.is_empty() {
        orders.save_parts(effective).await?;
    }
    match transition {
        Transition::Pay => {}
        Transition::Cancel => return_stock(offers, taken_stock(&changed), now).await?,
        Transition::Deliver => {
            for part in changed.iter().filter(|part| part.tracked_shipment().is_some()) {
                orders.end_tracking(part.seller, part.id).await?;
            }
        }
    }
    Ok(after)
}

type Taken = BTreeMap<SellerId, BTreeMap<OfferId, i32>>;

/// The stock that the cancelled parts had taken. An offer of which nothing was taken is skipped, and not even
/// locked.
fn taken_stock(cancelled: &[SellerOrder]) -> Taken {
    let mut taken = Taken::new();
    // Test orders placed before `taken` was recorded show a `taken`, but took no stock.
    for part in cancelled.iter().filter(|part| !part.is_test) {
        for item in part.items.iter().filter(|item| item.taken > 0) {
            taken
                .entry(part.seller)
                .or_default()
                .insert(item.offer, item.taken);
        }
    }
    taken
}

async fn return_stock(
    offers: &dyn OfferStore<Announcement>,
    taken: Taken,
    now: DateTime<Utc>,
) -> Result<(), StoreError> {
    for (seller, items) in taken {
        let ids = items.keys().copied().collect::<Vec<_>>();
        let found = offers.lock_offers(seller, &ids).await?;
        let counted = found.into_iter().filter(|offer| offer.stock.is_some());
        let changes = counted.map(|offer| {
            let quantity = items.get(&offer.id).copied().unwrap_or_default();
            Announcement::of_offer(offer.return_stock(quantity, now), now)
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
    use orders::{Carrier, Cause, NewShipment, TrackingNumber};
    use uuid::Uuid;
    use webhooks::WebhookEvent::{OrderDelivered, OrderShipped};

    use super::*;
    use crate::MockTransaction;
    use crate::test_support::{now, part};

    /// Applies a transition to an order of these parts, and expects this many saves.
    async fn transitioned(
        parts: &[SellerOrder],
        saves: usize,
        mut tx: MockTransaction,
        kind: Transition,
    ) -> Result<Vec<SellerOrder>, Failure<OrderTransitionRefusal>> {
        let parts = parts.to_vec();
        tx.expect_lock_order().returning(move |_| Ok(parts.clone()));
        tx.expect_save_parts().times(saves).returning(|_| Ok(()));
        let order = OrderRef::Id(Uuid::from_u128(9).into());
        transition_order(&tx, &tx, &order, kind, now()).await
    }

    #[tokio::test]
    async fn a_delivery_is_announced_and_ends_the_tracking_once() {
        let new = NewShipment {
            id: Uuid::nil().into(),
            carrier: Carrier::Dpd,
            tracking_number: TrackingNumber::new("ABCD".to_owned()).unwrap(),
            tracking_report: None,
        };
        let paid = |seller| part(seller, 1).pay(now()).unwrap().after;
        let shipped = paid(1).ship(new, Cause::Marketplace, now()).unwrap().after;
        let mut tx = MockTransaction::new();
        tx.expect_save_parts()
            .once()
            .withf(|changes| {
                let announced = changes.iter().flat_map(|change| &change.events);
                let events = announced.map(|one| one.event.as_ref().unwrap().name);
                let expected = [OrderDelivered, OrderShipped, OrderDelivered];
                events.eq(expected)
            })
            .returning(|_| Ok(()));
        tx.expect_end_tracking()
            .once()
            .withf(|seller, _| *seller == part(1, 1).seller)
            .returning(|_, _| Ok(()));
        let parts = [shipped, paid(2)];
        let parts = transitioned(&parts, 0, tx, Transition::Deliver).await.unwrap();
        transitioned(&parts, 0, MockTransaction::new(), Transition::Deliver)
            .await
            .unwrap();
    }
}
