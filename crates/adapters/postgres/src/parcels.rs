//! Tracked parcels: a row is created with the shipment, carriers are polled for it, and it is deleted on delivery.

use std::{collections::BTreeMap, sync::Arc};

use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Text, Timestamptz, Uuid as SqlUuid};
use kernel::{Change, SellerId, StoreError};
use orders::{Carrier, DueParcel, OrderEvent, OrderId, SellerOrder, TrackingChange, TrackingQueue};
use parking_lot::Mutex;
use usecases::Transaction;
use uuid::Uuid;

use crate::connection::pool::Autocommit;
use crate::mails::Found;
use crate::orders::{parse_carrier, parse_tracking_number};
use crate::schema::parcels;
use crate::searched::Searched;
use crate::sql::{microseconds, readable};
use crate::statement::statements;
use crate::unit_of_work::{Tx, Write, changing, changing_any};

statements! {
    "parcels.sql";
    LEASE_PARCELS: (Text, Timestamptz, BigInt, SqlUuid, BigInt) -> Found<ParcelRow>;
}

/// The write that starts tracking a shipped parcel, or ends it for a delivered one.
pub(crate) fn track(tx: &Tx, change: &Change<SellerOrder, OrderEvent>) -> Option<Box<dyn Write>> {
    let part = &change.after;
    let (seller, order) = (part.seller.uuid(), part.id.uuid());
    match tx.context().schedule.tracking_change(change, tx.now())? {
        TrackingChange::Begins { due_at } => {
            let (parcel, shipped_at) = (part.parcel()?, part.shipped_at()?);
            let insert = diesel::insert_into(parcels::table).values((
                parcels::seller_id.eq(seller),
                parcels::order_id.eq(order),
                parcels::shipped_at.eq(shipped_at),
                parcels::due_at.eq(due_at),
                parcels::carrier.eq(parcel.carrier.as_str()),
                parcels::tracking_number.eq(parcel.tracking_number.as_str().to_owned()),
            ));
            Some(changing("parcels", 1, insert))
        }
        TrackingChange::Ends => Some(changing_any(diesel::delete(parcels::table.find((seller, order))))),
    }
}

#[derive(QueryableByName)]
#[diesel(table_name = parcels, check_for_backend(diesel::pg::Pg))]
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
    async fn lease_parcels(
        &self,
        carrier: Carrier,
        fence: Uuid,
        limit: u16,
        lease: TimeDelta,
    ) -> Result<Vec<DueParcel>, StoreError> {
        let searched = Arc::clone(self.searched.lock().entry(carrier).or_default());
        let (first, lease) = (searched.next(), microseconds(lease));
        let lease = LEASE_PARCELS.bind((carrier.as_str(), first, i64::from(limit), fence, lease));
        let rows = Found::pairs(self.statements.rows(lease).await?);
        Ok(readable(searched.leased(rows).map(|row| row.leased(fence))))
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
