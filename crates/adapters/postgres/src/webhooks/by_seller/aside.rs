//! One lane that is due and may not be worked on, or sleeps and should not.

use diesel::sql_types::Uuid as SqlUuid;
use uuid::Uuid;

use crate::{statement::statement, webhooks::due::lane_state};

/// Does with one lane what the statement for many does with each: to sleep with it, or an end to its deliveries.
pub(super) struct SetAside {
    pub(super) seller: Uuid,
    pub(super) lane: Uuid,
}

statement!(SetAside => (SqlUuid, SqlUuid):
    "with clock as materialized (select api_now() as at), \
     locked as materialized (select s.seller_id, s.id, s.client_id, s.active, s.connection_generation from subscriptions s \
       where s.seller_id = ", seller: SqlUuid, " and s.id = ", lane: SqlUuid,
    concat!(" and s.wake_at <= (select at from clock) for no key update skip locked), \
     lane as materialized (select s.*, ", lane_state!(), " as state from locked s), \
     held as materialized (select l.id from lane l join applications a on a.client_id = l.client_id \
       where l.state = 'held' and a.status = 'suspended' for share of a skip locked), \
     pending as materialized ((select d.id from deliveries d, lane l where l.state = 'gone' and d.seller_id = "), seller: SqlUuid,
    " and d.subscription_id = ", lane: SqlUuid, " and d.due_at is not null and d.attempt = 0 limit 500) union all \
       (select d.id from deliveries d, lane l where l.state = 'gone' and d.seller_id = ", seller: SqlUuid,
    " and d.subscription_id = ", lane: SqlUuid, " and d.due_at is not null and d.attempt > 0 limit 500)), \
     stopped as (update deliveries d set due_at = null from pending p where d.seller_id = ", seller: SqlUuid,
    " and d.subscription_id = ", lane: SqlUuid, " and d.id = p.id), \
     asleep as (update subscriptions s set wake_at = null, leased = false, fence = null, in_hand = '{}' from held \
       where s.seller_id = ", seller: SqlUuid, " and s.id = ", lane: SqlUuid,
    " returning s.seller_id, s.id), \
     ended as (update subscriptions s set active = false, leased = false, fence = null, in_hand = '{}', \
         wake_at = case when exists (select from pending) then clock.at end \
       from lane l, clock where l.state = 'gone' and s.seller_id = ", seller: SqlUuid, " and s.id = ", lane: SqlUuid,
    " returning s.seller_id, s.id) \
     select * from asleep union all select * from ended");

/// Wakes a lane that was found forgotten, unless somebody has come to it since.
pub(super) struct Wake {
    pub(super) seller: Uuid,
    pub(super) lane: Uuid,
}

statement!(Wake => ():
    "with clock as materialized (select api_now() as at), \
     forgotten as materialized (select s.id from subscriptions s, clock where s.seller_id = ", seller: SqlUuid,
    " and s.id = ", lane: SqlUuid, " and s.active and not s.leased \
         and (s.wake_at is null or s.wake_at > clock.at + interval '5 seconds') for no key update of s skip locked) \
     update subscriptions s set wake_at = clock.at from forgotten, clock where s.seller_id = ", seller: SqlUuid,
    " and s.id = ", lane: SqlUuid, "");
