-- name: HERE
select s.system_identifier || '/' || d.oid as here
from pg_control_system() s
cross join pg_database d
where d.datname = current_database()

-- name: IDENTITY
-- Standbys and physical backups share the cluster's identifier and the database's oid. A promotion begins another timeline.
select s.system_identifier || '/' || d.oid as here,
    case when not pg_is_in_recovery() then left(pg_walfile_name(pg_current_wal_lsn()), 8) end as timeline,
    (select value from instance where key = 'database') as written_in,
    -- The journal begins when the schema is finished.
    exists (select from instance where key = 'journal') as is_finished
from pg_control_system() s
cross join pg_database d
where d.datname = current_database()

-- name: BEGIN_FEED
insert into instance (key, value)
select 'feed', hashtextextended(gen_random_uuid()::text, 0) & 9223372036854775807
on conflict (key) do update
set value = excluded.value, set_at = api_now()

-- name: AHEAD
-- An item of a transaction that this cluster has yet to begin.
select
from changes
where xid >= pg_snapshot_xmax(pg_current_snapshot())::text::bigint
limit 1
