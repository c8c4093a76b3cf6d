//! More of what is due in lanes that are held.

use diesel::{
    Queryable,
    sql_types::{Array, BigInt, Integer, Nullable, Uuid as SqlUuid},
};
use uuid::Uuid;
use webhooks::TopUp;

use super::due::{self, DueRow, due_in_lane, lane_state};
use crate::statement::statement;

/// Prolongs leases as a claim would begin them, and reads what else is due. What the worker has in hand from now on is what it
/// says, and what it is given. As with a claim, the commit does not wait for the disk.
#[derive(Default)]
pub(super) struct Prolong {
    sellers: Vec<Uuid>,
    lanes: Vec<Uuid>,
    fences: Vec<Uuid>,
    rooms: Vec<i32>,
    repeats: Vec<i32>,
    /// To which of the lanes, from 1, …
    running_of: Vec<i64>,
    /// … which delivery belongs.
    running: Vec<Uuid>,
}

statement!(Prolong => (SqlUuid, SqlUuid, SqlUuid, Nullable<due::Columns>):
    "with clock as materialized (select api_now() as at, set_config('synchronous_commit', 'off', true) as mode), \
     held as materialized (select s.seller_id, s.id, s.fence, s.client_id, s.connection_generation, s.active, k.room, k.repeats, k.n \
       from unnest(", sellers: Array<SqlUuid>, ", ", lanes: Array<SqlUuid>, ", ", fences: Array<SqlUuid>, ", ", rooms: Array<Integer>,
    ", ", repeats: Array<Integer>, ") with ordinality k (seller_id, id, fence, room, repeats, n) \
       join subscriptions s on s.seller_id = k.seller_id and s.id = k.id where s.leased and s.fence = k.fence \
       order by s.seller_id, s.id for no key update of s), \
     lanes as materialized (select s.seller_id, s.id, s.fence, s.room, s.repeats, array(select r.id from unnest(", running_of: Array<BigInt>,
    ", ", running: Array<SqlUuid>,
    concat!(") r (n, id) where r.n = s.n) as running from held s where ", lane_state!(), " = 'live'), \
     given as materialized (select l.seller_id, l.id as lane, w.* from lanes l cross join lateral ", due_in_lane!(), " w), \
     leased as (update subscriptions s set wake_at = clock.at + interval '30 seconds', \
         in_hand = l.running || array(select g.id from given g where g.seller_id = l.seller_id and g.lane = l.id) \
       from lanes l, clock where s.seller_id = l.seller_id and s.id = l.id) \
     select l.seller_id, l.id, l.fence, g.id, g.event, g.body, g.attempt, g.lost \
     from lanes l left join given g on g.seller_id = l.seller_id and g.lane = l.id order by l.seller_id, l.id, g.place"));

impl Prolong {
    pub(super) fn new(held: &[TopUp]) -> Self {
        let mut prolong = Self::default();
        for (top_up, n) in held.iter().zip(1..) {
            prolong.sellers.push(top_up.hold.lane.seller.uuid());
            prolong.lanes.push(top_up.hold.lane.subscription.uuid());
            prolong.fences.push(top_up.hold.fence);
            prolong.rooms.push(top_up.room.into());
            prolong.repeats.push(top_up.repeats.into());
            for delivery in &top_up.running {
                prolong.running_of.push(n);
                prolong.running.push(delivery.uuid());
            }
        }
        prolong
    }
}

/// A lane that is still held, with one more of its deliveries, or none.
#[derive(Queryable)]
pub(super) struct ProlongedRow {
    pub(super) seller_id: Uuid,
    pub(super) id: Uuid,
    pub(super) fence: Uuid,
    pub(super) due: Option<DueRow>,
}
