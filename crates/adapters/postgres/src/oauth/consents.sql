-- name: CONNECTIONS
-- $1 the seller; $2 the name after which the page begins; $3 one application, or null; $4 how many at most.
-- The applications that the seller has let in and not disconnected, whether or not they still hold a token; with the union
-- of the scopes of their consents.
with named as (
    -- Limited first, so that grants are looked up for the connections of this page alone.
    select c.seller_id, c.client_id, c.generation, c.connected_at, a.name, a.documentation_url, a.scopes,
        a.token_generation as application_generation, s.token_generation as seller_generation,
        o.id as owner_id, o.name as owner_name
    from connections as c
    join applications as a on a.client_id = c.client_id
    join sellers as s on s.id = c.seller_id
    join sellers as o on o.id = a.owner_id
    where c.seller_id = $1
      and c.client_id = coalesce($3, c.client_id)
      and c.disconnected_at is null
      and a.deleted_at is null
      and o.closed_at is null
      and lower(a.name) > lower($2)
    order by lower(a.name)
    limit $4
)
select n.client_id, n.name, n.owner_id, n.owner_name, n.documentation_url,
    coalesce(g.scopes, 0) & n.scopes as scopes, n.connected_at,
    (
        select u.used_at
        from last_uses as u
        where u.seller_id = n.seller_id
          and u.client_id = n.client_id
          -- Else it is of an earlier connection, or of the application's own tokens, which count here too. A use within a
          -- minute of such an earlier one is not stored.
          and u.used_at >= n.connected_at
    ) as used_at
from named as n
cross join lateral (
    -- However many consents there are, those that count are the newest fifty that were not revoked.
    select bit_or(f.scopes) as scopes
    from (
        select f.scopes
        from families as f
        where f.client_id = n.client_id
          and f.seller_id = n.seller_id
          and f.generation = n.generation
          and f.generation is not null
          and f.application_generation = n.application_generation
          and f.seller_generation = n.seller_generation
          and f.revoked_at is null
        order by f.created_at desc
        limit 50
    ) as f
) as g
order by lower(n.name)
