-- name: QUEUE
-- $1 the account, or null; $2 the application, or null.
-- One row waits for each decision, however often it is repeated. If a worker has taken it, the changed time keeps the worker from
-- removing it. If it is locked, a second row is added. No index serves the look-up: the table is short, since workers empty it.
with queued as (
    update follow_ups
    set due_at = least(due_at - interval '1 microsecond', api_now())
    where id = (
        select id
        from follow_ups
        where (seller_id, client_id) is not distinct from ($1, $2)
        limit 1
        for update skip locked
    )
    returning id
)
insert into follow_ups (seller_id, client_id)
select $1, $2
where not exists (select from queued)

-- name: TAKE
-- Takes the follow-up that has been due longest.
update follow_ups
set due_at = api_now() + interval '30 seconds'
where id = (
    select id
    from follow_ups
    where due_at <= (select api_now())
    order by due_at, id
    limit 1
    for update skip locked
)
returning id, seller_id, client_id, due_at

-- name: REVOKE_FAMILIES_OF_APPLICATION
-- $1 the application; $2 rows at most.
-- They are dead already. Marked, they leave the tables soon, also those that would never expire. Those of a deleted application are
-- all dead.
update families
set revoked_at = (select api_now())
-- As an array, they are found by the primary key, whatever the plan supposes of $2.
where id = any(array(
    select id
    from families
    where client_id = $1
      and revoked_at is null
      and application_generation < (
          select token_generation + (deleted_at is not null)::integer
          from applications
          where client_id = $1
      )
    order by revoked_at, application_generation
    limit $2
    for no key update skip locked
))

-- name: REVOKE_FAMILIES_OF_SELLER
-- $1 the seller; $2 rows at most.
-- Those of a closed account are all dead.
update families
set revoked_at = (select api_now())
where id = any(array(
    select id
    from families
    where seller_id = $1
      and revoked_at is null
      and seller_generation < (
          select token_generation + (closed_at is not null)::integer
          from sellers
          where id = $1
      )
    order by revoked_at, seller_generation
    limit $2
    for no key update skip locked
))
