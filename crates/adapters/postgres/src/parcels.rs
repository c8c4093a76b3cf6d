//! The queue of parcels to look up at carriers. `orders.rs` adds a row with the shipment, and deletes it on
//! delivery.

use std::{collections::BTreeMap, sync::Arc};

use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Text, Timestamptz, Uuid as SqlUuid};
use kernel::{SellerId, StoreError};
use orders::{Carrier, DueParcel, OrderId, TrackingQueue};
use parking_lot::Mutex;
use uuid::Uuid;

use crate::connection::pool::Autocommit;
use crate::orders::{parse_carrier, parse_tracking_number};
use crate::schema::parcels;
use crate::searched::{Found, Searched};
use crate::sql::{microseconds, readable};
use crate::statement::statements;

statements! {
    "parcels.sql";
    LEASE_PARCEL: (Text, Timestamptz, SqlUuid, BigInt) -> Found<ParcelRow>;
}

#[derive(QueryableByName)]
#[diesel(table_name = parcels)]
struct ParcelRow {
    seller_id: Uuid,
    order_id: Uuid,
    carrier: String,
    tracking_number: String,
    shipped_at: DateTime<Utc>,
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
    async fn lease_parcel(
        &self,
        carrier: Carrier,
        fence: Uuid,
        lease: TimeDelta,
    ) -> Result<Option<DueParcel>, StoreError> {
        let searched = Arc::clone(self.searched.lock().entry(carrier).or_default());
        let lease = LEASE_PARCEL.bind((carrier.as_str(), searched.next().at, fence, microseconds(lease)));
        let leased = searched.leased(self.statements.row(lease).await?);
        Ok(leased.and_then(|row| readable(row.leased(fence))))
    }

    async fn schedule_parcel(
        &self,
        parcel: &DueParcel,
        next: Option<DateTime<Utc>>,
    ) -> Result<(), StoreError> {
        let leased = parcels::table
            .find((parcel.seller.uuid(), parcel.order.uuid()))
            .filter(parcels::fence.eq(parcel.fence));
        // No row: the lease was lost, or the parcel has arrived.
        if let Some(next) = next {
            let released = (parcels::fence.eq(None::<Uuid>), parcels::due_at.eq(next));
            self.statements
                .execute(diesel::update(leased).set(released))
                .await?;
        } else {
            self.statements.execute(diesel::delete(leased)).await?;
        }
        Ok(())
    }
}
