//! What a transaction locks first, sent along with its BEGIN.
//!
//! The server carries out one statement of a connection after another, so the lock is taken within the transaction although
//! nobody has waited for the begin. Where the begin fails the lock is taken and left at once, and its answer is thrown away with
//! the connection; that is why only locks go ahead, and no writes.

use kernel::StoreError;
use oauth::{Family, GrantStore, RefreshToken};
use offers::{Offer, OfferStore};
use orders::{OrderStore, SellerOrder};
use usecases::FirstLock;

use crate::transaction::Tx;

/// A lock that was taken ahead, until its port asks for it.
pub(crate) struct Ahead {
    pub(crate) of: FirstLock,
    pub(crate) locked: Locked,
}

/// What the method of the port says.
pub(crate) enum Locked {
    Offers(Result<Vec<Offer>, StoreError>),
    Part(Box<Result<Option<SellerOrder>, StoreError>>),
    RefreshToken(Result<Option<(Family, Option<RefreshToken>)>, StoreError>),
}

impl Ahead {
    /// Takes the lock by the method of its port.
    pub(crate) async fn take(tx: &Tx, first: FirstLock) -> Self {
        let locked = match &first {
            FirstLock::Offer(seller, id) => Locked::Offers(tx.lock_offers(*seller, &[*id]).await),
            FirstLock::Part(seller, order) => Locked::Part(Box::new(tx.lock_part(*seller, order).await)),
            FirstLock::RefreshToken(key) => Locked::RefreshToken(tx.lock_refresh_token(*key).await),
        };
        Self { of: first, locked }
    }
}
