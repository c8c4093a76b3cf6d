//! The marketplace closes a seller's account.

use chrono::{DateTime, Utc};
use kernel::SellerId;
use oauth::SellerStore;

use crate::{Failure, failure::refuse};

/// Why an account is not closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// There is no such account.
    #[error("there is no such seller")]
    NoSuchSeller,
}

/// Closes the account: its tokens are rejected from the commit on. Closing it again changes nothing.
pub async fn close_seller(
    sellers: &dyn SellerStore,
    id: SellerId,
    now: DateTime<Utc>,
) -> Result<(), Failure<Refusal>> {
    if sellers.close_seller(id, now).await? {
        Ok(())
    } else {
        refuse(Refusal::NoSuchSeller)
    }
}
