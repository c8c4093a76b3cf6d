//! A shipment as the seller who reported it sees it (contract: Shipment).

use orders::{Carrier, Parcel, SellerOrder};
use serde::{Serialize, Serializer};
use web::schema::{Node, array, boolean, date_time, string, uri, uuid};
use web::timestamps::Timestamp;

use super::view::view;

/// A shipment that was just recorded, and the order that it belongs to.
pub(super) struct Recorded {
    pub(super) order: SellerOrder,
    pub(super) parcel: Parcel,
}

view! {
    /// A shipment with the chosen fields. Its items are all that the seller has in the order (D40).
    ShipmentView of recorded: Recorded, of 512 bytes, named "Shipment", "A parcel that the seller has handed over." {
        "id": uuid() => recorded.parcel.id.uuid(),
        "order_id": uuid() => recorded.order.id.uuid(),
        "carrier": carrier() => recorded.parcel.carrier.as_str(),
        "carrier_name": string().said("As people know it.") => recorded.parcel.carrier.display_name(),
        "tracking_number": string() => recorded.parcel.tracking_number.as_str(),
        "tracking_url": uri().or_null().said("The carrier's page about the parcel; `null` for `other`.")
            => recorded.parcel.carrier.tracking_url(&recorded.parcel.tracking_number),
        "item_ids": array(uuid()).said("All of the seller's items: a shipment covers the whole order.")
            => ItemIds(&recorded.order),
        "delivered_already": boolean().said("The carrier had delivered the parcel before it was reported.")
            => recorded.parcel.delivered_already,
        "buyer_notified": boolean().said("A mail to the buyer is on its way.") => recorded.parcel.buyer_notified,
        "created_at": date_time() => Timestamp::new(recorded.parcel.created_at),
    }
}

/// Contract: Shipment.
pub(super) fn carrier() -> Node {
    string()
        .one_of(Carrier::ALL.map(Carrier::as_str))
        .named("Carrier")
}

struct ItemIds<'a>(&'a SellerOrder);

impl Serialize for ItemIds<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.items.iter().map(|item| item.offer.uuid()))
    }
}
