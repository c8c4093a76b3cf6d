//! Queueing one delivery by hand.

use chrono::{DateTime, Utc};
use diesel::sql_types::{BigInt, Binary, Text, Timestamptz, Uuid as SqlUuid};
use uuid::Uuid;

use super::due::lane_state;
use crate::statement::statement;

/// Queues a delivery to a lane that is live, and wakes the lane, under the locks that a fan-out takes and by what it goes by.
pub(super) struct Queue {
    pub(super) seller: Uuid,
    pub(super) subscription: Uuid,
    pub(super) id: Uuid,
    pub(super) event: &'static str,
    pub(super) body: Vec<u8>,
    pub(super) at: DateTime<Utc>,
}

statement!(Queue => BigInt:
    "with lane as materialized (select s.seller_id, s.id, s.leased, s.wake_at from subscriptions s where s.seller_id = ", seller: SqlUuid,
    " and s.id = ", subscription: SqlUuid,
    concat!(" and ", lane_state!(), " = 'live' for key share of s), \
     told as (insert into deliveries (seller_id, subscription_id, id, created_at, due_at, event, body) \
       select l.seller_id, l.id, "), id: SqlUuid, ", ", at: Timestamptz, ", ", at: Timestamptz, ", ", event: Text, ", ", body: Binary,
    " from lane l returning 1), \
     asleep as materialized (select s.seller_id, s.id, s.leased, s.wake_at from lane l \
       join subscriptions s on s.seller_id = l.seller_id and s.id = l.id \
       where not l.leased and (l.wake_at is null or l.wake_at > ", at: Timestamptz,
    ") for no key update of s), \
     woken as (update subscriptions s set wake_at = ", at: Timestamptz,
    " from asleep w where s.seller_id = w.seller_id and s.id = w.id and not w.leased \
       and (w.wake_at is null or w.wake_at > ", at: Timestamptz,
    ")) select count(*) from told");
