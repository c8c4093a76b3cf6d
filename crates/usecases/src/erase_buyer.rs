//! The marketplace erases a buyer's personal data.

use accounts::{AccountStore, Action};
use chrono::{DateTime, Utc};
use orders::{OrderRef, OrderStore, SellerOrder};

use crate::{Acting, ActingOperator, Announcement, Failure, failure::present};

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no such order")]
pub struct NoSuchOrder;

/// Erases the buyer of an order from every seller's part and from all mails about it, sent or not, and
/// returns the new parts. Stored idempotent responses contain no buyer data. Idempotent.
pub async fn erase_buyer(
    orders: &dyn OrderStore<Announcement>,
    accounts: &dyn AccountStore,
    by: ActingOperator,
    order: &OrderRef,
    now: DateTime<Utc>,
) -> Result<Vec<SellerOrder>, Failure<NoSuchOrder>> {
    let parts = orders.lock_order(order).await?;
    let id = present(parts.first().map(|part| part.id), NoSuchOrder)?;
    let (mut after, mut changes) = (Vec::new(), Vec::new());
    for part in parts {
        let holds_buyer = part.holds_buyer();
        let change = part.erase_buyer(now);
        after.push(change.after.clone());
        if holds_buyer {
            changes.push(Announcement::of_order(change, now));
        }
    }
    if !changes.is_empty() {
        orders.save_parts(changes).await?;
        by.log(accounts, Action::BuyerErased, id).await?;
    }
    orders.forget_mails(id).await?;
    Ok(after)
}
