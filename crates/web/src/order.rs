//! Parts of an order as JSON that both listeners show.

use orders::{Buyer, OrderItem, OrderStatus, ShippingAddress};

use crate::money::MoneyView;
use crate::schema::{Node, integer, string, uuid};
use crate::view::View;

crate::view! {
    pub BuyerView<'a> of buyer: &'a Buyer, named "Buyer", "Who bought. Personal data." {
        "name": string().or_null() => buyer.name,
        "email": string().or_null() => buyer.email,
        "phone": string().or_null() => buyer.phone,
    }
}

crate::view! {
    pub ShippingAddressView<'a> of address: &'a ShippingAddress,
        named "ShippingAddress", "Where the parcel goes. Personal data."
    {
        "line1": string().or_null() => address.line1,
        "line2": string().or_null() => address.line2,
        "postal_code": string().or_null() => address.postal_code,
        "city": string().or_null() => address.city,
        "country": string().example("PL") => address.country,
    }
}

crate::view! {
    /// Contract: `OrderItem`. An item has the status of its order, because an order is shipped as a whole.
    pub OrderItemView<'a> of (item, status): (&'a OrderItem, OrderStatus), named "OrderItem", "A line of an order." {
        "id": uuid().describe("At present that of the offer.") => item.offer.uuid(),
        "offer_id": uuid() => item.offer.uuid(),
        "title": string().or_null() => item.title,
        "handle": string().or_null() => item.handle,
        "sku": string().or_null() => item.sku,
        "quantity": integer(1, i32::MAX.into()) => item.quantity,
        "unit_price": MoneyView::schema().or_null() => item.unit_price.map(MoneyView::whole),
        "fulfillment_status": order_status().describe("At present that of the order, since an order is shipped as a whole.")
            => status.as_str(),
    }
}

/// The schema of a status.
pub fn order_status() -> Node {
    string()
        .one_of(OrderStatus::ALL.map(OrderStatus::as_str))
        .describe("`pending` is not paid, `processing` is paid and to be shipped.")
        .named("OrderStatus")
}
