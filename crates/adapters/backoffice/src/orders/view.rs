//! An order as an operator sees it: with every seller's part.

use orders::{Buyer, OrderItem, OrderState, OrderStatus, Parcel, SellerOrder, ShippingAddress};
use serde::Serialize;
use web::money::MoneyView;
use web::timestamps::Timestamp;

/// `{order_id, order_number, status, …, parts}`; `status` is that of the whole order.
#[derive(Serialize)]
pub(super) struct OrderView<'a> {
    order_id: String,
    order_number: &'a str,
    status: &'static str,
    is_test: bool,
    payment_method: Option<&'a str>,
    delivery_method: Option<&'a str>,
    placed_at: Timestamp,
    parts: Vec<PartView<'a>>,
}

/// One seller's part.
#[derive(Serialize)]
struct PartView<'a> {
    seller_id: String,
    status: &'static str,
    payment_status: &'static str,
    paid_at: Option<Timestamp>,
    shipped_at: Option<Timestamp>,
    delivered_at: Option<Timestamp>,
    cancelled_at: Option<Timestamp>,
    updated_at: Timestamp,
    items: Vec<ItemView<'a>>,
    shipment: Option<ShipmentView<'a>>,
    #[serde(flatten)]
    personal: Option<PersonalView<'a>>,
}

/// The data that an erasure removes.
#[derive(Serialize)]
struct PersonalView<'a> {
    buyer: Option<&'a Buyer>,
    shipping_address: Option<&'a ShippingAddress>,
}

/// An item; its id is that of its offer.
#[derive(Serialize)]
struct ItemView<'a> {
    id: String,
    offer_id: String,
    title: Option<&'a str>,
    handle: Option<&'a str>,
    sku: Option<&'a str>,
    quantity: i32,
    unit_price: Option<MoneyView>,
}

/// A shipment (contract: Shipment), with the last status from its carrier.
#[derive(Serialize)]
struct ShipmentView<'a> {
    id: String,
    carrier: &'static str,
    carrier_name: &'static str,
    tracking_number: &'a str,
    tracking_url: Option<String>,
    tracking_status: Option<&'static str>,
    delivered_already: bool,
    buyer_notified: bool,
    created_at: Timestamp,
}

impl<'a> OrderView<'a> {
    /// The whole order; `None` without parts.
    pub(super) fn of(parts: &'a [SellerOrder]) -> Option<Self> {
        Self::with(parts, |part| Some(PersonalView::from(part)))
    }

    /// The order without buyer and address. Stored answers contain neither, so an erasure need not search them (D130).
    pub(super) fn without_buyer(parts: &'a [SellerOrder]) -> Option<Self> {
        Self::with(parts, |_| None)
    }

    fn with(
        parts: &'a [SellerOrder],
        personal: impl Fn(&'a SellerOrder) -> Option<PersonalView<'a>>,
    ) -> Option<Self> {
        let order = parts.first()?;
        Some(Self {
            order_id: order.id.to_string(),
            order_number: order.number.as_str(),
            status: OrderStatus::aggregate(parts.iter().map(SellerOrder::status))?.as_str(),
            is_test: order.is_test,
            payment_method: order.payment_method.as_deref(),
            delivery_method: order.delivery_method.as_deref(),
            placed_at: Timestamp::new(order.placed_at),
            parts: parts
                .iter()
                .map(|part| PartView::of(part, personal(part)))
                .collect(),
        })
    }
}

impl<'a> PartView<'a> {
    fn of(part: &'a SellerOrder, personal: Option<PersonalView<'a>>) -> Self {
        let cancelled_at = match part.state {
            OrderState::Cancelled { cancelled_at, .. } => Some(cancelled_at),
            _ => None,
        };
        Self {
            seller_id: part.seller.to_string(),
            status: part.status().as_str(),
            payment_status: part.payment_status().as_str(),
            paid_at: part.paid_at().map(Timestamp::new),
            shipped_at: part.shipped_at().map(Timestamp::new),
            delivered_at: part.delivered_at().map(Timestamp::new),
            cancelled_at: cancelled_at.map(Timestamp::new),
            updated_at: Timestamp::new(part.updated_at),
            items: part.items.iter().map(ItemView::from).collect(),
            shipment: part.parcel().map(ShipmentView::from),
            personal,
        }
    }
}

impl<'a> From<&'a SellerOrder> for PersonalView<'a> {
    fn from(part: &'a SellerOrder) -> Self {
        Self {
            buyer: part.buyer.as_ref(),
            shipping_address: part.shipping_address.as_ref(),
        }
    }
}

impl<'a> From<&'a OrderItem> for ItemView<'a> {
    fn from(item: &'a OrderItem) -> Self {
        Self {
            id: item.offer.to_string(),
            offer_id: item.offer.to_string(),
            title: item.title.as_deref(),
            handle: item.handle.as_deref(),
            sku: item.sku.as_deref(),
            quantity: item.quantity,
            unit_price: item.unit_price.map(MoneyView::from),
        }
    }
}

impl<'a> From<&'a Parcel> for ShipmentView<'a> {
    fn from(parcel: &'a Parcel) -> Self {
        Self {
            id: parcel.id.to_string(),
            carrier: parcel.carrier.as_str(),
            carrier_name: parcel.carrier.display_name(),
            tracking_number: parcel.tracking_number.as_str(),
            tracking_url: parcel.carrier.tracking_url(&parcel.tracking_number),
            tracking_status: parcel.tracking_status.map(orders::TrackingStatus::as_str),
            delivered_already: parcel.delivered_already,
            buyer_notified: parcel.buyer_notified,
            created_at: Timestamp::new(parcel.created_at),
        }
    }
}

/// `{order_id, order_number, shipments}`
#[derive(Serialize)]
pub(super) struct ShippedView<'a> {
    order_id: String,
    order_number: &'a str,
    shipments: Vec<SellersShipment<'a>>,
}

/// The shipment of one seller's part.
#[derive(Serialize)]
struct SellersShipment<'a> {
    seller_id: String,
    item_ids: Vec<String>,
    #[serde(flatten)]
    shipment: ShipmentView<'a>,
}

impl<'a> ShippedView<'a> {
    /// Of the shipped parts, which belong to one order.
    pub(super) fn of(parts: &'a [SellerOrder]) -> Option<Self> {
        let order = parts.first()?;
        let shipments = parts.iter().filter_map(|part| {
            Some(SellersShipment {
                seller_id: part.seller.to_string(),
                item_ids: part.items.iter().map(|item| item.offer.to_string()).collect(),
                shipment: part.parcel()?.into(),
            })
        });
        Some(Self {
            order_id: order.id.to_string(),
            order_number: order.number.as_str(),
            shipments: shipments.collect(),
        })
    }
}
