-- The first byte of a sealed value is the length of its key's id, which follows. Zero is decoded: as a literal it would depend on
-- `standard_conforming_strings`.

-- name: COUNTS
with sealed (name, value) as (
    select 'subscriptions.secret', secret from subscriptions
    union all
    select 'idempotency.body', body from idempotency where body is not null
    union all
    select 'account_mails.url', url from account_mails where url is not null
    union all
    select 'flashes.sealed', sealed from flashes where sealed is not null
)
select name, encode(substring(value from 2 for get_byte(value || decode('00', 'hex'), 0)), 'escape') as key,
    count(*) as count
from sealed
group by name, key

-- name: SAMPLE
-- Three values of each key, among 500 rows of each table, with their bindings as `sealing`, `webhooks` and the use case
-- `shown_once` make them.
with sealed (name, binding, value) as (
    (
        select 'subscriptions.secret', uuid_send(seller_id) || uuid_send(id), secret
        from subscriptions
        limit 500
    )
    union all
    (
        select 'idempotency.body',
            int8send(16) || uuid_send(seller_id) || int8send(octet_length(key)) || convert_to(key, 'UTF8')
                || int8send(octet_length(fingerprint)) || fingerprint || int8send(16) || uuid_send(fence),
            body
        from (
            -- The newest and the oldest: after a rotation of the sealing key they may differ.
            (select * from idempotency order by created_at desc limit 250)
            union all
            (select * from idempotency order by created_at limit 250)
        ) as ends
    )
    union all
    (
        select 'account_mails.url', uuid_send(id), url
        from account_mails
        where due_at is not null
        order by due_at
        limit 500
    )
    union all
    (
        select 'flashes.sealed', session_hash || uuid_send(form), sealed
        from flashes
        where sealed is not null
        order by created_at
        limit 500
    )
),
keyed as (
    select *, encode(substring(value from 2 for get_byte(value || decode('00', 'hex'), 0)), 'escape') as key
    from sealed
    where value is not null
),
numbered as (
    select *, row_number() over (partition by name, key) as place
    from keyed
)
select name, key, binding, value
from numbered
where place <= 3

-- name: SECRETS
-- $1 and $2 seller and id of the last subscription of the page before.
select seller_id, id, encode(substring(secret from 2 for get_byte(secret || decode('00', 'hex'), 0)), 'escape') as key, secret
from subscriptions
where (seller_id, id) > ($1, $2)
order by seller_id, id
limit 200

-- name: REPLACE_SECRET
-- $1 the seller; $2 the subscription; $3 the present secret; $4 the new one.
update subscriptions
set secret = $4
from (select set_config('lock_timeout', '2s', true) as lock_timeout) setting
where lock_timeout <> ''
  and seller_id = $1
  and id = $2
  and secret = $3
