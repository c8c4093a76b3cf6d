-- name: FACTS
select not current_setting('transaction_read_only')::boolean as takes_writes,
    current_setting('server_encoding') as encoding, current_setting('lc_messages') as locale,
    to_regclass('__diesel_schema_migrations') is not null and to_regclass('schema_facts') is not null as is_there,
    to_regclass('distributed_writes') is not null as is_distributed

-- name: APPLIED
select m.version, f.oldest_binary
from __diesel_schema_migrations m
left join schema_facts f on f.version = m.version

-- name: GRANTS
-- The statements that let the present role serve, now and after later migrations.
select format(
    'GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA %1$s TO %2$I; '
    'ALTER DEFAULT PRIVILEGES FOR ROLE %3$I GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO %2$I;',
    c.relnamespace::regnamespace, current_user, pg_get_userbyid(c.relowner)
) as statements
from pg_class c
where c.oid = 'schema_facts'::regclass
