-- name: CHANGES
-- The rows after a position, but only those before the oldest transaction in progress: no row can appear before them any more. That bound
-- comes from the same snapshot as the rows.
-- $1, $2 and $3 the position's transaction, row and time; $4 how many rows at most.
--
-- Also without rows, the feed's identifier and whether the position belongs to this feed's history; nothing where the rows were written in
-- another database. A restore or a failover loses the latest rows and then reuses transaction ids and row numbers. A position is therefore
-- known if its transaction id may have been used, and its row either exists with exactly the same time or is so old that it may have been
-- deleted.
select
    feed.value::bigint as feed,
    $1 = 0 or (
        $1 < pg_snapshot_xmax(pg_current_snapshot())::text::bigint
        and (
            $3 < (select api_now()) - interval '30 days'
            or exists (select from changes where xid = $1 and id = $2 and at = $3)
        )
    ) as known,
    f.xid, f.id, f.seller_id, f.at, f.kind, f.offer_id, f.order_id, f.client_id, f.price_amount, f.stock, f.status
from instance as feed
join instance as written_in on written_in.key = 'database' and written_in.value = (
    -- As in `identity.sql`.
    select s.system_identifier || '/' || d.oid
    from pg_control_system() as s
    cross join pg_database as d
    where d.datname = current_database()
)
left join lateral (
    select *
    from changes
    where (xid, id) > ($1, $2)
      and xid < (select pg_snapshot_xmin(pg_current_snapshot())::text::bigint)
    order by xid, id
    limit $4
) as f on true
where feed.key = 'feed'
order by f.xid, f.id
