-- name: APPLICATIONS_AT
-- $1 the seller; $2 the application before which the page begins; $3 how many at most.
-- Each half is a range of its own index.
with own as (
    select client_id
    from applications
    where owner_id = $1
      and deleted_at is null
      and not built_in
      and client_id < $2
    order by client_id desc
    limit $3
),
connected as (
    select c.client_id, c.connected_at
    from connections as c
    join applications as a on a.client_id = c.client_id
    where c.seller_id = $1
      and c.disconnected_at is null
      and a.deleted_at is null
      and c.client_id < $2
    order by c.client_id desc
    limit $3
),
listed as (
    select client_id from own
    union
    select client_id from connected
)
select a.client_id, a.owner_id, a.name, a.description, a.documentation_url, a.purpose, a.client_type, a.redirect_uris,
    a.scopes, a.granted_scopes, a.requested_scopes, a.status, a.rate_limit, a.built_in, a.secret_hash, a.created_at,
    c.connected_at
from listed as l
join applications as a on a.client_id = l.client_id
left join connected as c on c.client_id = l.client_id
order by a.client_id desc
limit $3

-- name: FREE_NAME
-- $1 the name of a new application.
-- The name of a deleted application that no other seller saw is free: that row takes one that nobody can register.
update applications
set name = '#' || replace(client_id::text, '-', '')
where lower(name) = lower($1)
  and not built_in
  and deleted_at is not null
  and (purpose = 'own_use' or status = 'pending')
