//! A shipment as the seller who reported it sees it (contract: Shipment).

use orders::{Parcel, SellerOrder};
use serde::{Serialize, Serializer};
use web::timestamps::Timestamp;

use super::view::view;

/// A shipment that was just recorded, and the order that it belongs to.
pub(super) struct Recorded {
    pub(super) order: SellerOrder,
    pub(super) parcel: Parcel,
}

view! {
    /// A shipment with the chosen fields. Its items are all that the seller has in the order (D40).
    ShipmentView of recorded: Recorded, of 512 bytes {
        "id" => recorded.parcel.id.uuid(),
        "order_id" => recorded.order.id.uuid(),
        "carrier" => recorded.parcel.carrier.as_str(),
        "carrier_name" => recorded.parcel.carrier.display_name(),
        "tracking_number" => recorded.parcel.tracking_number.as_str(),
        "tracking_url" => recorded.parcel.carrier.tracking_url(&recorded.parcel.tracking_number),
        "item_ids" => ItemIds(&recorded.order),
        "delivered_already" => recorded.parcel.delivered_already,
        "buyer_notified" => recorded.parcel.buyer_notified,
        "created_at" => Timestamp::new(recorded.parcel.created_at),
    }
}

struct ItemIds<'a>(&'a SellerOrder);

impl Serialize for ItemIds<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.items.iter().map(|item| item.offer.uuid()))
    }
}
