//! More of what is due in one lane that is held.

use diesel::sql_types::{Array, Integer, Nullable, Uuid as SqlUuid};
use uuid::Uuid;
use webhooks::TopUp;

use crate::statement::statement;
use crate::webhooks::due::{self, due_in_one_lane, lane_state};

/// Prolongs the lease and reads what else is due, as the statement for many lanes does.
pub(super) struct Prolong {
    seller: Uuid,
    lane: Uuid,
    fence: Uuid,
    room: i32,
    repeats: i32,
    running: Vec<Uuid>,
}

statement!(Prolong => (SqlUuid, SqlUuid, SqlUuid, Nullable<due::Columns>):
    "with clock as materialized (select api_now() as at, set_config('synchronous_commit', 'off', true) as mode), \
     held as materialized (select s.seller_id, s.id, s.fence, s.client_id, s.connection_generation, s.active from subscriptions s \
       where s.seller_id = ", seller: SqlUuid, " and s.id = ", lane: SqlUuid, " and s.leased and s.fence = ", fence: SqlUuid,
    concat!(" for no key update), \
     lane as materialized (select s.*, ", lane_state!(), " as state, "), running: Array<SqlUuid>,
    concat!("::uuid[] as running from held s), given as materialized (", due_in_one_lane!(first)), seller: SqlUuid,
    due_in_one_lane!(of), lane: SqlUuid, due_in_one_lane!(up_to), room: Integer, due_in_one_lane!(repeated), seller: SqlUuid,
    due_in_one_lane!(of), lane: SqlUuid, due_in_one_lane!(up_to), repeats: Integer, due_in_one_lane!(all), room: Integer,
    "), leased as (update subscriptions s set wake_at = clock.at + interval '30 seconds', \
         in_hand = l.running || array(select id from given) from lane l, clock \
       where s.seller_id = ", seller: SqlUuid, " and s.id = ", lane: SqlUuid,
    " and l.state = 'live') \
     select l.seller_id, l.id, l.fence, g.id, g.event, g.body, g.attempt, g.lost from lane l left join given g on true \
     where l.state = 'live' order by g.place");

impl Prolong {
    pub(super) fn new(top_up: &TopUp) -> Self {
        Self {
            seller: top_up.hold.lane.seller.uuid(),
            lane: top_up.hold.lane.subscription.uuid(),
            fence: top_up.hold.fence,
            room: top_up.room.into(),
            repeats: top_up.repeats.into(),
            running: top_up.running.iter().map(|id| id.uuid()).collect(),
        }
    }
}
