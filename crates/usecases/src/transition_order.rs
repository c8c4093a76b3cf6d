//! Transitions of a whole order by the marketplace: payment, cancellation, delivery.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use kernel::{OfferId, SellerId, StoreError};
use offers::OfferStore;
use orders::{OrderRef, OrderStore, SellerOrder};

use crate::{Announcement, Failure, LockSet, Row, failure::refuse};

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
pub enum Refusal {
    #[error("no such order")]
    NoSuchOrder,
    /// A part does not allow it, so no part changes.
    #[error(transparent)]
    Impossible(#[from] orders::Refusal),
}

/// What the transition of an order with these parts locks: of one that is cancelled the offers too, whose stock is
/// returned. Its events wait for their sellers' journals.
pub fn locks(order: &OrderRef, parts: &[SellerOrder], transition: Transition) -> LockSet {
    let items = |part: &SellerOrder| {
        let seller = part.seller;
        let offers = part.items.iter().map(move |item| (seller, item.offer));
        offers.collect::<Vec<_>>()
    };
    let returned = match transition {
        Transition::Cancel => LockSet::of_offers(parts.iter().flat_map(items)),
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
) -> Result<Vec<SellerOrder>, Failure<Refusal>> {
    let parts = orders.lock_order(order).await?;
    if parts.is_empty() {
        return refuse(Refusal::NoSuchOrder);
    }
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
