//! The change feed: reports the actions of sellers and carriers to the marketplace.
//!
//! Each item is written in the transaction that causes it. The marketplace's own actions are not reported
//! back.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use kernel::{Money, OfferId, SellerId, StoreError};
use oauth::{ApplicationEvent, ClientId};
use offers::{OfferEvent, OfferStatus, Stock};
use orders::{Cause, OrderEvent, OrderId};

kernel::words! {
    pub enum ChangeKind {
        /// A seller set a price, or made the current one manual.
        OfferPriceChanged = "offer.price_changed",
        /// A seller set a stock.
        OfferStockChanged = "offer.stock_changed",
        /// A seller set a status.
        OfferStatusChanged = "offer.status_changed",
        /// A seller reported a shipment.
        OrderShipped = "order.shipped",
        /// A carrier reported a delivery.
        OrderDelivered = "order.delivered",
        /// A seller corrected carrier or tracking number of a shipment.
        ShipmentCorrected = "shipment.corrected",
        /// A seller registered an application; it may need acceptance.
        ApplicationRegistered = "application.registered",
        /// An owner asks for scopes that the marketplace has not granted to its application.
        ApplicationScopesRequested = "application.scopes_requested",
        /// An owner replaced the redirect URIs of its application.
        ApplicationChanged = "application.changed",
    }
}

/// The subject of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Topic {
    Offer(OfferId),
    Order(OrderId),
    Application(ClientId),
}

/// The new value, if an item has one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// The new price, which is manual.
    Price(Money),
    Stock(Stock),
    Status(OfferStatus),
    /// No value beyond the kind.
    Nothing,
}

/// One item of the feed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChangeItem {
    pub kind: ChangeKind,
    pub seller: SellerId,
    pub topic: Topic,
    pub detail: Detail,
    /// The time, by the database's clock.
    pub at: DateTime<Utc>,
}

impl ChangeItem {
    /// The feed item of an offer's change: every change that a seller made has one.
    pub fn of_offer(seller: SellerId, offer: OfferId, event: OfferEvent, at: DateTime<Utc>) -> Option<Self> {
        let (kind, detail) = match event {
            OfferEvent::PriceChanged(price) => (ChangeKind::OfferPriceChanged, Detail::Price(price)),
            OfferEvent::StockChanged(stock) => (ChangeKind::OfferStockChanged, Detail::Stock(stock)),
            OfferEvent::StatusChanged(status) => (ChangeKind::OfferStatusChanged, Detail::Status(status)),
            OfferEvent::Rejected => return None,
        };
        Some(Self {
            kind,
            seller,
            topic: Topic::Offer(offer),
            detail,
            at,
        })
    }

    /// The feed item of an order's transition: shipments, their corrections, and deliveries that the
    /// marketplace did not record itself.
    pub fn of_order(seller: SellerId, order: OrderId, event: OrderEvent, at: DateTime<Utc>) -> Option<Self> {
        let item = Self::named(event.kind.as_str(), seller, Topic::Order(order), at);
        item.filter(|_| event.cause != Cause::Marketplace)
    }

    /// The feed item of an application's event.
    pub fn of_application(
        owner: SellerId,
        client_id: ClientId,
        event: ApplicationEvent,
        at: DateTime<Utc>,
    ) -> Option<Self> {
        Self::named(event.as_str(), owner, Topic::Application(client_id), at)
    }

    /// The item of an event that the feed has under the same name.
    fn named(event: &str, seller: SellerId, topic: Topic, at: DateTime<Utc>) -> Option<Self> {
        Some(Self {
            kind: ChangeKind::parse(event)?,
            seller,
            topic,
            detail: Detail::Nothing,
            at,
        })
    }
}

/// Default number of items on a page.
pub const DEFAULT_CHANGES: u16 = 100;
/// Maximum number of items on a page.
pub const MAX_CHANGES: u16 = 1_000;

/// A position in the feed, opaque to readers. It survives restarts of the service, but not a dump that is
/// restored or the loss of its row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangeCursor(pub String);

/// A page of the feed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangePage {
    /// The items in the feed's total order.
    pub items: Vec<ChangeItem>,
    /// The position to continue from; always present.
    pub next: ChangeCursor,
}

