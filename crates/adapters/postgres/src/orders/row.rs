//! A seller's part of an order as a row: each status has its own timestamps, and only a shipped part has a
//! shipment.

use chrono::{DateTime, Utc};
use diesel::pg::Pg;
use diesel::prelude::*;
use kernel::{SellerId, StoreError};
use orders::{
    CORRECTIONS, Carrier, OrderId, OrderNumber, OrderState, OrderStatus, SellerOrder, Shipment,
    TrackingNumber, TrackingStatus,
};
use serde::de::DeserializeOwned;
use uuid::Uuid;

use crate::schema::seller_orders;
use crate::sql::Document;
use crate::statement::TableRow;

#[derive(Queryable, Selectable, Insertable)]
#[diesel(table_name = seller_orders, treat_none_as_default_value = false, check_for_backend(Pg))]
pub(crate) struct PartRow {
    seller_id: Uuid,
    order_id: Uuid,
    placed_at: DateTime<Utc>,
    is_test: bool,
    several_sellers: bool,
    number: String,
    payment_method: Option<String>,
    delivery_method: Option<String>,
    items: Document,
    #[diesel(embed)]
    mutable: MutableColumns,
}

impl TableRow for PartRow {
    const TABLE: &'static str = "seller_orders";
}

/// The columns that change after the order was placed.
#[derive(Queryable, Selectable, Insertable, AsChangeset)]
#[diesel(table_name = seller_orders, treat_none_as_default_value = false, treat_none_as_null = true)]
#[diesel(check_for_backend(Pg))]
pub(crate) struct MutableColumns {
    updated_at: DateTime<Utc>,
    paid_at: Option<DateTime<Utc>>,
    shipped_at: Option<DateTime<Utc>>,
    delivered_at: Option<DateTime<Utc>>,
    cancelled_at: Option<DateTime<Utc>>,
    shipment_id: Option<Uuid>,
    shipment_at: Option<DateTime<Utc>>,
    delivered_already: Option<bool>,
    buyer_notified: Option<bool>,
    corrections_left: Option<i16>,
    status: String,
    carrier: Option<String>,
    tracking_number: Option<String>,
    tracking_status: Option<String>,
    buyer: Option<Document>,
    shipping_address: Option<Document>,
    delivery_point: Option<Document>,
    invoice: Option<Document>,
}

impl TryFrom<SellerOrder> for PartRow {
    type Error = StoreError;

    fn try_from(part: SellerOrder) -> Result<Self, StoreError> {
        Ok(Self {
            mutable: MutableColumns::of(&part)?,
            seller_id: part.seller.uuid(),
            order_id: part.id.uuid(),
            placed_at: part.placed_at,
            is_test: part.is_test,
            several_sellers: part.several_sellers,
            number: part.number.as_str().to_owned(),
            payment_method: part.payment_method,
            delivery_method: part.delivery_method,
            items: Document::of_items(&part.items)?,
        })
    }
}

impl TryFrom<PartRow> for SellerOrder {
    type Error = StoreError;

    fn try_from(row: PartRow) -> Result<Self, StoreError> {
        let key = (SellerId::from(row.seller_id), OrderId::from(row.order_id));
        row.read()
            .map_err(|reason| StoreError::corrupt("seller_orders", format!("{}, {}", key.0, key.1), reason))
    }
}

impl PartRow {
    pub(super) fn items_length(&self) -> i32 {
        i32::try_from(self.items.length()).unwrap_or(i32::MAX)
    }

    fn read(self) -> Result<SellerOrder, String> {
        let mut mutable = self.mutable;
        let shipment = mutable.shipment(self.several_sellers)?;
        Ok(SellerOrder {
            seller: self.seller_id.into(),
            id: self.order_id.into(),
            state: mutable.state(shipment)?,
            number: order_number(self.number)?,
            is_test: self.is_test,
            several_sellers: self.several_sellers,
            payment_method: self.payment_method,
            delivery_method: self.delivery_method,
            placed_at: self.placed_at,
            buyer: personal(mutable.buyer.as_ref(), "buyer")?,
            shipping_address: personal(mutable.shipping_address.as_ref(), "shipping_address")?,
            delivery_point: personal(mutable.delivery_point.as_ref(), "delivery_point")?,
            invoice: personal(mutable.invoice.as_ref(), "invoice")?,
            items: self.items.items()?,
            updated_at: mutable.updated_at,
        })
    }
}

