//! Offers: their fields, status machine, price and stock rules, and the ports that store them.

mod feed;
mod offer;
mod patch;
mod status;
mod stock;
mod text;

use std::{collections::BTreeSet, time::Duration};

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use kernel::{
    Change, Claim, Claimed, Keyset, OfferId, Page, PageSize, Reader, SellerId, StoreError, StoredResponse,
    TransactionError,
};

pub use feed::*;
pub use offer::*;
pub use patch::*;
pub use status::*;
pub use stock::*;
pub use text::*;

/// Filters of a seller's offer list.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OfferFilter {
    /// Only offers of this status.
    pub status: Option<OfferStatus>,
    /// Only offers whose `updated_at` is later than this.
    pub updated_after: Option<DateTime<Utc>>,
    /// Only offers with exactly these.
    pub codes: Vec<(OfferCode, String)>,
}

/// A code by which offers are found; several may have the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OfferCode {
    name: &'static str,
    max_length: usize,
}

/// Declares each code with the most characters that are looked for. New ones stand last: open cursors know the order.
macro_rules! offer_codes {
    ($($(#[$doc:meta])* $code:ident: $name:literal, $max_length:expr;)+) => {
        impl OfferCode {
            $($(#[$doc])* pub const $code: Self = Self { name: $name, max_length: $max_length };)+
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$code),+];
        }
    };
}

offer_codes! {
    EXTERNAL_ID: "external_id", MAX_EXTERNAL_ID;
    /// Feeds may have longer ones.
    EAN: "ean", 64;
}

impl OfferCode {
    /// The name of the field, and of its column.
    pub const fn name(self) -> &'static str {
        self.name
    }

    /// The most characters that are looked for.
    pub const fn max_length(self) -> usize {
        self.max_length
    }
}

/// Reads offers outside a transaction.
///
/// An adapter MUST read committed data from the primary, and MUST never return another seller's offer, even
/// when one statement answers several callers. One application's lists MUST NOT hold up others', not even by asking for
/// many sellers.
#[async_trait]
pub trait OfferReader: Send + Sync {
    /// One offer of a seller.
    async fn offer(&self, reader: Reader, id: OfferId) -> Result<Option<Offer>, StoreError>;

    /// A seller's offers with these ids, up to 100, in the order of its list.
    async fn offers_by_id(&self, reader: Reader, ids: &BTreeSet<OfferId>) -> Result<Vec<Offer>, StoreError>;

    /// A page of a seller's offers, newest first (`created_at`, then `id`, both descending), beginning after
    /// `after`. The cost MUST NOT depend on the depth of the page or the number of the seller's offers.
    async fn offers(
        &self,
        reader: Reader,
        filter: OfferFilter,
        after: Option<Keyset>,
        size: PageSize,
    ) -> Result<Page<Offer>, StoreError>;
}

/// Changes offers within a transaction. `A` is how an event is announced: the use cases decide it.
#[async_trait]
pub trait OfferStore<A>: Send + Sync {
    /// The existing offers among `ids`, with their rows locked until the transaction ends. An adapter MUST
    /// lock them in the order of their ids, so that such transactions cannot deadlock.
    async fn lock_offers(&self, seller: SellerId, ids: &[OfferId]) -> Result<Vec<Offer>, StoreError>;

    /// Saves changes of a seller's offers, but not of their products, together with their announcements. An adapter MUST
    /// check that the number of changed rows equals the number of changes.
    async fn save_offers(&self, seller: SellerId, changes: Vec<Change<Offer, A>>) -> Result<(), StoreError>;

    /// The same for whole offers that were fed, with their products. A new offer that exists by then is a conflict.
    async fn save_fed_offers(
        &self,
        seller: SellerId,
        changes: Vec<Change<Offer, A>>,
    ) -> Result<(), StoreError>;
}

/// The input of a change without a lock, read at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OfferToChange {
    pub offer: Option<Offer>,
    /// The state of the request's key; [`Claimed::Run`] if it is free.
    pub key: Claimed,
    /// The database's clock: the time of the change.
    pub at: DateTime<Utc>,
}

/// A change that was decided without a lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OptimisticChange<A> {
    /// The offer as it was read.
    pub before: Offer,
    pub change: Change<Offer, A>,
    pub at: DateTime<Utc>,
}

/// Changes offers without a transaction of their own: each change, its announcements, its key and its answer
/// are saved together or not at all.
///
/// An adapter MAY save changes of several callers together. Then a change MUST NOT affect the outcome of
/// another one, other than by an unknown outcome for all.
#[cfg_attr(any(test, feature = "mocks"), mockall::automock)]
#[async_trait]
pub trait OfferChanges<A: Send + Sync + 'static>: Send + Sync {
    /// The offer and the key. An adapter MUST treat an expired key as free, and wait no longer than `turn_limit` for the
    /// seller's other requests.
    async fn read(
        &self,
        seller: SellerId,
        id: OfferId,
        claim: &Claim,
        turn_limit: Duration,
    ) -> Result<OfferToChange, StoreError>;

    /// Saves the change if the offer is unlocked and still has the `updated_at` and the price source of
    /// `before`, and the key is free; otherwise changes nothing and returns false. An adapter MUST seal the
    /// answer and keep it for 24 hours. It MAY return false for any change: the caller then makes it in a
    /// transaction. A change that is not sent within `time_left` fails. If the outcome is unknown,
    /// [`kernel::IdempotencyClaims::outcome`] returns it.
    async fn save(
        &self,
        change: OptimisticChange<A>,
        claim: &Claim,
        answer: &StoredResponse,
        time_left: Duration,
    ) -> Result<bool, TransactionError>;
}
