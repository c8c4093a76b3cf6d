//! Where orders are kept and read, and who is asked about parcels.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use kernel::{Change, Keyset, Mail, MailId, Page, PageSize, SellerId, StoreError};

use crate::{Carrier, Lookup, OrderEvent, OrderId, OrderNumber, OrderStatus, SellerOrder, TrackingNumber};

/// Which of a seller's orders a list holds. Test orders are never listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OrderFilter {
    /// Only orders of this status.
    pub status: Option<OrderStatus>,
    /// Only orders placed later than this.
    pub placed_after: Option<DateTime<Utc>>,
    /// Only orders whose `updated_at` is later than this.
    pub updated_after: Option<DateTime<Utc>>,
}

/// How a path names an order: by its id or by its number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OrderRef {
    /// By id.
    Id(OrderId),
    /// By number.
    Number(OrderNumber),
}

impl OrderRef {
    /// Reads what stands in a path: an id, else a number, else nothing that can exist.
    pub fn parse(text: &str) -> Option<Self> {
        let id = text.parse().ok().map(Self::Id);
        id.or_else(|| OrderNumber::new(text.to_owned()).ok().map(Self::Number))
    }
}

/// Reads orders outside a transaction.
///
/// An adapter MUST read what is committed on the primary, and MUST never return another seller's part.
#[cfg_attr(any(test, feature = "mocks"), mockall::automock)]
#[async_trait]
pub trait OrderReader: Send + Sync {
    /// One seller's part of an order, test orders included.
    async fn order(&self, seller: SellerId, order: &OrderRef) -> Result<Option<SellerOrder>, StoreError>;

    /// A page of a seller's orders without test orders, newest first (`placed_at`, then `id`, both descending), that
    /// begins after `after`. The cost MUST depend neither on the depth of the page nor on the number of orders.
    async fn orders(
        &self,
        seller: SellerId,
        filter: OrderFilter,
        after: Option<Keyset>,
        size: PageSize,
    ) -> Result<Page<SellerOrder>, StoreError>;
}

/// Reads whole orders outside a transaction, for the marketplace, which may see every seller's part.
///
/// An adapter MUST read what is committed on the primary, MUST return the parts as of one instant, ordered by their sellers'
/// ids, and MUST NOT be reachable from a seller's request.
#[cfg_attr(any(test, feature = "mocks"), mockall::automock)]
#[async_trait]
pub trait OrderDirectory: Send + Sync {
    /// Every part of an order, test orders included, buyers included before the payment too; empty when there is no such
    /// order.
    async fn parts(&self, order: &OrderRef) -> Result<Vec<SellerOrder>, StoreError>;
}

/// Changes orders within a transaction.
///
/// An adapter MUST lock the parts of an order in the order of their sellers' ids, so that two transactions over the same
/// orders never wait for each other in a circle.
#[async_trait]
pub trait OrderStore: Send + Sync {
    /// One seller's part, its row locked. No other seller's row is touched.
    async fn lock_part(&self, seller: SellerId, order: &OrderRef) -> Result<Option<SellerOrder>, StoreError>;

    /// Every part of an order, their rows locked; empty when there is no such order.
    async fn lock_order(&self, order: &OrderRef) -> Result<Vec<SellerOrder>, StoreError>;

    /// Takes an order number for a new order. It is a transaction's first step, before any offer is locked. A number that
    /// another order has is a conflict on `orders_number_key`.
    async fn open_order(
        &self,
        order: OrderId,
        number: &OrderNumber,
        is_test: bool,
        placed_at: DateTime<Utc>,
    ) -> Result<(), StoreError>;

    /// Saves changes of parts together with their events. An adapter MUST check that as many rows changed as there are
    /// changes.
    async fn save_parts(&self, changes: Vec<Change<SellerOrder, OrderEvent>>) -> Result<(), StoreError>;

    /// Queues a mail to the buyer. It is sent after the commit, at least once.
    async fn queue_mail(&self, mail: ShipmentMail) -> Result<(), StoreError>;

    /// Erases the mails about an order, sent or not.
    async fn forget_mails(&self, order: OrderId) -> Result<(), StoreError>;
}

/// Asks a carrier about a parcel.
///
/// An adapter MUST answer within the deadline that it was made with (2.5 s within a seller's request), MUST NOT be called
/// while a connection or a transaction is held, MUST NOT ask [`Carrier::Other`] or a carrier without credentials, and
/// MUST turn every failure into [`Lookup::Unavailable`].
#[cfg_attr(any(test, feature = "mocks"), mockall::automock)]
#[async_trait]
pub trait CarrierLookup: Send + Sync {
    /// What the carrier says of the parcel.
    async fn look_up(&self, carrier: Carrier, number: &TrackingNumber) -> Lookup;
}

/// A mail to a buyer: a parcel is on its way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShipmentMail {
    /// The mail's id.
    pub id: MailId,
    /// The order, so that an erasure finds the mail.
    pub order: OrderId,
    /// The number that the buyer knows.
    pub number: OrderNumber,
    /// The buyer's address.
    pub to: String,
    /// The buyer's name.
    pub name: Option<String>,
    /// Who carries it.
    pub carrier: Carrier,
    /// By which number.
    pub tracking_number: TrackingNumber,
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
    fn a_path_names_an_order_by_its_id_or_else_by_its_number() {
        let id = "0197a5c4-8b1e-7c3a-9d2f-4e5b6a7c8d9e";
        assert_eq!(OrderRef::parse(id), id.parse().ok().map(OrderRef::Id));
        let number = OrderNumber::new("2026-000123".to_owned()).unwrap();
        assert_eq!(OrderRef::parse("2026-000123"), Some(OrderRef::Number(number)));
        for nothing in ["", "a-1", &id.to_uppercase(), &id.replace('-', "")] {
            assert_eq!(OrderRef::parse(nothing), None, "{nothing}");
        }
    }
}
