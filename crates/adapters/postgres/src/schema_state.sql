-- name: FACTS
select not current_setting('transaction_read_only')::boolean as takes_writes,
    current_setting('server_encoding') as encoding, current_setting('lc_messages') as locale,
    current_setting('transaction_isolation') as isolation,
    to_regclass('__diesel_schema_migrations') is not null and to_regclass('schema_facts') is not null as is_there,
    to_regclass('distributed_writes') is not null as is_distributed

-- name: APPLIED
select m.version, f.oldest_binary
from __diesel_schema_migrations m
left join schema_facts f on f.version = m.version

-- name: GRANTS
-- $1 the program's tables and view, of which a database may lack that of Citus; others in the schema are none of its business.
-- The statements by which their owner lets the present role serve, now and after later migrations; null if it lacks nothing.
with place as (
    select n.oid, format('%I', n.nspname) as schema, format('%I', current_user) as role,
        format('%I', pg_get_userbyid(c.relowner)) as owner
    from pg_class as c
    join pg_namespace as n on n.oid = c.relnamespace
    where c.relname = 'schema_facts'
      -- Where no search_path leads to it: whoever has a schema of its own, without tables as yet, is no guest in another's.
      and case
          when to_regclass('schema_facts') is null then coalesce(current_schema(), 'public') = 'public'
          else c.oid = to_regclass('schema_facts')
      end
    limit 1
),
lacking (n, statements) as (
    select 1, format('GRANT USAGE ON SCHEMA %s TO %s;', schema, role)
    from place
    where not has_schema_privilege(oid, 'usage')
    union all
    select 2, format('ALTER ROLE %I IN DATABASE %I SET search_path = %s;', session_user, current_database(), schema)
    from place
    where has_schema_privilege(oid, 'usage')
      and to_regclass('schema_facts') is null
    union all
    select 3, format(
        'GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA %1$s TO %2$s; '
        'ALTER DEFAULT PRIVILEGES FOR ROLE %3$s GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO %2$s;',
        schema, role, owner
    )
    from place
    where exists (
        select
        from pg_class as c
        cross join unnest(array['select', 'insert', 'update', 'delete']) as privilege
        where c.relnamespace = place.oid
          and c.relname = any($1::text[])
          -- What migrations write is read alone.
          and (c.relname not in ('schema_facts', '__diesel_schema_migrations') or privilege = 'select')
          and not has_table_privilege(c.oid, privilege)
    )
    union all
    select 4, format(
        'GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA %1$s TO %2$s; '
        'ALTER DEFAULT PRIVILEGES FOR ROLE %3$s GRANT EXECUTE ON FUNCTIONS TO %2$s;',
        schema, role, owner
    )
    from place
    where exists (
        select
        from pg_proc as f
        where f.pronamespace = place.oid
          and f.proname in ('api_now', 'api_uuid')
          and not has_function_privilege(f.oid, 'execute')
    )
    union all
    -- Row security hides all rows, and no statement fails.
    select 5, string_agg(
        format('CREATE POLICY %1$s ON %2$s TO %1$s USING (true);', role, c.oid::regclass), ' ' order by c.relname
    )
    from place
    join pg_class as c on c.relnamespace = place.oid
    where c.relname = any($1::text[])
      and row_security_active(c.oid)
      and exists (
          select
          -- Of the migrations, rows are only read.
          from unnest(case when c.relname = '__diesel_schema_migrations' then array['r'] else array['r', 'a', 'w', 'd'] end) as command
          where not exists (
              select
              from pg_policy as p
              cross join unnest(p.polroles) as grantee
              where p.polrelid = c.oid
                and p.polpermissive
                and p.polcmd::text in ('*', command)
                -- 0 stands for PUBLIC.
                and (grantee = 0 or pg_has_role(grantee, 'usage'))
          )
      )
)
select string_agg(statements, ' ' order by n) as statements
from lacking
