//! A part of an order as a row.

use chrono::{DateTime, Utc};
use diesel::{Queryable, sql_types as sql};
use kernel::{SellerId, StoreError};
use orders::{OrderId, SellerOrder};
use uuid::Uuid;

use super::{
    documents::Document,
    state::{self, Instants, ParcelColumns},
    words,
};

/// The columns of [`PartRow`], of the table under the name `o`.
macro_rules! part_columns {
    () => {
        "o.seller_id, o.order_id, o.placed_at, o.updated_at, o.paid_at, o.shipped_at, o.delivered_at, o.cancelled_at, \
         o.shipment_id, o.shipment_at, o.is_test, o.several_sellers, o.delivered_already, o.buyer_notified, o.status, \
         o.number, o.carrier, o.tracking_number, o.tracking_status, o.payment_method, o.delivery_method, o.buyer, \
         o.shipping_address, o.items"
    };
}
pub(super) use part_columns;

/// The types of these columns.
pub(super) type PartColumns = (
    sql::Uuid,
    sql::Uuid,
    sql::Timestamptz,
    sql::Timestamptz,
    sql::Nullable<sql::Timestamptz>,
    sql::Nullable<sql::Timestamptz>,
    sql::Nullable<sql::Timestamptz>,
    sql::Nullable<sql::Timestamptz>,
    sql::Nullable<sql::Uuid>,
    sql::Nullable<sql::Timestamptz>,
    sql::Bool,
    sql::Bool,
    sql::Nullable<sql::Bool>,
    sql::Nullable<sql::Bool>,
    sql::Text,
    sql::Text,
    sql::Nullable<sql::Text>,
    sql::Nullable<sql::Text>,
    sql::Nullable<sql::Text>,
    sql::Nullable<sql::Text>,
    sql::Nullable<sql::Text>,
    sql::Nullable<sql::Json>,
    sql::Nullable<sql::Json>,
    sql::Json,
);

#[derive(Queryable)]
pub(super) struct PartRow {
    seller_id: Uuid,
    order_id: Uuid,
    placed_at: DateTime<Utc>,
    updated_at: DateTime<Utc>,
    paid_at: Option<DateTime<Utc>>,
    shipped_at: Option<DateTime<Utc>>,
    delivered_at: Option<DateTime<Utc>>,
    cancelled_at: Option<DateTime<Utc>>,
    shipment_id: Option<Uuid>,
    shipment_at: Option<DateTime<Utc>>,
    is_test: bool,
    several_sellers: bool,
    delivered_already: Option<bool>,
    buyer_notified: Option<bool>,
    status: String,
    number: String,
    carrier: Option<String>,
    tracking_number: Option<String>,
    tracking_status: Option<String>,
    payment_method: Option<String>,
    delivery_method: Option<String>,
    buyer: Option<Document>,
    shipping_address: Option<Document>,
    items: Document,
}

impl TryFrom<PartRow> for SellerOrder {
    type Error = StoreError;

    fn try_from(row: PartRow) -> Result<Self, StoreError> {
        let key = (SellerId::from(row.seller_id), OrderId::from(row.order_id));
        row.read(key)
            .map_err(|reason| StoreError::corrupt("seller_orders", format!("{}, {}", key.0, key.1), reason))
    }
}

impl PartRow {
    fn read(self, (seller, id): (SellerId, OrderId)) -> Result<SellerOrder, String> {
        let instants = Instants {
            paid_at: self.paid_at,
            shipped_at: self.shipped_at,
            delivered_at: self.delivered_at,
            cancelled_at: self.cancelled_at,
        };
        let parcel = ParcelColumns {
            id: self.shipment_id,
            at: self.shipment_at,
            delivered_already: self.delivered_already,
            buyer_notified: self.buyer_notified,
            carrier: self.carrier,
            tracking_number: self.tracking_number,
            tracking_status: self.tracking_status,
        };
        Ok(SellerOrder {
            seller,
            id,
            number: words::order_number(self.number)?,
            is_test: self.is_test,
            several_sellers: self.several_sellers,
            payment_method: self.payment_method,
            delivery_method: self.delivery_method,
            placed_at: self.placed_at,
            buyer: self.buyer.as_ref().map(Document::buyer).transpose()?,
            shipping_address: self
                .shipping_address
                .as_ref()
                .map(Document::address)
                .transpose()?,
            items: self.items.items()?,
            state: state::read(&self.status, instants, parcel.read()?)?,
            updated_at: self.updated_at,
        })
    }
}