/// Why the feed cannot be read from a position.
#[derive(Debug, thiserror::Error)]
pub enum ChangesError {
    #[error("not a change-feed cursor")]
    Malformed,
    /// The cursor belongs to another database, or to rows that a restore has undone: its reader may have seen
    /// changes that no longer exist, and may miss others.
    #[error(
        "cursor of another database, or of this one before a restore: read the feed without `after` to its end, then everything again"
    )]
    OtherHistory,
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Reads the feed.
///
/// An adapter MUST return every item exactly once to a reader that follows the cursors, including items of
/// long transactions that commit after later ones, and MUST keep the order stable.
#[cfg_attr(any(test, feature = "mocks"), mockall::automock)]
#[async_trait]
pub trait ChangeReader: Send + Sync {
    /// Up to `limit` items after a position, or from the oldest stored item.
    async fn changes(&self, after: Option<ChangeCursor>, limit: u16) -> Result<ChangePage, ChangesError>;
}

#[cfg(test)]
mod tests {
    use orders::OrderEventKind;
    use uuid::Uuid;

    use super::*;

    fn kind(kind: OrderEventKind, cause: Cause) -> Option<ChangeKind> {
        let (event, at) = (OrderEvent { kind, cause }, DateTime::<Utc>::UNIX_EPOCH);
        let item = ChangeItem::of_order(Uuid::nil().into(), Uuid::nil().into(), event, at);
        item.map(|item| item.kind)
    }

    #[test]
    fn the_feed_has_shipments_and_deliveries_that_the_marketplace_did_not_record() {
        let kinds = [
            None,
            None,
            Some(ChangeKind::OrderShipped),
            Some(ChangeKind::OrderDelivered),
            None,
            Some(ChangeKind::ShipmentCorrected),
        ];
        assert_eq!(OrderEventKind::ALL.map(|event| kind(event, Cause::Seller)), kinds);
        assert_eq!(kind(OrderEventKind::Delivered, Cause::Carrier), kinds[3]);
        assert_eq!(
            OrderEventKind::ALL.map(|event| kind(event, Cause::Marketplace)),
            [None; 6]
        );
    }

    #[test]
    fn the_feed_has_every_event_of_an_application() {
        let id = Uuid::from_u128(1);
        let item = |event| {
            let item = ChangeItem::of_application(id.into(), id.into(), event, DateTime::<Utc>::UNIX_EPOCH);
            item.unwrap().kind
        };
        let kinds = [
            ChangeKind::ApplicationRegistered,
            ChangeKind::ApplicationScopesRequested,
            ChangeKind::ApplicationChanged,
        ];
        assert_eq!(ApplicationEvent::ALL.map(item), kinds);
    }

    #[test]
    fn a_sellers_change_of_an_offer_carries_the_new_value() {
        let (seller, offer) = (Uuid::from_u128(1).into(), Uuid::from_u128(2).into());
        let (price, stock) = (Money::pln(499).unwrap(), Stock::new(3).unwrap());
        let status = OfferStatus::Draft;
        let at = DateTime::<Utc>::UNIX_EPOCH;
        let item =
            |event| ChangeItem::of_offer(seller, offer, event, at).map(|item| (item.kind, item.detail));
        let priced = Some((ChangeKind::OfferPriceChanged, Detail::Price(price)));
        assert_eq!(item(OfferEvent::PriceChanged(price)), priced);
        let stocked = Some((ChangeKind::OfferStockChanged, Detail::Stock(stock)));
        assert_eq!(item(OfferEvent::StockChanged(stock)), stocked);
        let changed = OfferEvent::StatusChanged(status);
        let status_changed = Some((ChangeKind::OfferStatusChanged, Detail::Status(status)));
        assert_eq!(item(changed), status_changed);
        let whole = ChangeItem::of_offer(seller, offer, changed, at).unwrap();
        assert_eq!(
            (whole.topic, whole.seller, whole.at),
            (Topic::Offer(offer), seller, at)
        );
        // Moderation is the marketplace's own action.
        assert_eq!(item(OfferEvent::Rejected), None);
    }
}
