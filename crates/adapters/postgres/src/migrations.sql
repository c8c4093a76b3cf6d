-- name: TRY_LOCK
select pg_try_advisory_xact_lock(x'73656c6c65726170'::bigint)

-- name: INDEX_PROGRESS
select 'index: ' || phase || coalesce(', ' || round(100.0 * blocks_done / nullif(blocks_total, 0)) || ' %', '')
from pg_stat_progress_create_index
where datname = current_database()
  and phase is not null

-- name: PLACE
-- Whether the present schema has the table of versions; one of another program elsewhere in the search path does not count. And, if new tables would not be created beside the existing ones, the statement that corrects the search path.
select to_regclass(quote_ident(current_schema()) || '.__diesel_schema_migrations') is not null,
    (
        select format('ALTER ROLE %I IN DATABASE %I SET search_path = %s;', session_user, current_database(), relnamespace::regnamespace)
        from pg_class
        where oid = to_regclass('schema_facts')
          and relnamespace::regnamespace::text <> quote_ident(current_schema())
    )

-- name: VERSIONS
select version
from __diesel_schema_migrations

-- name: FORGET_FACTS
-- $1 the version of a migration without a transaction: an earlier run may have ended between its last statement, which stores
-- them, and its version.
delete from schema_facts
where version = $1::text

-- name: ADD_VERSION
-- $1 the version of a migration that was applied.
insert into __diesel_schema_migrations (version)
values ($1::text)

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

-- name: DISTRIBUTION
-- Whether the tables are distributed, and whether this is a Citus cluster.
select to_regclass('distributed_writes') is not null, to_regclass('pg_dist_node') is not null

-- name: TABLE_CONTENTS
-- $1 a number of rows.
-- Whether there is a worker, and whether a table has more rows.
select exists (select from pg_dist_node where groupid <> 0 and isactive),
    (select count(*) from (select from offers limit $1::bigint + 1) o) > $1
        or (select count(*) from (select from seller_orders limit $1 + 1) p) > $1
