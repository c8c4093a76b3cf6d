//! The marketplace erases a buyer's personal data.

use chrono::{DateTime, Utc};
use orders::{BuyerNotifier, OrderRef, OrderStore, SellerOrder};

use crate::{Failure, failure::refuse};

/// Why nothing is erased.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// There is no such order.
    #[error("there is no such order")]
    NoSuchOrder,
}

/// Erases the buyer of an order from every seller's part and from the mails about it, sent or not, and returns what the parts
/// are now. Remembered answers hold no buyer. Repeating is harmless.
pub async fn erase_buyer(
    orders: &dyn OrderStore,
    buyers: &dyn BuyerNotifier,
    order: &OrderRef,
    now: DateTime<Utc>,
) -> Result<Vec<SellerOrder>, Failure<Refusal>> {
    let parts = orders.lock_order(order).await?;
    let Some(id) = parts.first().map(|part| part.id) else {
        return refuse(Refusal::NoSuchOrder);
    };
    let (mut after, mut changes) = (Vec::new(), Vec::new());
    for part in parts {
        let holds_buyer = part.buyer.is_some() || part.shipping_address.is_some();
        let change = part.erase_buyer(now);
        after.push(change.after.clone());
        if holds_buyer {
            changes.push(change);
        }
    }
    if !changes.is_empty() {
        orders.save_parts(changes).await?;
    }
    buyers.forget_mails(id).await?;
    Ok(after)
}
