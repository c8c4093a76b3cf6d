-- Takes no lock that anybody waits for. Restores the function and its rights as they were.
delete from schema_facts where version = '0019';
drop function analyze_grown_tables();
create function analyze_grown_tables() returns void
    language plpgsql security definer set search_path from current
    as $$
declare
    grown text;
begin
    for grown in
        select oid::regclass from pg_class
        where relkind = 'r'
            and relnamespace = (select pronamespace from pg_proc where oid = 'analyze_grown_tables()'::regprocedure)
            and pg_has_role(relowner, 'usage')
            and pg_relation_size(oid) / current_setting('block_size')::bigint between 4 * greatest(relpages, 1) and 10000
    loop
        execute 'analyze (skip_locked) ' || grown;
    end loop;
end $$;
