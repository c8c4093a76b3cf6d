-- name: CONNECTIONS
-- $1 the seller; $2 the name after which the page begins; $3 one application, or null; $4 how many at most.
-- The applications with a grant that can still be used, and the union of the scopes of their consents; and those that
-- have lost every grant, but still receive events.
with clock as materialized (
    select api_now() as at
),
named as (
    -- Sorted first (`offset 0`), so that grants are looked up for the connections of this page alone.
    select c.seller_id, c.client_id, c.generation, c.connected_at, a.name, a.owner_id, a.documentation_url, a.scopes,
        a.token_generation as application_generation, s.token_generation as seller_generation
    from connections as c
    join applications as a on a.client_id = c.client_id
    join sellers as s on s.id = c.seller_id
    where c.seller_id = $1
      and c.client_id = coalesce($3, c.client_id)
      and c.disconnected_at is null
      and a.deleted_at is null
      and lower(a.name) > lower($2)
    order by lower(a.name)
    offset 0
)
select n.client_id, n.name, o.id as owner_id, o.name as owner_name, n.documentation_url,
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
    -- However many consents there are, those that count are the newest fifty that were not revoked. If there are as
    -- many, and none of them can be used, an older one might be.
    select coalesce(
            bit_or(f.scopes) filter (
                where exists (
                    select
                    from access_tokens as t
                    where t.family_id = f.id
                      and t.revoked_at is null
                      and t.expires_at > clock.at
                )
                or exists (
                    select
                    from refresh_tokens as r
                    where r.family_id = f.id
                      and r.used_at is null
                      and r.expires_at > clock.at
                )
                or exists (
                    select
                    from authorization_codes as a
                    where a.family_id = f.id
                      and a.used_at is null
                      and a.expires_at > clock.at
                )
            ),
            case when count(*) = 50 then bit_or(f.scopes) end
        ) as scopes
    from clock
    cross join (
        select f.id, f.scopes
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
join sellers as o on o.id = n.owner_id
where o.closed_at is null
  and (
    g.scopes is not null
    or exists (
        select
        from subscriptions as s
        where s.seller_id = n.seller_id
          and s.client_id = n.client_id
          and s.active
          and s.connection_generation = n.generation
    )
  )
order by lower(n.name)
limit $4
