//! An order as one seller sees it (contract: Order).

use orders::{Buyer, OrderItem, OrderStatus, Parcel, SellerOrder, ShippingAddress, TrackingStatus};
use serde::{Serialize, Serializer};
use uuid::Uuid;
use web::timestamps::Timestamp;

use super::MoneyView;
use super::view::view;

view! {
    /// A seller's part of an order with the chosen fields.
    OrderView of order: SellerOrder, of 1536 bytes {
        "id" => order.id.uuid(),
        "order_number" => order.number.as_str(),
        "status" => order.status().as_str(),
        "payment_status" => order.payment_status().as_str(),
        "payment_method" => order.payment_method,
        "placed_at" => Timestamp::new(order.placed_at),
        "paid_at" => order.paid_at().map(Timestamp::new),
        "shipped_at" => order.shipped_at().map(Timestamp::new),
        "delivered_at" => order.delivered_at().map(Timestamp::new),
        "delivery_method" => order.delivery_method,
        "shipment" => order.parcel().map(ParcelView::of),
        "buyer" => shown(order, order.buyer.as_ref()).map(BuyerView::of),
        "shipping_address" => shown(order, order.shipping_address.as_ref()).map(AddressView::of),
        "items" => Items(order),
        "is_test" => order.is_test,
        "updated_at" => Timestamp::new(order.updated_at),
    }
}

/// What is the buyer's own is shown from the payment on.
fn shown<'a, T>(order: &SellerOrder, personal: Option<&'a T>) -> Option<&'a T> {
    personal.filter(|_| order.shows_buyer())
}

#[derive(Serialize)]
struct ParcelView<'a> {
    carrier: &'static str,
    tracking_number: &'a str,
    tracking_url: Option<String>,
    tracking_status: Option<&'static str>,
}

impl<'a> ParcelView<'a> {
    fn of(parcel: &'a Parcel) -> Self {
        Self {
            carrier: parcel.carrier.display_name(),
            tracking_number: parcel.tracking_number.as_str(),
            tracking_url: parcel.carrier.tracking_url(&parcel.tracking_number),
            tracking_status: parcel.tracking_status.map(TrackingStatus::as_str),
        }
    }
}

#[derive(Serialize)]
struct BuyerView<'a> {
    name: Option<&'a str>,
    email: Option<&'a str>,
    phone: Option<&'a str>,
}

impl<'a> BuyerView<'a> {
    fn of(buyer: &'a Buyer) -> Self {
        Self {
            name: buyer.name.as_deref(),
            email: buyer.email.as_deref(),
            phone: buyer.phone.as_deref(),
        }
    }
}

#[derive(Serialize)]
struct AddressView<'a> {
    line1: Option<&'a str>,
    line2: Option<&'a str>,
    postal_code: Option<&'a str>,
    city: Option<&'a str>,
    country: &'a str,
}

impl<'a> AddressView<'a> {
    fn of(address: &'a ShippingAddress) -> Self {
        Self {
            line1: address.line1.as_deref(),
            line2: address.line2.as_deref(),
            postal_code: address.postal_code.as_deref(),
            city: address.city.as_deref(),
            country: &address.country,
        }
    }
}

/// The items, each with the status of the order, since shipping is per order.
struct Items<'a>(&'a SellerOrder);

impl Serialize for Items<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let status = self.0.status();
        serializer.collect_seq(self.0.items.iter().map(|item| ItemView::of(item, status)))
    }
}

/// Contract: `OrderItem`.
#[derive(Serialize)]
struct ItemView<'a> {
    id: Uuid,
    offer_id: Uuid,
    title: Option<&'a str>,
    handle: Option<&'a str>,
    sku: Option<&'a str>,
    quantity: i32,
    unit_price: Option<MoneyView>,
    fulfillment_status: &'static str,
}

impl<'a> ItemView<'a> {
    fn of(item: &'a OrderItem, status: OrderStatus) -> Self {
        Self {
            id: item.offer.uuid(),
            offer_id: item.offer.uuid(),
            title: item.title.as_deref(),
            handle: item.handle.as_deref(),
            sku: item.sku.as_deref(),
            quantity: item.quantity,
            unit_price: item.unit_price.map(MoneyView::of),
            fulfillment_status: status.as_str(),
        }
    }
}
