-- name: ADD_OPERATOR_TOKEN
-- $1 its id; $2 its name; $3 its hash; $4 its lifetime in microseconds, or null; $5 whether it may only read.
insert into operator_tokens (id, name, hash, expires_at, read_only)
values ($1, $2, $3, api_now() + $4::bigint * interval '1 microsecond', $5)

-- name: ISSUE_PERSONAL_TOKEN
-- $1 the family; $2 its scopes; $3 the seller; $4 the application; $5 the token's hash; $6 its expiry, or null; $7 its name.
with family as (
    insert into families (id, kind, scopes, seller_id, client_id, seller_generation, application_generation)
    select $1, 'personal', $2, s.id, a.client_id, s.token_generation, a.token_generation
    from sellers as s
    cross join applications as a
    where s.id = $3
      and a.client_id = $4
    returning id, seller_id
),
named as (
    insert into personal_tokens (seller_id, id, name)
    select seller_id, id, $7
    from family
)
insert into access_tokens (family_id, hash, expires_at)
select id, $5, $6
from family

-- name: REVOKE_PERSONAL_TOKEN
-- $1 the seller; $2 the family.
-- The gate checks the family. Lists of live tokens need not pass its name any more.
with unnamed as (
    delete from personal_tokens
    where seller_id = $1
      and id = $2
)
update families
set revoked_at = api_now()
where id = $2
  and seller_id = $1
  and kind = 'personal'
  and revoked_at is null

-- name: OPEN_SESSION
-- $1 the session's hash; $2 the seller; $3 when it was created; $4 when it was last used.
insert into sessions (hash, created_at, seen_at, seller_id, generation)
select $1, $3, $4, id, session_generation
from sellers
where id = $2

-- name: END_SESSIONS
-- $1 the seller; $2 the hash of the session that stays, or null.
with raised as (
    -- Sessions were opened under this generation. Waits for a transaction that is using a link and has locked the account, so that the
    -- session that it opens ends too.
    update sellers
    set session_generation = session_generation + 1
    where id = $1
    returning id, session_generation
)
update sessions e
set generation = raised.session_generation
from raised
where e.seller_id = raised.id
  and e.hash = $2

-- name: END_LINKS
-- $1 the seller.
with earlier as (
    delete from earlier_links
    where seller_id = $1
)
delete from links
where seller_id = $1

-- name: ADD_LINK
-- $1 the seller; $2 the link's kind; $3 its hash; $4 when it expires.
with earlier as (
    insert into earlier_links (hash, seller_id, kind, expires_at)
    select hash, seller_id, kind, expires_at
    from links
    where seller_id = $1
      and kind = $2
      and kind <> 'sign-in'
      and expires_at > (select api_now())
)
insert into links (hash, seller_id, kind, expires_at)
values ($3, $1, $2, $4)
on conflict (seller_id, kind) do update
set hash = excluded.hash, expires_at = excluded.expires_at

-- name: USE_LINK
-- $1 the link's hash; $2 its kind.
with owner as materialized (
    -- Locks the account first. Of two concurrent uses, only one finds the link to delete.
    select s.id, s.seller_no, s.name, s.email, s.created_at, s.closed_at
    from (
        select hash, seller_id, kind, expires_at from links
        union all
        select hash, seller_id, kind, expires_at from earlier_links
    ) l
    join sellers s on s.id = l.seller_id
    where l.hash = $1
      and l.kind = $2
      and l.expires_at > (select api_now())
      and s.closed_at is null
    for no key update of s
),
newest as (
    delete from links l
    using owner
    where l.hash = $1
      and l.seller_id = owner.id
    returning l.hash
),
earlier as (
    delete from earlier_links l
    using owner
    where l.hash = $1
      and l.seller_id = owner.id
    returning l.hash
)
select *
from owner
where exists (select from newest)
   or exists (select from earlier)

-- name: TAKE_FLASH
-- The row stays, as a record that the form was sent.
-- $1 the session's hash; $2 the form.
with flash as materialized (
    select session_hash, form, sealed
    from flashes
    where session_hash = $1
      and form = $2
      and sealed is not null
    for no key update
)
update flashes f
set sealed = null
from flash
where f.session_hash = flash.session_hash
  and f.form = flash.form
returning flash.sealed

-- name: ADD_AUDIT_ENTRY
-- $1 the kind of actor; $2 the actor's id; $3 the client address; $4 the action; $5 what it was about; $6 the changes;
-- $7 the operating system's user.
insert into audit_log (id, at, actor, actor_id, address, action, subject, changes, os_user)
select
    -- A UUIDv7 (RFC 9562 §5.7) with the fraction of the millisecond in the twelve bits after the version (§6.2, method 3), so that the
    -- entries of one transaction keep the order in which they were written.
    encode(
        overlay(
            overlay(uuid_send(gen_random_uuid()) placing substring(int8send(us / 1000) from 3) from 1 for 6)
            placing int2send((28672 + us % 1000 * 4096 / 1000)::int2) from 7 for 2
        ),
        'hex'
    )::uuid,
    at, $1, $2, $3, $4, $5, $6, $7
from (
    select at, (extract(epoch from at) * 1000000)::bigint as us
    from (select api_now() as at) clock
) time
