//! Claiming lanes that are due, with deliveries that are due in them.

use diesel::{
    Queryable,
    sql_types::{Array, Binary, Bool, Integer, Nullable, Text, Uuid as SqlUuid},
};
use uuid::Uuid;
use webhooks::{Room, UnderWay};

use super::due::{self, DueRow, due_in_lane, lane_state};
use crate::statement::statement;

/// Leases lanes that are due, those that have waited longest first, and reads what is due in them.
///
/// - Lanes that fail have an index of their own: however many wait, none of them is passed over on the way to the others.
/// - As many lanes are locked as there is room for attempts. Those for which no room is left after that stay due.
/// - An application has a part of the room, and of that a smaller one for its lanes that fail: those use up nothing of what
///   its sound ones begin with.
/// - Lanes of an application that has its part already are read over. That costs some microseconds of each, which is what
///   bounds how much its silent receivers can hold up others by.
/// - A lane in which nothing is due is leased all the same: only its owner puts it to sleep.
/// - A lane that was leased was left by its worker; what that one had in hand, and has not been heard of since, is lost once
///   more. What was given out was due 30 s before the end of the lease, and what an attempt of it has put off was not.
/// - Lanes that are not live come back with what they are, untouched.
///
/// Its commit does not wait for the disk: with the claim a crash loses the right to record what is sent under it, and the
/// lanes are due again.
pub(super) struct Claim {
    fence: Uuid,
    attempts: i32,
    failing_attempts: i32,
    per_lane: i32,
    per_failing_lane: i32,
    per_application: i32,
    failing_per_application: i32,
    /// Applications that have something under way, …
    applications: Vec<Uuid>,
    /// … how much, …
    under_way: Vec<i32>,
    /// … and how much of that in lanes that fail.
    failing_under_way: Vec<i32>,
    /// Those that have their part.
    full: Vec<Uuid>,
    /// Those that have their part, or what of it may go to lanes that fail.
    full_of_failing: Vec<Uuid>,
}

statement!(Claim => (SqlUuid, SqlUuid, SqlUuid, Text, Bool, Text, Binary, Bool, Nullable<due::Columns>):
    "with clock as materialized (select api_now() as at, set_config('synchronous_commit', 'off', true) as mode), \
     sound as materialized (select * from (select seller_id, id, client_id, connection_generation, active, leased, failing, \
         wake_at, in_hand, url, secret from subscriptions where wake_at <= (select at from clock) and not failing \
         and client_id <> all(", full: Array<SqlUuid>,
    ") order by wake_at limit 128 for no key update skip locked) s limit ", attempts: Integer,
    "), troubled as materialized (select * from (select seller_id, id, client_id, connection_generation, active, leased, failing, \
         wake_at, in_hand, url, secret from subscriptions where wake_at <= (select at from clock) and failing \
         and client_id <> all(", full_of_failing: Array<SqlUuid>,
    ") order by wake_at limit 128 for no key update skip locked) s limit least(", failing_attempts: Integer, ", ", attempts: Integer,
    ")), lanes as materialized (select s.*, greatest(s.room - 1, 1) as repeats from (select s.*, '{}'::uuid[] as running, case when s.failing then ", per_failing_lane: Integer,
    " else ", per_lane: Integer,
    concat!(" end as room, ", lane_state!(), " as state from (select * from sound union all select * from troubled) s) s), \
     due as materialized (select l.failing, l.wake_at, l.client_id, l.seller_id, l.id as lane, w.* \
       from lanes l cross join lateral ", due_in_lane!(), " w where l.state = 'live'), \
     bearable as materialized (select d.*, coalesce(u.number, 0) as under_way from (\
         select *, row_number() over (partition by client_id, failing order by wake_at, seller_id, lane, place) as turn from due) d \
       left join unnest("), applications: Array<SqlUuid>, ", ", under_way: Array<Integer>, ", ", failing_under_way: Array<Integer>,
    ") u (client_id, number, failing) on u.client_id = d.client_id \
       where not d.failing or d.turn + coalesce(u.failing, 0) <= ", failing_per_application: Integer,
    "), shared as materialized (select d.* from (select failing, wake_at, client_id, seller_id, lane, id, event, body, attempt, lost, place, \
           under_way, row_number() over (partition by client_id order by wake_at, seller_id, lane, place) as turn from bearable) d \
       where d.turn + d.under_way <= ", per_application: Integer,
    "), fit as materialized (select *, row_number() over (order by wake_at, seller_id, lane, place) as n from (\
         select *, row_number() over (partition by failing order by wake_at, seller_id, lane, place) as nth from shared) d \
       where not failing or nth <= ", failing_attempts: Integer,
    "), given as materialized (select * from fit where n <= ", attempts: Integer,
    "), taken as materialized (select l.*, g.ids from lanes l \
       left join (select distinct seller_id, lane from due) d on d.seller_id = l.seller_id and d.lane = l.id \
       left join (select seller_id, lane, array_agg(id) as ids from given group by seller_id, lane) g \
         on g.seller_id = l.seller_id and g.lane = l.id \
       where l.state = 'live' and (d.lane is null or g.ids is not null)), \
     leased as (update subscriptions s set leased = true, fence = ", fence: SqlUuid,
    ", wake_at = clock.at + interval '30 seconds', in_hand = coalesce(t.ids, '{}') from taken t, clock \
       where s.seller_id = t.seller_id and s.id = t.id), \
     lost as (update deliveries d set lost = d.lost + 1 from taken t where t.leased and d.seller_id = t.seller_id \
         and d.subscription_id = t.id and d.id = any(t.in_hand) and d.due_at <= t.wake_at - interval '30 seconds' \
       returning d.seller_id, d.subscription_id, d.id, d.lost) \
     select l.seller_id, l.id, l.client_id, l.state, (select count(*) from sound) >= least(128, ", attempts: Integer,
    ") or (select count(*) from troubled) >= greatest(1, least(128, ", failing_attempts: Integer, ", ", attempts: Integer,
    ")) or exists (select from due d where not exists (select from given g where g.seller_id = d.seller_id and g.lane = d.lane)), l.url, l.secret, l.failing, g.id, g.event, g.body, g.attempt, coalesce(x.lost, g.lost) \
     from lanes l left join taken t on t.seller_id = l.seller_id and t.id = l.id \
       left join given g on g.seller_id = l.seller_id and g.lane = l.id \
       left join lost x on x.seller_id = l.seller_id and x.subscription_id = l.id and x.id = g.id \
     where t.id is not null or l.state <> 'live' order by l.wake_at, l.seller_id, l.id, g.place");

