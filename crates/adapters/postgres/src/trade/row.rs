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

/// The columns of [`PartRow`], of the table under its own name.
macro_rules! part_columns {
    () => {
        "seller_orders.seller_id, seller_orders.order_id, seller_orders.placed_at, seller_orders.updated_at, \
         seller_orders.paid_at, seller_orders.shipped_at, seller_orders.delivered_at, seller_orders.cancelled_at, \
         seller_orders.shipment_id, seller_orders.shipment_at, seller_orders.is_test, seller_orders.several_sellers, \
         seller_orders.delivered_already, seller_orders.buyer_notified, seller_orders.status, seller_orders.number, \
         seller_orders.carrier, seller_orders.tracking_number, seller_orders.tracking_status, \
         seller_orders.payment_method, seller_orders.delivery_method, seller_orders.buyer, \
         seller_orders.shipping_address, seller_orders.items"
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
