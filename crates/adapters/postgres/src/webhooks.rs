//! Subscriptions, their delivery queues and their deliveries.

mod ending;
mod queues;
mod settle;
mod subscriptions;

pub(crate) use self::{
    ending::{Ended, end_subscriptions, remove_subscriptions, wake_queues},
    queues::StoredQueues,
    subscriptions::{AllDeliveries, StoredSubscriptions, secret_binding},
};

/// What may be done with the queue of a subscription `s`: `live`; `held` while its application is suspended; `gone` when nothing
/// is ever delivered there again. It is a query of its own for each queue, so that however many queues the server expects, it
/// looks each one's application up.
macro_rules! queue_state {
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
use queue_state;