impl MutableColumns {
    pub(crate) fn of(part: &SellerOrder) -> Result<Self, StoreError> {
        let cancelled_at = match part.state {
            OrderState::Cancelled { cancelled_at, .. } => Some(cancelled_at),
            _ => None,
        };
        let shipment = part.shipment();
        let tracking_status = shipment.and_then(|shipment| shipment.tracking_status);
        let (address, point) = (part.shipping_address.as_ref(), part.delivery_point.as_ref());
        Ok(Self {
            updated_at: part.updated_at,
            paid_at: part.paid_at(),
            shipped_at: part.shipped_at(),
            delivered_at: part.delivered_at(),
            cancelled_at,
            shipment_id: shipment.map(|shipment| shipment.id.uuid()),
            shipment_at: shipment.map(|shipment| shipment.created_at),
            delivered_already: shipment.map(|shipment| shipment.delivered_already),
            buyer_notified: shipment.map(|shipment| shipment.buyer_notified),
            corrections_left: shipment.map(|shipment| shipment.corrections_left.into()),
            status: part.status().as_str().to_owned(),
            carrier: shipment.map(|shipment| shipment.carrier.as_str().to_owned()),
            tracking_number: shipment.map(|shipment| shipment.tracking_number.as_str().to_owned()),
            tracking_status: tracking_status.map(|status| status.as_str().to_owned()),
            buyer: part.buyer.as_ref().map(Document::of_personal).transpose()?,
            shipping_address: address.map(Document::of_personal).transpose()?,
            delivery_point: point.map(Document::of_personal).transpose()?,
            invoice: part.invoice.as_ref().map(Document::of_personal).transpose()?,
        })
    }

    /// The shipment: its first six columns are all set, or all null. A program before 1.1 left no
    /// `corrections_left`: then it counts as the seller's, unless only the marketplace may ship the order.
    fn shipment(&mut self, several_sellers: bool) -> Result<Option<Shipment>, String> {
        let columns = (
            self.shipment_id,
            self.shipment_at,
            self.delivered_already,
            self.buyer_notified,
            self.carrier.take(),
            self.tracking_number.take(),
        );
        let status = self.tracking_status.take();
        let (id, created_at, delivered_already, buyer_notified, carrier, number) = match columns {
            (None, None, None, None, None, None) if status.is_none() => return Ok(None),
            (Some(id), Some(at), Some(already), Some(notified), Some(carrier), Some(number)) => {
                (id, at, already, notified, carrier, number)
            }
            _ => return Err("half a shipment".to_owned()),
        };
        let corrections_left = match self.corrections_left {
            None if several_sellers => 0,
            None => CORRECTIONS,
            Some(left) => u8::try_from(left).map_err(|_| format!("corrections_left {left}"))?,
        };
        let status = status
            .map(|word| TrackingStatus::parse(&word).ok_or_else(|| format!("tracking_status {word:?}")));
        Ok(Some(Shipment {
            id: id.into(),
            carrier: parse_carrier(&carrier)?,
            tracking_number: parse_tracking_number(number)?,
            tracking_status: status.transpose()?,
            delivered_already,
            buyer_notified,
            corrections_left,
            created_at,
        }))
    }

    fn state(&self, shipment: Option<Shipment>) -> Result<OrderState, String> {
        let status = &self.status;
        let known = OrderStatus::parse(status).ok_or_else(|| format!("status {status:?}"))?;
        let instants = (
            self.paid_at,
            self.shipped_at,
            self.delivered_at,
            self.cancelled_at,
        );
        match (known, instants, shipment) {
            (OrderStatus::Pending, (None, None, None, None), None) => Ok(OrderState::Pending),
            (OrderStatus::Processing, (Some(paid_at), None, None, None), None) => {
                Ok(OrderState::Processing { paid_at })
            }
            (OrderStatus::Shipped, (Some(paid_at), Some(shipped_at), None, None), Some(shipment)) => {
                Ok(OrderState::Shipped {
                    paid_at,
                    shipped_at,
                    shipment,
                })
            }
            (
                OrderStatus::Delivered,
                (Some(paid_at), Some(shipped_at), Some(delivered_at), None),
                shipment,
            ) => Ok(OrderState::Delivered {
                paid_at,
                shipped_at,
                delivered_at,
                shipment,
            }),
            (OrderStatus::Cancelled, (paid_at, None, None, Some(cancelled_at)), None) => {
                Ok(OrderState::Cancelled {
                    paid_at,
                    cancelled_at,
                })
            }
            _ => Err(format!("status {status:?} with the facts of another")),
        }
    }
}

pub(crate) fn parse_carrier(word: &str) -> Result<Carrier, String> {
    Carrier::parse(word).ok_or_else(|| format!("carrier {word:?}"))
}

pub(crate) fn parse_tracking_number(number: String) -> Result<TrackingNumber, String> {
    TrackingNumber::new(number).map_err(|invalid| format!("tracking_number {invalid}"))
}

fn personal<T: DeserializeOwned>(document: Option<&Document>, column: &str) -> Result<Option<T>, String> {
    document.map(|document| document.read(column)).transpose()
}

pub(crate) fn order_number(number: String) -> Result<OrderNumber, String> {
    OrderNumber::new(number).map_err(|invalid| format!("number {invalid}"))
}
