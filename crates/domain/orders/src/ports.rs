//! Ports: storage of orders, and carrier look-ups.

use std::collections::BTreeSet;
use std::str::FromStr;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use kernel::{Change, Invalid, Keyset, Mail, MailId, Page, PageSize, Reader, SellerId, StoreError};

use crate::{Carrier, Lookup, OrderId, OrderNumber, OrderStatus, SellerOrder, TrackedParcel, TrackingNumber};

/// Filters of a seller's order list. Test orders are never listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OrderFilter {
    /// Only orders of this status.
    pub status: Option<OrderStatus>,
    /// Only orders placed later than this.
    pub placed_after: Option<DateTime<Utc>>,
    /// Only orders whose `updated_at` is later than this.
    pub updated_after: Option<DateTime<Utc>>,
}

/// An order reference in a path: an id or a number.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum OrderRef {
    Id(OrderId),
    Number(OrderNumber),
}

impl FromStr for OrderRef {
    type Err = Invalid;

    /// Parses a path segment: an id, else a number.
    fn from_str(text: &str) -> Result<Self, Invalid> {
        match text.parse() {
            Ok(id) => Ok(Self::Id(id)),
            Err(_) => OrderNumber::new(text.to_owned()).map(Self::Number),
        }
    }
}

/// Reads orders outside a transaction.
///
/// An adapter MUST read committed data from the primary, and MUST never return another seller's part. One application MUST NOT
/// hold up others, not even by asking for many sellers.
#[cfg_attr(any(test, feature = "mocks"), mockall::automock)]
#[async_trait]
pub trait OrderReader: Send + Sync {
    /// One seller's part of an order, test orders included.
    async fn order(&self, reader: Reader, order: &OrderRef) -> Result<Option<SellerOrder>, StoreError>;

    /// One seller's parts of the orders with these ids, up to 100, test orders included, in the order of its
    /// list.
    async fn orders_by_id(
        &self,
        reader: Reader,
        ids: &BTreeSet<OrderId>,
    ) -> Result<Vec<SellerOrder>, StoreError>;

    /// A page of a seller's orders without test orders, newest first (`placed_at`, then `id`, both
    /// descending), beginning after `after`. The cost MUST NOT depend on the depth of the page or the number
    /// of orders.
    async fn orders(
        &self,
        reader: Reader,
        filter: OrderFilter,
        after: Option<Keyset>,
        size: PageSize,
    ) -> Result<Page<SellerOrder>, StoreError>;
}

/// Reads whole orders outside a transaction, for the marketplace, which may see every seller's part.
///
/// An adapter MUST read committed data from the primary, MUST return all parts, ordered by seller id, or
/// fail, and MUST NOT be reachable from a seller's request. On one server the parts MUST be as of the same
/// instant; on Citus each seller's part is read by a statement of its own, so one may be seen paid or
/// cancelled before another.
#[cfg_attr(any(test, feature = "mocks"), mockall::automock)]
#[async_trait]
pub trait OrderDirectory: Send + Sync {
    /// Every part of an order, including test orders, with the buyer even before the payment; empty if there
    /// is no such order.
    async fn parts(&self, order: &OrderRef) -> Result<Vec<SellerOrder>, StoreError>;

    /// Searches up to `limit` parts of orders after `after`, by id, for those whose buyer has this e-mail
    /// address, ignoring case.
    async fn find_by_buyer(
        &self,
        email: &str,
        after: Option<OrderId>,
        limit: u16,
    ) -> Result<BuyerSearch, StoreError>;
}

/// The result of searching some orders.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BuyerSearch {
    /// `placed_at`, number and id of each order found, once for each part.
    pub found: Vec<(DateTime<Utc>, String, OrderId)>,
    /// The last order searched; None at the end.
    pub next: Option<OrderId>,
}

/// Changes orders within a transaction. `A` is how an event is announced: the use cases decide it.
///
/// An adapter MUST lock the parts of an order in the order of their sellers' ids, so that transactions over
/// the same orders cannot deadlock.
#[async_trait]
pub trait OrderStore<A>: Send + Sync {
    /// One seller's part with its row locked. No other seller's row is accessed.
    async fn lock_part(&self, seller: SellerId, order: &OrderRef) -> Result<Option<SellerOrder>, StoreError>;

