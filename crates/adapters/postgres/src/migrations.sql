-- name: TRY_LOCK
select pg_try_advisory_xact_lock(x'73656c6c65726170'::bigint)

-- name: INDEX_PROGRESS
select 'index: ' || phase || coalesce(', ' || round(100.0 * blocks_done / nullif(blocks_total, 0)) || ' %', '')
from pg_stat_progress_create_index
where datname = current_database()
  and phase is not null

-- name: HAS_VERSIONS
select to_regclass('__diesel_schema_migrations') is not null

-- name: VERSIONS
select version
from __diesel_schema_migrations

-- name: FINISH
-- $1 the oldest program that may work with the schema from now on.
-- The journal begins: what a program before that caused is not in it.
with begun as (
    insert into instance (key, value)
    values ('journal', $1)
    on conflict (key) do nothing
    returning key
),
cleared as (
    delete from journal
    where exists (select from begun)
)
update schema_facts
set oldest_binary = $1
where version = (select max(version) from schema_facts)
  and string_to_array(oldest_binary, '.')::integer[] < string_to_array($1, '.')::integer[]

-- name: TABLE_ROWS
-- $1 a table. About how many rows it has; null if it is not there, or was never analyzed.
select (
    select reltuples::bigint
    from pg_class
    where oid = to_regclass($1)
      and reltuples >= 0
)
