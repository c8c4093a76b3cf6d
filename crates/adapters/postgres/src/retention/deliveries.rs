//! Clearing deliveries: what is old and done, but for the last hundred of each subscription, and all that has lost its
//! subscription.
//!
//! It goes from lane to lane by the primary key, in which ids rise with time, and notes where it goes on. So it reads what it
//! clears and the hundred that it keeps, and the table needs no index for its sake.

use std::fmt;

use diesel::{
    OptionalExtension, Queryable,
    sql_types::{BigInt, Bool, Integer, Nullable, Text, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use kernel::StoreError;
use uuid::Uuid;

use super::BATCH;
use crate::{statement::statement, transaction::Tx};

/// So many lanes are looked at in one go.
const LANES: i32 = 200;

/// Where the next go begins, as a mark of the installation.
const PLACE: &str = "deliveries_cleared_to";

struct ReadPlace {
    key: &'static str,
}

statement!(ReadPlace => Text: "select value from instance where key = ", key: Text, "");

struct NotePlace<'a> {
    key: &'static str,
    value: &'a str,
}

statement!(NotePlace<'_> => ():
    "insert into instance (key, value) values (", key: Text, ", ", value: Text,
    ") on conflict (key) do update set value = excluded.value, set_at = api_now()");

/// Deletes up to a batch. The next place is the last lane where the batch was full, else the lane after the last one that was
/// looked at, and none at the end. An id of thirty days ago is that instant's, with nothing in its random bits.
struct Clear {
    place: Place,
    lanes: i32,
    batch: i64,
}

statement!(Clear => (BigInt, Bool, Nullable<SqlUuid>, Nullable<SqlUuid>):
    "with recursive age as materialized (select (lpad(to_hex(floor(extract(epoch from (select api_now()) - interval '30 days') \
         * 1000)::bigint), 12, '0') || repeat('0', 20))::uuid as id), \
     lane as ((select seller_id, subscription_id, 0 as n from deliveries where (seller_id, subscription_id) >= (", place.seller: SqlUuid,
    ", ", place.lane: SqlUuid,
    ") order by seller_id, subscription_id limit 1) \
       union all select d.seller_id, d.subscription_id, l.n + 1 from lane l cross join lateral (\
         select seller_id, subscription_id from deliveries where (seller_id, subscription_id) > (l.seller_id, l.subscription_id) \
         order by seller_id, subscription_id limit 1) d where l.n < ", lanes: Integer,
    "), doomed as materialized (select d.seller_id, d.subscription_id, d.id from lane l cross join age \
       left join subscriptions s on s.seller_id = l.seller_id and s.id = l.subscription_id \
       cross join lateral (select x.seller_id, x.subscription_id, x.id from deliveries x where x.seller_id = l.seller_id \
         and x.subscription_id = l.subscription_id and (s.id is null or (x.due_at is null \
           and x.id < least(age.id, coalesce((select h.id from deliveries h where h.seller_id = l.seller_id \
             and h.subscription_id = l.subscription_id order by h.id desc offset 99 limit 1), '00000000-0000-0000-0000-000000000000')))) \
         order by x.id limit 1000) d \
       where l.n < ", lanes: Integer,
    " order by d.seller_id, d.subscription_id, d.id limit ", batch: BigInt,
    "), cleared as (delete from deliveries d using doomed x where d.seller_id = x.seller_id \
         and d.subscription_id = x.subscription_id and d.id = x.id), \
     size as (select count(*) as rows, count(*) >= ", batch: BigInt,
    " as full from doomed), \
     next as (select seller_id, subscription_id from lane where n = ", lanes: Integer,
    "), last as (select seller_id, subscription_id from doomed order by seller_id desc, subscription_id desc limit 1) \
     select z.rows, z.full, case when z.full then l.seller_id else n.seller_id end, \
       case when z.full then l.subscription_id else n.subscription_id end \
     from size z left join next n on true left join last l on true");

#[derive(Queryable)]
struct ClearedRow {
    rows: i64,
    full: bool,
    seller: Option<Uuid>,
    lane: Option<Uuid>,
}

/// A lane, from which on there may be something to clear.
#[derive(Clone, Copy, Default)]
struct Place {
    seller: Uuid,
    lane: Uuid,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.seller, self.lane)
    }
}

impl Place {
    fn parse(text: &str) -> Option<Self> {
        let (seller, lane) = text.split_once(' ')?;
        Some(Self {
            seller: seller.parse().ok()?,
            lane: lane.parse().ok()?,
        })
    }
}

/// Clears one batch, and tells how many went and whether there is more to look at.
pub(super) async fn clear(tx: &Tx) -> Result<(usize, bool), StoreError> {
    let mut connection: &AsyncPgConnection = tx.connection();
    let read = ReadPlace { key: PLACE };
    let noted = tx
        .run(async { read.get_result::<String>(&mut connection).await.optional() })
        .await?;
    let place = noted.as_deref().and_then(Place::parse).unwrap_or_default();
    let clear = Clear {
        place,
        lanes: LANES,
        batch: BATCH,
    };
    let cleared = tx.run(clear.get_result::<ClearedRow>(&mut connection)).await?;
    let next = cleared.seller.zip(cleared.lane);
    let next = next.map(|(seller, lane)| Place { seller, lane });
    let value = next.unwrap_or_default().to_string();
    if noted.as_ref() != Some(&value) {
        let note = NotePlace {
            key: PLACE,
            value: &value,
        };
        tx.run(note.execute(&mut connection)).await?;
    }
    let rows = usize::try_from(cleared.rows).map_err(StoreError::unexpected)?;
    Ok((rows, cleared.full || next.is_some()))
}
