//! What a transaction locks along with its begin, until its port asks for it.

use kernel::StoreError;
use oauth::{Family, GrantStore, RefreshToken};
use offers::{Offer, OfferStore};
use orders::{OrderStore, SellerOrder};
use usecases::FirstLock;

use super::{
    Database, Flaw, TxId,
    families::lock_family,
    locks::{Row, Strength},
    orders::lock_parts,
    transaction::Tx,
};

/// A lock that was taken ahead.
pub(super) struct Ahead {
    pub(super) of: FirstLock,
    pub(super) locked: Locked,
}

/// What the method of the port says.
pub(super) enum Locked {
    Offers(Result<Vec<Offer>, StoreError>),
    Part(Box<Result<Option<SellerOrder>, StoreError>>),
    RefreshToken(Result<Option<(Family, Option<RefreshToken>)>, StoreError>),
}

impl Ahead {
    /// Takes the lock by the method of its port.
    pub(super) async fn take(tx: &Tx, first: FirstLock) -> Self {
        let locked = match &first {
            FirstLock::Offer(seller, id) => Locked::Offers(tx.lock_offers(*seller, &[*id]).await),
            FirstLock::Part(seller, order) => Locked::Part(Box::new(tx.lock_part(*seller, order).await)),
            FirstLock::RefreshToken(key) => Locked::RefreshToken(tx.lock_refresh_token(*key).await),
        };
        if tx.database().has(Flaw::LocksBeforeBegin) {
            tx.let_go();
        }
        Self { of: first, locked }
    }
}

/// What the server does of a begin whose answer nobody hears: it locks, for it was sent both.
pub(super) async fn lock_unheard(database: &Database, tx: TxId, first: FirstLock) -> Result<(), StoreError> {
    match first {
        FirstLock::Offer(seller, id) => {
            let row = Row::Offer(seller, id);
            database.lock(tx, row, Strength::NoKeyUpdate).await
        }
        FirstLock::Part(seller, order) => lock_parts(database.clone(), tx, order, Some(seller))
            .await
            .map(drop),
        FirstLock::RefreshToken(key) => lock_family(database, tx, key.family).await.map(drop),
    }
}
