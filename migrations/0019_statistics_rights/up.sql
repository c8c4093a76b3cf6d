-- Takes no lock that anybody waits for.

-- `analyze_grown_tables()` runs as the owner, and a caller's temporary objects came first in its search path: whoever could log in could
-- replace what it reads. Now nothing of a caller is on the path, every name is qualified, and only roles that fill tables may call it.
create or replace function analyze_grown_tables() returns void
    language plpgsql security definer set search_path = pg_catalog, pg_temp
    as $$
declare
    grown text;
begin
    for grown in
        select pg_catalog.format('%I.%I', n.nspname, c.relname)
        from pg_catalog.pg_class c
            join pg_catalog.pg_namespace n on n.oid = c.relnamespace
        where c.relkind = 'r'
            -- The schemas in which the owner has this function.
            and n.oid in (
                select p.pronamespace from pg_catalog.pg_proc p
                    join pg_catalog.pg_roles r on r.oid = p.proowner
                where p.proname = 'analyze_grown_tables' and r.rolname = current_user
            )
            and pg_catalog.pg_has_role(c.relowner, 'usage')
            and pg_catalog.pg_relation_size(c.oid) / pg_catalog.current_setting('block_size')::bigint
                between 4 * greatest(c.relpages, 1) and 10000
    loop
        execute 'analyze (skip_locked) ' || grown;
    end loop;
end $$;

revoke execute on function analyze_grown_tables() from public;
-- Roles with a grant of their own; members of them inherit it.
do $$
declare
    grantee pg_catalog.regrole;
begin
    for grantee in
        select distinct r.grantee::pg_catalog.regrole
        from pg_catalog.pg_class c
            cross join pg_catalog.aclexplode(c.relacl) r
        where c.oid = 'offers'::pg_catalog.regclass and r.privilege_type = 'INSERT' and r.grantee <> 0
    loop
        execute pg_catalog.format('grant execute on function analyze_grown_tables() to %s', grantee);
    end loop;
end $$;

insert into schema_facts values ('0019', '0.1.0');
