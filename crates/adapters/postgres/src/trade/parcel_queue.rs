//! The queue of parcels about which carriers are asked.

use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use diesel::{
    Queryable,
    sql_types::{Array, BigInt, Text, Timestamptz, Uuid as SqlUuid},
};
use diesel_async::RunQueryDsl;
use kernel::{SellerId, StoreError};
use orders::{Carrier, DueParcel, OrderId, TrackingQueue};
use uuid::Uuid;

use super::words;
use crate::{
    queue::{microseconds, sound},
    reads::Reads,
    statement::statement,
};

/// Leases parcels that are due, carrier after carrier in turn: the longest waiting of each, then the next of each. However
/// much one of them leaves undone, the others keep their share of every batch.
///
/// The order is found without locks, over more parcels than are asked for, so that it reaches past those that other workers
/// take at this moment; what is locked is looked at once more.
struct Lease {
    fence: Uuid,
    carriers: Vec<&'static str>,
    within_reach: i64,
    limit: i64,
    microseconds: i64,
}

statement!(Lease => (SqlUuid, SqlUuid, Text, Text, Timestamptz):
    "with clock as materialized (select api_now() as at), \
     candidates as materialized (select p.* from unnest(", carriers: Array<Text>,
    ") as c (carrier) cross join lateral (select d.*, row_number() over (order by d.due_at) as turn \
         from (select seller_id, order_id, due_at from parcels \
           where carrier = c.carrier and due_at <= (select at from clock) order by due_at limit ", within_reach: BigInt,
    ") d) p), \
     due as materialized (select p.seller_id, p.order_id from candidates c \
       join parcels p on p.seller_id = c.seller_id and p.order_id = c.order_id where p.due_at <= (select at from clock) \
       order by c.turn, c.due_at limit ", limit: BigInt,
    " for no key update of p skip locked) \
     update parcels p set fence = ", fence: SqlUuid,
    ", due_at = (select at from clock) + ", microseconds: BigInt,
    " * interval '1 microsecond' from due d where p.seller_id = d.seller_id and p.order_id = d.order_id \
     returning p.seller_id, p.order_id, p.carrier, p.tracking_number, p.shipped_at");

#[derive(Queryable)]
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
            carrier: words::carrier(&self.carrier).map_err(corrupt)?,
            tracking_number: words::tracking_number(self.tracking_number).map_err(corrupt)?,
            shipped_at: self.shipped_at,
            fence,
        })
    }
}

struct Again {
    seller: Uuid,
    order: Uuid,
    fence: Uuid,
    next: DateTime<Utc>,
}

statement!(Again => ():
    "update parcels set fence = null, due_at = ", next: Timestamptz,
    " where seller_id = ", seller: SqlUuid,
    " and order_id = ", order: SqlUuid,
    " and fence = ", fence: SqlUuid, "");

struct NeverAgain {
    seller: Uuid,
    order: Uuid,
    fence: Uuid,
}

statement!(NeverAgain => ():
    "delete from parcels where seller_id = ", seller: SqlUuid,
    " and order_id = ", order: SqlUuid,
    " and fence = ", fence: SqlUuid, "");

/// Each call is one statement with its own transaction.
pub(crate) struct ParcelQueue(pub(crate) Reads);

#[async_trait]
impl TrackingQueue for ParcelQueue {
    async fn lease_parcels(
        &self,
        fence: Uuid,
        limit: u16,
        lease: TimeDelta,
    ) -> Result<Vec<DueParcel>, StoreError> {
        let lease = Lease {
            fence,
            carriers: Carrier::ALL
                .into_iter()
                .filter(|carrier| *carrier != Carrier::Other)
                .map(Carrier::as_str)
                .collect(),
            within_reach: 4 * i64::from(limit),
            limit: limit.into(),
            microseconds: microseconds(lease),
        };
        let rows = self
            .0
            .ask(|lent| async move { lease.get_results::<ParcelRow>(&mut lent.connection()).await })
            .await?;
        Ok(sound(rows.into_iter().map(|row| row.leased(fence))))
    }

    async fn schedule_parcel(
        &self,
        parcel: &DueParcel,
        next: Option<DateTime<Utc>>,
    ) -> Result<(), StoreError> {
        let (seller, order, fence) = (parcel.seller.uuid(), parcel.order.uuid(), parcel.fence);
        // No row: the lease was lost, or the parcel has arrived.
        if let Some(next) = next {
            let again = Again {
                seller,
                order,
                fence,
                next,
            };
            self.0
                .ask(|lent| async move { again.execute(&mut lent.connection()).await })
                .await?;
        } else {
            let never = NeverAgain { seller, order, fence };
            self.0
                .ask(|lent| async move { never.execute(&mut lent.connection()).await })
                .await?;
        }
        Ok(())
    }
}
