//! An order as an operator sees it: with every seller's part.

use orders::{OrderState, OrderStatus, SellerOrder, Shipment, TrackingStatus};
use web::resources::{BuyerView, DeliveryPointView, InvoiceView, OrderItemView, ShippingAddressView};
use web::timestamps::Timestamp;
use web::view::View;

/// Names of fields.
type Names = &'static [&'static str];

/// The fields of a part with the buyer's data. Stored answers contain none of it, so an erasure need not search
/// them (D130).
pub(super) const BUYERS: Names = &["buyer", "shipping_address", "delivery_point", "invoice"];

/// The order, without these fields of its parts; `None` without parts.
pub(super) fn order(parts: &[SellerOrder], left_out: Names) -> Option<OrderView<'_>> {
    Some(OrderView::whole((parts.first()?, parts, left_out)))
}

/// The order of these shipped parts, with their shipments.
pub(super) fn shipped(parts: &[SellerOrder]) -> Option<ShippedView<'_>> {
    Some(ShippedView::whole((parts.first()?, parts)))
}

web::view! {
    /// `status` is the whole order's. `left_out` names the fields that are left out of each part.
    pub(super) OrderView<'a> of (order, parts, left_out): (&'a SellerOrder, &'a [SellerOrder], Names) {
        "order_id" => order.id.uuid(),
        "order_number" => order.number.as_str(),
        "status" => OrderStatus::aggregate(parts.iter().map(SellerOrder::status)).map(OrderStatus::as_str),
        "is_test" => order.is_test,
        "payment_method" => order.payment_method,
        "delivery_method" => order.delivery_method,
        "placed_at" => Timestamp::new(order.placed_at),
        "parts" => parts.iter().map(|part| PartView::without(part, left_out)).collect::<Vec<_>>(),
    }
}

web::view! {
    /// One seller's part.
    PartView<'a> of part: &'a SellerOrder {
        "seller_id" => part.seller.uuid(),
        "status" => part.status().as_str(),
        "payment_status" => part.payment_status().as_str(),
        "paid_at" => part.paid_at().map(Timestamp::new),
        "shipped_at" => part.shipped_at().map(Timestamp::new),
        "delivered_at" => part.delivered_at().map(Timestamp::new),
        "cancelled_at" => match part.state {
            OrderState::Cancelled { cancelled_at, .. } => Some(Timestamp::new(cancelled_at)),
            _ => None,
        },
        "updated_at" => Timestamp::new(part.updated_at),
        "items" => part.items.iter()
            .map(|item| OrderItemView::without((item, part.status()), &["fulfillment_status"]))
            .collect::<Vec<_>>(),
        "shipment" => part.shipment()
            .map(|shipment| ShipmentView::without((part, shipment), &["seller_id", "item_ids"])),
        "buyer" => part.buyer.as_ref().map(BuyerView::whole),
        "shipping_address" => part.shipping_address.as_ref().map(ShippingAddressView::whole),
        "delivery_point" => part.delivery_point.as_ref().map(DeliveryPointView::whole),
        "invoice" => part.invoice.as_ref().map(InvoiceView::whole),
    }
}

web::view! {
    /// The shipment of one seller's part (contract: Shipment), with the last status from its carrier.
    ShipmentView<'a> of (part, shipment): (&'a SellerOrder, &'a Shipment) {
        "seller_id" => part.seller.uuid(),
        "item_ids" => part.items.iter().map(|item| item.offer.uuid()).collect::<Vec<_>>(),
        "id" => shipment.id.uuid(),
        "carrier" => shipment.carrier.as_str(),
        "carrier_name" => shipment.carrier.display_name(),
        "carrier_code" => shipment.carrier.as_str(),
        "tracking_number" => shipment.tracking_number.as_str(),
        "tracking_url" => shipment.carrier.tracking_url(&shipment.tracking_number),
        "tracking_status" => shipment.tracking_status.map(TrackingStatus::as_str),
        "delivered_already" => shipment.delivered_already,
        "buyer_notified" => shipment.buyer_notified,
        "created_at" => Timestamp::new(shipment.created_at),
    }
}

web::view! {
    pub(super) ShippedView<'a> of (order, parts): (&'a SellerOrder, &'a [SellerOrder]) {
        "order_id" => order.id.uuid(),
        "order_number" => order.number.as_str(),
        "shipments" => parts.iter()
            .filter_map(|part| Some(ShipmentView::whole((part, part.shipment()?))))
            .collect::<Vec<_>>(),
    }
}
