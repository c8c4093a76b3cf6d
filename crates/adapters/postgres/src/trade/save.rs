//! Saving one part of an order.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use diesel::sql_types::{Bool, Json, Nullable, Text, Timestamptz, Uuid as SqlUuid};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use kernel::{Change, StoreError, Version};
use orders::{OrderEvent, SellerOrder};
use uuid::Uuid;

use super::{documents::Document, state::Instants};
use crate::{
    error::store_error,
    pending::{Write, expect_rows},
    statement::statement,
};

/// What a part is once it is placed: it never changes afterwards.
struct Placed<'a> {
    placed_at: DateTime<Utc>,
    is_test: bool,
    several_sellers: bool,
    number: &'a str,
    payment_method: Option<&'a str>,
    delivery_method: Option<&'a str>,
    items: Document,
}

/// What changes as the part moves on.
struct Moving<'a> {
    updated_at: DateTime<Utc>,
    instants: Instants,
    shipment_id: Option<Uuid>,
    shipment_at: Option<DateTime<Utc>>,
    delivered_already: Option<bool>,
    buyer_notified: Option<bool>,
    status: &'static str,
    carrier: Option<&'static str>,
    tracking_number: Option<&'a str>,
    tracking_status: Option<&'static str>,
    buyer: Option<Document>,
    shipping_address: Option<Document>,
}

impl<'a> Moving<'a> {
    fn of(part: &'a SellerOrder) -> Result<Self, StoreError> {
        let parcel = part.parcel();
        Ok(Self {
            updated_at: part.updated_at,
            instants: Instants::of(&part.state),
            shipment_id: parcel.map(|parcel| parcel.id.uuid()),
            shipment_at: parcel.map(|parcel| parcel.created_at),
            delivered_already: parcel.map(|parcel| parcel.delivered_already),
            buyer_notified: parcel.map(|parcel| parcel.buyer_notified),
            status: part.status().as_str(),
            carrier: parcel.map(|parcel| parcel.carrier.as_str()),
            tracking_number: parcel.map(|parcel| parcel.tracking_number.as_str()),
            tracking_status: parcel
                .and_then(|parcel| parcel.tracking_status)
                .map(orders::TrackingStatus::as_str),
            buyer: part.buyer.as_ref().map(Document::of_buyer).transpose()?,
            shipping_address: part
                .shipping_address
                .as_ref()
                .map(Document::of_address)
                .transpose()?,
        })
    }
}

/// Makes a part.
struct Insert<'a> {
    seller: Uuid,
    order: Uuid,
    placed: Placed<'a>,
    moving: Moving<'a>,
}

statement!(Insert<'_> => ():
    "insert into seller_orders (seller_id, order_id, placed_at, is_test, several_sellers, number, payment_method, \
     delivery_method, items, updated_at, paid_at, shipped_at, delivered_at, cancelled_at, shipment_id, shipment_at, \
     delivered_already, buyer_notified, status, carrier, tracking_number, tracking_status, buyer, shipping_address) \
     values (", seller: SqlUuid,
    ", ", order: SqlUuid,
    ", ", placed.placed_at: Timestamptz,
    ", ", placed.is_test: Bool,
    ", ", placed.several_sellers: Bool,
    ", ", placed.number: Text,
    ", ", placed.payment_method: Nullable<Text>,
    ", ", placed.delivery_method: Nullable<Text>,
    ", ", placed.items: Json,
    ", ", moving.updated_at: Timestamptz,
    ", ", moving.instants.paid_at: Nullable<Timestamptz>,
    ", ", moving.instants.shipped_at: Nullable<Timestamptz>,
    ", ", moving.instants.delivered_at: Nullable<Timestamptz>,
    ", ", moving.instants.cancelled_at: Nullable<Timestamptz>,
    ", ", moving.shipment_id: Nullable<SqlUuid>,
    ", ", moving.shipment_at: Nullable<Timestamptz>,
    ", ", moving.delivered_already: Nullable<Bool>,
    ", ", moving.buyer_notified: Nullable<Bool>,
    ", ", moving.status: Text,
    ", ", moving.carrier: Nullable<Text>,
    ", ", moving.tracking_number: Nullable<Text>,
    ", ", moving.tracking_status: Nullable<Text>,
    ", ", moving.buyer: Nullable<Json>,
    ", ", moving.shipping_address: Nullable<Json>, ")");

/// Moves a part that is there.
struct Update<'a> {
    seller: Uuid,
    order: Uuid,
    moving: Moving<'a>,
}

statement!(Update<'_> => ():
    "update seller_orders set updated_at = ", moving.updated_at: Timestamptz,
    ", paid_at = ", moving.instants.paid_at: Nullable<Timestamptz>,
    ", shipped_at = ", moving.instants.shipped_at: Nullable<Timestamptz>,
    ", delivered_at = ", moving.instants.delivered_at: Nullable<Timestamptz>,
    ", cancelled_at = ", moving.instants.cancelled_at: Nullable<Timestamptz>,
    ", shipment_id = ", moving.shipment_id: Nullable<SqlUuid>,
    ", shipment_at = ", moving.shipment_at: Nullable<Timestamptz>,
    ", delivered_already = ", moving.delivered_already: Nullable<Bool>,
    ", buyer_notified = ", moving.buyer_notified: Nullable<Bool>,
    ", status = ", moving.status: Text,
    ", carrier = ", moving.carrier: Nullable<Text>,
    ", tracking_number = ", moving.tracking_number: Nullable<Text>,
    ", tracking_status = ", moving.tracking_status: Nullable<Text>,
    ", buyer = ", moving.buyer: Nullable<Json>,
    ", shipping_address = ", moving.shipping_address: Nullable<Json>,
    " where seller_id = ", seller: SqlUuid,
    " and order_id = ", order: SqlUuid, "");

/// Saves a part, new or locked.
pub(super) struct SavePart(pub(super) Change<SellerOrder, OrderEvent>);

#[async_trait]
impl Write for SavePart {
    async fn send(&self, mut connection: &AsyncPgConnection) -> Result<(), StoreError> {
        let part = &self.0.after;
        let (seller, order, moving) = (part.seller.uuid(), part.id.uuid(), Moving::of(part)?);
        let saved = match self.0.before {
            Version::Absent => {
                let placed = Placed {
                    placed_at: part.placed_at,
                    is_test: part.is_test,
                    several_sellers: part.several_sellers,
                    number: part.number.as_str(),
                    payment_method: part.payment_method.as_deref(),
                    delivery_method: part.delivery_method.as_deref(),
                    items: Document::of_items(&part.items)?,
                };
                Insert {
                    seller,
                    order,
                    placed,
                    moving,
                }
                .execute(&mut connection)
                .await
            }
            Version::Locked => {
                Update {
                    seller,
                    order,
                    moving,
                }
                .execute(&mut connection)
                .await
            }
        };
        expect_rows("seller_orders", saved.map_err(store_error)?, 1)
    }
}
