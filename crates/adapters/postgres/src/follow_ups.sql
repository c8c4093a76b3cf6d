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
