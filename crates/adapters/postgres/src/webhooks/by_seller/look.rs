//! What is due or forgotten at all sellers, read without locks.

use diesel::{
    Queryable,
    sql_types::{Array, Bool, Uuid as SqlUuid},
};
use uuid::Uuid;
use webhooks::Room;

use crate::statement::statement;
use crate::webhooks::{claim::full_applications, due::lane_state};

/// How many sound lanes, and how many that fail, are looked at: the limits in the statement.
const LANES_OF_A_KIND: usize = 128;

/// Lanes that are due, those that have waited longest first. Lanes that fail have an index of their own, and lanes of
/// applications that have their part, or are suspended, are read over: however many the latter have, they come to nobody.
pub(super) struct Due {
    full: Vec<Uuid>,
    full_of_failing: Vec<Uuid>,
}

statement!(Due => (SqlUuid, SqlUuid, SqlUuid, Bool):
    "with clock as materialized (select api_now() as at), \
     suspended as materialized (select array(select client_id from applications where status = 'suspended') as ids) \
     select seller_id, id, client_id, failing from (\
       (select seller_id, id, client_id, failing, wake_at from subscriptions where wake_at <= (select at from clock) and not failing \
          and client_id <> all(", full: Array<SqlUuid>, ") and client_id <> all((select ids from suspended)::uuid[]) order by wake_at limit 128) union all \
       (select seller_id, id, client_id, failing, wake_at from subscriptions where wake_at <= (select at from clock) and failing \
          and client_id <> all(", full_of_failing: Array<SqlUuid>, ") and client_id <> all((select ids from suspended)::uuid[]) order by wake_at limit 128)) due \
     order by wake_at, seller_id, id");

impl Due {
    pub(super) fn new(room: &Room) -> Self {
        let (full, full_of_failing) = full_applications(room);
        Self {
            full,
            full_of_failing,
        }
    }
}

/// A lane that was due when it was looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Queryable)]
pub(super) struct Candidate {
    pub(super) seller: Uuid,
    pub(super) id: Uuid,
    pub(super) application: Uuid,
    pub(super) failing: bool,
}

/// Whether lanes of one kind are as many as are looked at.
pub(super) fn may_have_missed_some(waiting: &[Candidate]) -> bool {
    let failing = waiting.iter().filter(|lane| lane.failing).count();
    failing >= LANES_OF_A_KIND || waiting.len().saturating_sub(failing) >= LANES_OF_A_KIND
}

/// Lanes that nobody holds and that are not due though one of their deliveries is.
pub(super) struct Forgotten;

statement!(Forgotten => (SqlUuid, SqlUuid):
    concat!("with clock as materialized (select api_now() as at) \
     select s.seller_id, s.id from subscriptions s, clock \
       where s.active and not s.leased and (s.wake_at is null or s.wake_at > clock.at + interval '5 seconds') \
         and exists (select from deliveries d where d.seller_id = s.seller_id and d.subscription_id = s.id \
           and d.due_at is not null and d.due_at <= clock.at) \
         and ", lane_state!(), " <> 'held' order by s.seller_id, s.id"));
