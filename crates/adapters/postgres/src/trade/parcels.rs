//! Which parcels are followed: a row begins with a shipment and ends with the delivery.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use diesel::sql_types::{Text, Timestamptz, Uuid as SqlUuid};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use kernel::{Change, SellerId, StoreError};
use orders::{
    Carrier, OrderEvent, OrderEventKind, OrderId, OrderState, PollSchedule, SellerOrder, TrackingNumber,
};
use uuid::Uuid;

use crate::{
    error::store_error,
    pending::{Write, expect_rows},
    statement::statement,
};

/// What a move means for the following of a parcel; none where it means nothing.
pub(super) fn consequence(
    change: &Change<SellerOrder, OrderEvent>,
    schedule: PollSchedule,
    now: DateTime<Utc>,
) -> Option<Box<dyn Write>> {
    let part = &change.after;
    let moved = |kind| change.events.iter().any(|event| event.kind == kind);
    match &part.state {
        OrderState::Shipped {
            shipped_at, parcel, ..
        } if moved(OrderEventKind::Shipped) && is_followed(part) => {
            let due_at = schedule.next(*shipped_at, parcel.tracking_status, now)?;
            Some(Box::new(Follow {
                seller: part.seller,
                order: part.id,
                carrier: parcel.carrier,
                tracking_number: parcel.tracking_number.clone(),
                shipped_at: *shipped_at,
                due_at,
            }))
        }
        OrderState::Delivered { parcel: Some(_), .. }
            if moved(OrderEventKind::Delivered) && is_followed(part) =>
        {
            Some(Box::new(Unfollow {
                seller: part.seller,
                order: part.id,
            }))
        }
        _ => None,
    }
}

/// Nobody is asked about a test order, or about a carrier that is none of those we know.
fn is_followed(part: &SellerOrder) -> bool {
    !part.is_test
        && part
            .parcel()
            .is_some_and(|parcel| parcel.carrier != Carrier::Other)
}

struct Insert<'a> {
    seller: Uuid,
    order: Uuid,
    shipped_at: DateTime<Utc>,
    due_at: DateTime<Utc>,
    carrier: &'static str,
    tracking_number: &'a str,
}

statement!(Insert<'_> => ():
    "insert into parcels (seller_id, order_id, shipped_at, due_at, carrier, tracking_number) values (", seller: SqlUuid,
    ", ", order: SqlUuid,
    ", ", shipped_at: Timestamptz,
    ", ", due_at: Timestamptz,
    ", ", carrier: Text,
    ", ", tracking_number: Text, ")");

struct Follow {
    seller: SellerId,
    order: OrderId,
    carrier: Carrier,
    tracking_number: TrackingNumber,
    shipped_at: DateTime<Utc>,
    due_at: DateTime<Utc>,
}

#[async_trait]
impl Write for Follow {
    async fn send(&self, mut connection: &AsyncPgConnection) -> Result<(), StoreError> {
        let insert = Insert {
            seller: self.seller.uuid(),
            order: self.order.uuid(),
            shipped_at: self.shipped_at,
            due_at: self.due_at,
            carrier: self.carrier.as_str(),
            tracking_number: self.tracking_number.as_str(),
        };
        expect_rows(
            "parcels",
            insert.execute(&mut connection).await.map_err(store_error)?,
            1,
        )
    }
}

struct Delete {
    seller: Uuid,
    order: Uuid,
}

statement!(Delete => ():
    "delete from parcels where seller_id = ", seller: SqlUuid, " and order_id = ", order: SqlUuid, "");

struct Unfollow {
    seller: SellerId,
    order: OrderId,
}

#[async_trait]
impl Write for Unfollow {
    async fn send(&self, mut connection: &AsyncPgConnection) -> Result<(), StoreError> {
        let delete = Delete {
            seller: self.seller.uuid(),
            order: self.order.uuid(),
        };
        // There is none where the delivery was known with the shipment, or where nobody asked any more.
        delete.execute(&mut connection).await.map_err(store_error)?;
        Ok(())
    }
}
