//! Tracked parcels: a row is created with the shipment, carriers are polled for it, and it is deleted on delivery.

use std::{collections::BTreeMap, sync::Arc};

use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use kernel::{Change, SellerId, StoreError};
use orders::{Carrier, DueParcel, OrderEvent, OrderId, SellerOrder, TrackingChange, TrackingQueue};
use parking_lot::Mutex;
use usecases::Transaction;
use uuid::Uuid;

use crate::connection::pool::Autocommit;
use crate::orders::{parse_carrier, parse_tracking_number};
use crate::searched::Searched;
use crate::sql::{microseconds, readable, row, sql};
use crate::unit_of_work::{Tx, Write, changing, changing_any};

/// The write that starts tracking a shipped parcel, or ends it for a delivered one.
pub(crate) fn track(tx: &Tx, change: &Change<SellerOrder, OrderEvent>) -> Option<Box<dyn Write>> {
    let part = &change.after;
    let (seller, order) = (part.seller.uuid(), part.id.uuid());
    match tx.context().schedule.tracking_change(change, tx.now())? {
        TrackingChange::Begins { due_at } => {
            let (parcel, shipped_at) = (part.parcel()?, part.shipped_at()?);
            let (carrier, number) = (
                parcel.carrier.as_str(),
                parcel.tracking_number.as_str().to_owned(),
            );
            let insert = sql!((): "insert into parcels (seller_id, order_id, shipped_at, due_at, carrier, tracking_number) \
                values (", seller, ", ", order, ", ", shipped_at, ", ", due_at, ", ", carrier, ", ", number, ")");
            Some(changing("parcels", 1, insert))
        }
        TrackingChange::Ends => {
            let delete =
                sql!((): "delete from parcels where seller_id = ", seller, " and order_id = ", order, "");
            Some(changing_any(delete))
        }
    }
}

row! {
    struct ParcelRow {
        seller_id: Uuid,
        order_id: Uuid,
        carrier: String,
        tracking_number: String,
        shipped_at: DateTime<Utc>,
    }
}

impl ParcelRow {
    fn leased(self, fence: Uuid) -> Result<DueParcel, StoreError> {
        let (seller, order) = (SellerId::from(self.seller_id), OrderId::from(self.order_id));
        let corrupt = |reason| StoreError::corrupt("parcels", format!("{seller}, {order}"), reason);
        Ok(DueParcel {
            seller,
            order,
            carrier: parse_carrier(&self.carrier).map_err(corrupt)?,
            tracking_number: parse_tracking_number(self.tracking_number).map_err(corrupt)?,
            shipped_at: self.shipped_at,
            fence,
        })
    }
}

/// Each call is one autocommitted statement.
pub(crate) struct Parcels {
    statements: Autocommit,
    searched: Mutex<BTreeMap<Carrier, Arc<Searched>>>,
}

impl Parcels {
    pub(crate) fn new(statements: Autocommit) -> Self {
        let searched = Mutex::default();
        Self { statements, searched }
    }
}

#[async_trait]
impl TrackingQueue for Parcels {
    async fn lease_parcels(
        &self,
        carrier: Carrier,
        fence: Uuid,
        limit: u16,
        lease: TimeDelta,
    ) -> Result<Vec<DueParcel>, StoreError> {
        let searched = Arc::clone(self.searched.lock().entry(carrier).or_default());
        let lease = sql!((DateTime<Utc>, Option<ParcelRow>):
            "with clock as materialized (select api_now() as at), \
             candidates as materialized (select seller_id, order_id, due_at from parcels where carrier = ", carrier.as_str(),
            " and due_at >= (select least(", searched.next(), ", at) - interval '1 second' from clock) \
               and due_at <= (select at from clock) order by due_at limit ", i64::from(limit), " for no key update skip locked), \
             leased as (update parcels p set fence = ", fence, ", due_at = (select at from clock) + ", microseconds(lease),
            " * interval '1 microsecond' from candidates c where p.seller_id = c.seller_id and p.order_id = c.order_id \
               returning p.seller_id, p.order_id, p.carrier, p.tracking_number, p.shipped_at) \
             select coalesce((select min(due_at) from candidates), clock.at), l.* from clock left join leased l on true");
        let rows = self.statements.rows(lease).await?;
        Ok(readable(searched.leased(rows).map(|row| row.leased(fence))))
    }

    async fn schedule_parcel(
        &self,
        parcel: &DueParcel,
        next: Option<DateTime<Utc>>,
    ) -> Result<(), StoreError> {
        let (seller, order, fence) = (parcel.seller.uuid(), parcel.order.uuid(), parcel.fence);
        // No row: the lease was lost, or the parcel has arrived.
        if let Some(next) = next {
            self.statements
                .execute(sql!(():
                    "update parcels set fence = null, due_at = ", next, " where seller_id = ", seller, " and order_id = ",
                    order, " and fence = ", fence, ""))
                .await?;
        } else {
            self.statements
                .execute(sql!(():
                    "delete from parcels where seller_id = ", seller, " and order_id = ", order, " and fence = ", fence, ""))
                .await?;
        }
        Ok(())
    }
}