    /// Every part of an order, with the rows locked; empty if there is no such order.
    async fn lock_order(&self, order: &OrderRef) -> Result<Vec<SellerOrder>, StoreError>;

    /// Reserves the order number of a new order. This is the transaction's first step, before any offer is
    /// locked. A number used by another order is a conflict on `orders_number_key`.
    async fn open_order(
        &self,
        order: OrderId,
        number: &OrderNumber,
        is_test: bool,
        sellers: &BTreeSet<SellerId>,
        placed_at: DateTime<Utc>,
    ) -> Result<(), StoreError>;

    /// Saves changes of parts together with their announcements. An adapter MUST check that the number of
    /// changed rows equals the number of changes.
    async fn save_parts(&self, changes: Vec<Change<SellerOrder, A>>) -> Result<(), StoreError>;

    /// Adds a parcel to the queue of look-ups.
    async fn begin_tracking(&self, parcel: TrackedParcel) -> Result<(), StoreError>;

    /// Removes a part's parcel from the queue of look-ups, if it is there.
    async fn end_tracking(&self, seller: SellerId, order: OrderId) -> Result<(), StoreError>;

    /// Queues a mail to the buyer, to be sent at least once after the commit.
    async fn queue_mail(&self, mail: ShipmentMail) -> Result<(), StoreError>;

    /// Queues a given-up mail anew, with all its attempts; returns its order, None without such a mail.
    async fn requeue_mail(&self, mail: MailId) -> Result<Option<OrderId>, StoreError>;

    /// Deletes the mails about an order that were tried, but not sent: a later one has overtaken them.
    async fn drop_retried_mails(&self, order: OrderId) -> Result<(), StoreError>;

    /// Erases all mails about an order, sent or not.
    async fn forget_mails(&self, order: OrderId) -> Result<(), StoreError>;
}

/// A mail to a buyer that was given up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GivenUpMail {
    pub id: MailId,
    pub order: OrderId,
    pub number: OrderNumber,
    pub created_at: DateTime<Utc>,
    pub given_up_at: DateTime<Utc>,
    pub attempts: u32,
}

/// Looks up parcels at carriers.
///
/// An adapter MUST respond within the deadline that it was created with (2.5 s within a seller's request),
/// MUST NOT query [`Carrier::Other`] or a carrier without credentials ([`Lookup::NotConfigured`]), and MUST turn
/// every failure into [`Lookup::Unavailable`]. A caller MUST NOT hold a connection or a transaction meanwhile.
#[cfg_attr(any(test, feature = "mocks"), mockall::automock)]
#[async_trait]
pub trait CarrierLookup: Send + Sync {
    /// The carrier's report about the parcel.
    async fn look_up(&self, carrier: Carrier, number: &TrackingNumber) -> Lookup;

    /// Whether look-ups with this carrier are paused, so that parcels should wait.
    fn is_paused(&self, carrier: Carrier) -> bool;
}

/// A mail to a buyer about a shipped parcel, or a correction of an earlier one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShipmentMail {
    pub id: MailId,
    /// The order, by which an erasure finds the mail.
    pub order: OrderId,
    pub number: OrderNumber,
    pub to: String,
    pub name: Option<String>,
    pub carrier: Carrier,
    pub tracking_number: TrackingNumber,
    pub is_correction: bool,
}

impl Mail for ShipmentMail {
    fn id(&self) -> MailId {
        self.id
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_is_referenced_by_id_or_number() {
        let id = "0197a5c4-8b1e-7c3a-9d2f-4e5b6a7c8d9e";
        assert_eq!(id.parse(), Ok(OrderRef::Id(id.parse().unwrap())));
        let number = OrderNumber::new("2026-000123".to_owned()).unwrap();
        assert_eq!("2026-000123".parse(), Ok(OrderRef::Number(number)));
        for nothing in ["", "a-1", &id.to_uppercase(), &id.replace('-', "")] {
            assert!(nothing.parse::<OrderRef>().is_err(), "{nothing}");
        }
    }
}
