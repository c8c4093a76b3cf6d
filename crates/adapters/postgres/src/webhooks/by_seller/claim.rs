//! Claiming one lane.

use diesel::sql_types::{Binary, Bool, Integer, Nullable, Text, Uuid as SqlUuid};
use uuid::Uuid;

use super::look::Candidate;
use crate::statement::statement;
use crate::webhooks::due::{self, due_in_one_lane, lane_state};

/// Leases the lane where it is still due and nobody else is at it, and reads what is due in it. What else it does, and that its
/// commit does not wait for the disk, is as with the claim of many. What is asked of the lane alone is asked once, before its
/// deliveries are read: only where a worker has left it they are looked through for what was lost.
pub(super) struct Claim {
    seller: Uuid,
    lane: Uuid,
    fence: Uuid,
    room: i32,
    repeats: i32,
}

statement!(Claim => (SqlUuid, SqlUuid, SqlUuid, Text, Bool, Text, Binary, Bool, Nullable<due::Columns>):
    "with clock as materialized (select api_now() as at, set_config('synchronous_commit', 'off', true) as mode), \
     locked as materialized (select s.seller_id, s.id, s.client_id, s.connection_generation, s.active, s.leased, s.failing, s.wake_at, \
         s.in_hand, s.url, s.secret from subscriptions s where s.seller_id = ", seller: SqlUuid, " and s.id = ", lane: SqlUuid,
    concat!(" and s.wake_at <= (select at from clock) for no key update skip locked), \
     lane as materialized (select s.*, '{}'::uuid[] as running, ", lane_state!(), " as state from locked s), \
     given as materialized (", due_in_one_lane!(first)), seller: SqlUuid, due_in_one_lane!(of), lane: SqlUuid,
    due_in_one_lane!(up_to), room: Integer, due_in_one_lane!(repeated), seller: SqlUuid, due_in_one_lane!(of), lane: SqlUuid,
    due_in_one_lane!(up_to), repeats: Integer, due_in_one_lane!(all), room: Integer,
    "), leased as (update subscriptions s set leased = true, fence = ", fence: SqlUuid,
    ", wake_at = clock.at + interval '30 seconds', in_hand = array(select id from given) from lane l, clock \
       where s.seller_id = ", seller: SqlUuid, " and s.id = ", lane: SqlUuid,
    " and l.state = 'live'), \
     lost as (update deliveries d set lost = d.lost + 1 where (select l.leased and l.state = 'live' from lane l) and d.seller_id = ", seller: SqlUuid,
    " and d.subscription_id = ", lane: SqlUuid,
    " and d.id = any((select l.in_hand from lane l)::uuid[]) \
         and d.due_at <= (select l.wake_at - interval '30 seconds' from lane l) returning d.id, d.lost) \
     select l.seller_id, l.id, l.client_id, l.state, false, l.url, l.secret, l.failing, g.id, g.event, g.body, g.attempt, coalesce(x.lost, g.lost) \
     from lane l left join given g on true left join lost x on x.id = g.id order by g.place");

impl Claim {
    /// For up to `number` deliveries, one of them a first attempt where one is due.
    pub(super) fn new(candidate: &Candidate, fence: Uuid, number: u16) -> Self {
        Self {
            seller: candidate.seller,
            lane: candidate.id,
            fence,
            room: number.into(),
            repeats: number.saturating_sub(1).max(1).into(),
        }
    }
}