impl Claim {
    pub(super) fn new(fence: Uuid, room: &Room) -> Self {
        let (full, full_of_failing) = full_applications(room);
        Self {
            fence,
            attempts: room.attempts.into(),
            failing_attempts: room.failing_attempts.into(),
            per_lane: room.per_lane.into(),
            per_failing_lane: room.per_failing_lane.into(),
            per_application: room.per_application.into(),
            failing_per_application: room.failing_per_application.into(),
            applications: room.under_way.iter().map(|of| of.client_id.uuid()).collect(),
            under_way: room.under_way.iter().map(|of| of.attempts.into()).collect(),
            failing_under_way: room.under_way.iter().map(|of| of.failing.into()).collect(),
            full,
            full_of_failing,
        }
    }
}

/// The applications that have their part, and those whose lanes that fail have theirs.
pub(super) fn full_applications(room: &Room) -> (Vec<Uuid>, Vec<Uuid>) {
    let is_full = |of: &UnderWay| of.attempts >= room.per_application;
    let is_full_of_failing = |of: &UnderWay| is_full(of) || of.failing >= room.failing_per_application;
    let applications = |which: &dyn Fn(&UnderWay) -> bool| {
        let chosen = room.under_way.iter().filter(|of| which(of));
        chosen.map(|of| of.client_id.uuid()).collect()
    };
    (applications(&is_full), applications(&is_full_of_failing))
}

/// A lane with one of its deliveries, or none.
#[derive(Queryable)]
pub(super) struct ClaimRow {
    pub(super) seller_id: Uuid,
    pub(super) id: Uuid,
    pub(super) client_id: Uuid,
    state: String,
    /// There may be lanes that were not looked at, or there was no room for one: the same in all rows of a claim.
    pub(super) more: bool,
    pub(super) url: String,
    pub(super) secret: Vec<u8>,
    pub(super) failing: bool,
    pub(super) due: Option<DueRow>,
}

impl ClaimRow {
    /// False where the lane was not claimed, but is to be set aside.
    pub(super) fn is_live(&self) -> bool {
        self.state == "live"
    }
}
