//! What a change leaves behind in the database, and what must never be there.

use std::collections::BTreeMap;

/// Counts by name.
pub(crate) type Footprint = BTreeMap<String, i64>;

/// Counts everything that a change leaves behind.
pub(crate) const FOOTPRINT: &str = "
    select 'changes ' || kind, count(*) from changes group by kind
    union all select 'deliveries of ' || event, count(*) from deliveries group by event
    union all select 'journal ' || event, count(*) from journal group by event
    union all select 'codes', count(*) from authorization_codes
    union all select 'mails', count(*) from mails
    union all select 'orders ' || status, count(*) from seller_orders group by status
    union all select 'orders with a buyer', count(*) from seller_orders where buyer is not null
    union all select 'offers', count(*) from offers
    union all select 'pieces', coalesce(sum(stock), 0)::bigint from offers
    union all select 'parcels', count(*) from parcels
    union all select 'subscriptions', count(*) from subscriptions where active
    union all select 'places', coalesce(sum(used), 0)::bigint from subscription_quota";

/// Lists the states that must never occur and do.
pub(crate) const NEVER: &str = "
    select 'a delivery is due in a queue that sleeps' where exists (select from deliveries d
        join subscriptions s on s.seller_id = d.seller_id and s.id = d.subscription_id
        where d.due_at is not null and (s.active or s.is_ending) and s.wake_at is null and not s.leased)
    union all select 'a journal has a gap' where exists (select from journals j
        where j.last_number <> (select count(distinct e.number) from journal e where e.seller_id = j.seller_id))
    union all select 'stock is below zero' where exists (select from offers where stock < 0)
    union all select 'a family has two refresh tokens that are not used' where exists (select from refresh_tokens t
        join families f on f.id = t.family_id
        where t.used_at is null and f.revoked_at is null group by t.family_id having count(*) > 1)";

pub(crate) fn difference(before: &Footprint, after: &Footprint) -> Footprint {
    let mut difference = after.clone();
    for (what, number) in before {
        *difference.entry(what.clone()).or_default() -= number;
    }
    difference.retain(|_, number| *number != 0);
    difference
}
