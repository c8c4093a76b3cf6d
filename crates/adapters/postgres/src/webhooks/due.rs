//! What lanes are judged by, and what is due in them: pieces of the statements that give deliveries out, and their rows.

use std::sync::Arc;

use diesel::{
    Queryable,
    sql_types::{Binary, SmallInt, Text, Uuid as SqlUuid},
};
use kernel::StoreError;
use uuid::Uuid;
use webhooks::{DeliveryId, Due};

use super::delivery_row;

/// What may be done with a lane of a subscription `s`: `live`; `held` while its application is suspended; `gone` when nothing
/// is ever delivered there again. It is a query of its own for each lane, so that however many lanes the server expects, it
/// looks each one's application up.
macro_rules! lane_state {
    () => {
        "case when not s.active then 'gone' else coalesce((select case \
      when a.deleted_at is not null or o.closed_at is not null or v.closed_at is not null \
        or (s.connection_generation is not null and s.connection_generation is distinct from c.generation) then 'gone' \
      when a.status = 'suspended' then 'held' else 'live' end \
    from applications a join sellers o on o.id = a.owner_id join sellers v on v.id = s.seller_id \
      left join connections c on c.client_id = a.client_id and c.seller_id = v.id and c.disconnected_at is null \
    where a.client_id = s.client_id), 'gone') end"
    };
}
pub(super) use lane_state;

/// Up to `room` deliveries that are due in each lane `l`, without those that are `running`, as `place` orders them: three first
/// attempts for each repeated one, beginning with a first one, and no more than its `repeats` of the latter. Each index is read no further than that, whatever waits behind.
/// The fixed limits are for the planner, which knows no others.
macro_rules! due_in_lane {
    () => {
        "(select u.* from (\
      (select f.*, 2 * row_number() over (order by f.due_at) as place from (select d.id, d.event, d.body, d.attempt, d.lost, d.due_at \
        from deliveries d where d.seller_id = l.seller_id and d.subscription_id = l.id and d.due_at is not null and d.attempt = 0 \
          and d.due_at <= (select at from clock) and d.id <> all(l.running) order by d.due_at limit 128) f limit l.room) \
      union all \
      (select f.*, 6 * row_number() over (order by f.due_at) - 3 as place from (select d.id, d.event, d.body, d.attempt, d.lost, d.due_at \
        from deliveries d where d.seller_id = l.seller_id and d.subscription_id = l.id and d.due_at is not null and d.attempt > 0 \
          and d.due_at <= (select at from clock) and d.id <> all(l.running) order by d.due_at limit 128) f limit l.repeats)\
    ) u order by u.place limit l.room)"
    };
}
pub(super) use due_in_lane;

/// The types of the columns of [`DueRow`].
pub(super) type Columns = (SqlUuid, Text, Binary, SmallInt, SmallInt);

#[derive(Queryable)]
pub(super) struct DueRow {
    id: Uuid,
    event: String,
    body: Vec<u8>,
    attempt: i16,
    lost: i16,
}

impl TryFrom<DueRow> for Due {
    type Error = StoreError;

    fn try_from(row: DueRow) -> Result<Self, StoreError> {
        let id = DeliveryId::from(row.id);
        let count = |name: &str, value: i16| {
            u8::try_from(value).map_err(|_| StoreError::corrupt("deliveries", id, format!("{name} {value}")))
        };
        Ok(Self {
            id,
            event: delivery_row::event(id, &row.event)?,
            body: Arc::from(row.body),
            attempt: count("attempt", row.attempt)?,
            lost: count("lost", row.lost)?,
        })
    }
}
