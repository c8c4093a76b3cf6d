-- Takes no lock that anybody waits for. Reads the last thousand rows of `changes`.

-- The cluster that numbers the transactions of the feed: its cursors name it.
insert into instance (key, value) select 'feed', system_identifier from pg_control_system();

-- The database in which the rows were written. A dump of an older release that was restored elsewhere has none: a row of its feed was
-- written here by another transaction than it names.
insert into instance (key, value)
    select 'database', s.system_identifier || '/' || d.oid
    from pg_control_system() s
        cross join pg_database d
    where d.datname = current_database()
        and not exists (
            select from (select xid, xmin as written_by from changes order by xid desc limit 1000) last
            where last.xid % 4294967296 <> last.written_by::text::bigint
        );

insert into schema_facts values ('0025', '0.1.0');
