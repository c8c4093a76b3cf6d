//! Lanes that are due and may not be worked on, and lanes that sleep and should not.

use diesel::sql_types::{Array, Uuid as SqlUuid};
use uuid::Uuid;

use super::due::lane_state;
use crate::statement::statement;

/// Puts lanes of suspended applications to sleep until reinstatement wakes them, and stops those in which nothing is ever
/// delivered again, a limited number of deliveries at a time.
///
/// A lane is put to sleep under a lock on its application: one that is being reinstated is left alone, and one that has been
/// is not suspended any more. With the lanes that were found go others of their applications that are awake and in nobody's
/// hands, so that however many an application has, few claims come upon them. Nobody is waited for: what is locked is looked at
/// the next time. Tells which lanes it has changed.
pub(super) struct SetAside {
    pub(super) sellers: Vec<Uuid>,
    pub(super) lanes: Vec<Uuid>,
}

statement!(SetAside => (SqlUuid, SqlUuid):
    "with clock as materialized (select api_now() as at), \
     locked as materialized (select s.seller_id, s.id, s.client_id, s.active, s.connection_generation \
       from unnest(", sellers: Array<SqlUuid>, ", ", lanes: Array<SqlUuid>,
    concat!(") k (seller_id, id) join subscriptions s on s.seller_id = k.seller_id and s.id = k.id \
       where s.wake_at <= (select at from clock) order by s.seller_id, s.id for no key update of s skip locked), \
     lanes as materialized (select s.*, ", lane_state!(), " as state from locked s), \
     resting as materialized (select a.client_id from applications a where a.status = 'suspended' \
       and a.client_id = any(array(select client_id from lanes where state = 'held')) for share skip locked), \
     held as materialized (select l.seller_id, l.id from lanes l join resting r on r.client_id = l.client_id where l.state = 'held' \
       union select o.seller_id, o.id from (select s.seller_id, s.id from resting r join subscriptions s on s.client_id = r.client_id \
         where s.active and not s.leased and s.wake_at is not null limit 2000 for no key update of s skip locked) o), \
     pending as materialized (select l.seller_id, l.id as lane, d.id from lanes l cross join lateral (\
         (select id from deliveries d where d.seller_id = l.seller_id and d.subscription_id = l.id \
            and d.due_at is not null and d.attempt = 0 limit 500) union all \
         (select id from deliveries d where d.seller_id = l.seller_id and d.subscription_id = l.id \
            and d.due_at is not null and d.attempt > 0 limit 500)) d where l.state = 'gone'), \
     stopped as (update deliveries d set due_at = null from pending p \
       where d.seller_id = p.seller_id and d.subscription_id = p.lane and d.id = p.id), \
     asleep as (update subscriptions s set wake_at = null, leased = false, fence = null, in_hand = '{}' from held h \
       where s.seller_id = h.seller_id and s.id = h.id returning s.seller_id, s.id), \
     ended as (update subscriptions s set active = false, leased = false, fence = null, in_hand = '{}', \
       wake_at = case when exists (select from pending p where p.seller_id = l.seller_id and p.lane = l.id) then clock.at end \
     from lanes l, clock where l.state = 'gone' and s.seller_id = l.seller_id and s.id = l.id \
       returning s.seller_id, s.id) \
     select * from asleep union all select * from ended"));

/// Wakes lanes that nobody holds and that are not due though one of their deliveries is. One that is due in a few seconds is
/// not forgotten: it rests, because its host had no place.
pub(super) struct WakeForgotten;

statement!(WakeForgotten => ():
    concat!("with clock as materialized (select api_now() as at), \
     forgotten as materialized (select s.seller_id, s.id from subscriptions s, clock \
       where s.active and not s.leased and (s.wake_at is null or s.wake_at > clock.at + interval '5 seconds') \
         and (exists (select from deliveries d where d.seller_id = s.seller_id and d.subscription_id = s.id \
             and d.due_at is not null and d.attempt = 0 and d.due_at <= clock.at) \
           or exists (select from deliveries d where d.seller_id = s.seller_id and d.subscription_id = s.id \
             and d.due_at is not null and d.attempt > 0 and d.due_at <= clock.at)) \
         and ", lane_state!(), " <> 'held' order by s.seller_id, s.id for no key update of s skip locked) \
     update subscriptions s set wake_at = clock.at from forgotten f, clock where s.seller_id = f.seller_id and s.id = f.id"));
