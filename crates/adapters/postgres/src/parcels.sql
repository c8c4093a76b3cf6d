-- name: LEASE_PARCEL
-- $1 the carrier; $2 where the look-up begins in the index; $3 the fence; $4 the microseconds of the lease.
with clock as materialized (
    select api_now() as at
),
due as materialized (
    select seller_id, order_id, due_at
    from parcels
    where carrier = $1
      and due_at >= (select least($2, at) from clock)
      and due_at <= (select at from clock)
    order by due_at
    limit 1
    for no key update skip locked
),
leased as (
    update parcels as p
    set fence = $3,
        due_at = (select at from clock) + $4::bigint * interval '1 microsecond'
    from due
    where p.seller_id = due.seller_id
      and p.order_id = due.order_id
    returning p.seller_id, p.order_id, p.carrier, p.tracking_number, p.shipped_at
)
select coalesce((select due_at from due), clock.at) as first_due, leased.*
from clock
left join leased on true
