-- name: LEASE_SHIPMENT_MAIL
-- $1 where the look-up begins in the index; $2 the fence; $3 the lease in microseconds.
-- A correction waits for earlier mails of its order that are queued or being sent: it would arrive before them. One that
-- was leased before and not sent is dropped for a correction: it has the former number, and perhaps nobody can read it.
with clock as materialized (
    select api_now() as at
),
due as materialized (
    select id, order_id, created_at, is_correction, attempts, fence, due_at
    from mails
    where due_at >= (select least($1, at) from clock)
      and due_at <= (select at from clock)
    order by due_at
    limit 1
    for no key update skip locked
),
judged as materialized (
    select
        d.id,
        d.is_correction and exists (
            select
            from mails as earlier
            where earlier.order_id = d.order_id
              and earlier.created_at < d.created_at
              and (earlier.attempts = 0 or earlier.fence is not null)
        ) as waits,
        (d.attempts > 0 or d.fence is not null) and exists (
            select
            from mails as later
            where later.order_id = d.order_id
              and later.is_correction
              and later.created_at > d.created_at
        ) as is_overtaken
    from due as d
),
dropped as (
    delete from mails as m
    using judged as j
    where m.id = j.id
      and j.is_overtaken
    returning
        m.id, m.order_id, m.order_number, m.recipient, m.recipient_name, m.carrier, m.tracking_number, m.is_correction,
        m.attempts, true as passed_over
),
leased as (
    update mails as m
    set fence = case when not j.waits then $2::uuid end,
        due_at = (select at from clock) + case when j.waits then interval '1 second' else $3::bigint * interval '1 microsecond' end
    from judged as j
    where m.id = j.id
      and not j.is_overtaken
    returning
        m.id, m.order_id, m.order_number, m.recipient, m.recipient_name, m.carrier, m.tracking_number, m.is_correction,
        m.attempts, j.waits as passed_over
)
select coalesce((select due_at from due), clock.at) as first_due, found.*
from clock
left join (select * from leased union all select * from dropped) as found on true

-- name: BEGIN_SHIPMENT_ATTEMPT
-- $1 its number; $2 the lease in microseconds; $3 the mail; $4 the fence.
update mails
set attempts = $1,
    due_at = api_now() + $2::bigint * interval '1 microsecond'
where id = $3
  and fence = $4

-- name: RECORD_SHIPMENT_STEP
-- $1 the step: sent, dead or again; $2 the microseconds until it is due again; $3 the mail; $4 the fence.
-- One that was not sent is dropped if its shipment was corrected meanwhile: it has the former number.
with mine as materialized (
    select m.id,
        $1 <> 'sent' and exists (
            select
            from mails as later
            where later.order_id = m.order_id
              and later.is_correction
              and later.created_at > m.created_at
        ) as is_overtaken
    from mails as m
    where m.id = $3
      and m.fence = $4
    for no key update of m
),
dropped as (
    delete from mails as m
    using mine
    where m.id = mine.id
      and mine.is_overtaken
)
update mails as m
set fence = null,
    sent_at = case $1 when 'sent' then clock.at end,
    dead_at = case $1 when 'dead' then clock.at end,
    due_at = clock.at + $2::bigint * interval '1 microsecond'
from mine, (select api_now() as at) as clock
where m.id = mine.id
  and not mine.is_overtaken

-- name: LEASE_ACCOUNT_MAIL
-- $1 where the look-up begins in the index; $2 the fence; $3 the lease in microseconds.
-- Mails whose link is no longer valid are given up: it expired, was used, or ended with the use of another one.
with clock as materialized (
    select api_now() as at
),
due as materialized (
    select id, seller_id, kind, expires_at, due_at
    from account_mails
    where due_at >= (select least($1, at) from clock)
      and due_at <= (select at from clock)
    order by due_at
    -- Passes twenty mails that are not worth sending.
    limit 20 + 1
    for no key update skip locked
),
judged as materialized (
    select
        d.id,
        d.due_at,
        exists (
            select
            from (
                select seller_id, kind, expires_at from links
                union all
                select seller_id, kind, expires_at from earlier_links
            ) as l
            join sellers as s on s.id = l.seller_id
            where l.seller_id = d.seller_id
              and l.kind = d.kind
              and l.expires_at = d.expires_at
              and l.expires_at > (select at from clock)
              and s.closed_at is null
        ) as is_worth_sending
    from due as d
),
leased as (
    update account_mails as m
    set fence = case when j.is_worth_sending then $2::uuid end,
        due_at = case when j.is_worth_sending then (select at from clock) + $3::bigint * interval '1 microsecond' end,
        dead_at = case when not j.is_worth_sending then (select at from clock) end,
        url = case when j.is_worth_sending then m.url end
    from judged as j
    where m.id = j.id
      and (not j.is_worth_sending or j.id = (select id from judged where is_worth_sending order by due_at limit 1))
    returning m.id, m.seller_id, m.kind, m.recipient, m.recipient_name, m.url, m.expires_at, m.attempts
)
select coalesce((select min(due_at) from due), clock.at) as first_due, leased.*
from clock
left join leased on leased.url is not null

-- name: BEGIN_ACCOUNT_ATTEMPT
-- $1 its number; $2 the lease in microseconds; $3 the mail; $4 the fence.
update account_mails
set attempts = $1,
    due_at = api_now() + $2::bigint * interval '1 microsecond'
where id = $3
  and fence = $4

-- name: RECORD_ACCOUNT_STEP
-- $1 the step: sent, dead or again; $2 the microseconds until it is due again; $3 the mail; $4 the fence.
update account_mails
set fence = null,
    sent_at = case $1 when 'sent' then clock.at end,
    dead_at = case $1 when 'dead' then clock.at end,
    -- A link is deleted once it was sent or given up.
    url = case $1 when 'again' then url end,
    due_at = clock.at + $2::bigint * interval '1 microsecond'
from (select api_now() as at) as clock
where id = $3
  and fence = $4
