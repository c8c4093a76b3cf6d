-- name: ANALYZE
select
from analyze_grown_tables()

-- name: GRANT_ANALYZE
select format(
    'GRANT EXECUTE ON FUNCTION %s TO %I', 'analyze_grown_tables()'::regprocedure, current_user
) as statements

-- name: ANY_TABLE
-- One that no extension owns.
select
from pg_class c
join pg_namespace n on n.oid = c.relnamespace
where n.nspname not in ('pg_catalog', 'information_schema', 'pg_toast')
  and c.relkind in ('r', 'p', 'v', 'm', 'f')
  and not exists (
      select
      from pg_depend d
      where d.classid = 'pg_class'::regclass
        and d.objid = c.oid
        and d.deptype = 'e'
  )
limit 1

-- name: MARK
-- $1 the key of an installation mark.
select value
from instance
where key = $1

-- name: CLOCK
select api_now() as now

-- name: SET_MARK
-- $1 the key and $2 the value of an installation mark.
insert into instance (key, value)
values ($1, $2)
on conflict (key) do update
set value = excluded.value, set_at = api_now()
