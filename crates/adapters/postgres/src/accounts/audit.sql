-- name: ADD_ENTRY
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

-- name: ENTRIES_ABOUT
-- $1 the subject; $2 the actor, or null; $3 the lowest id; $4 above the highest id; $5 how many entries at most.
select distinct on (id) id, at, actor, actor_id, address, action, subject, changes, os_user
from (
    -- Each half is a range of its own index.
    (
        select *
        from audit_log
        where subject = $1
          and id >= $3
          and id < $4
        order by id desc
        limit $5
    )
    union all
    (
        select *
        from audit_log
        where actor_id = $2
          and id >= $3
          and id < $4
        order by id desc
        limit $5
    )
) entries
order by id desc
limit $5
