-- Takes no lock that anybody waits for: everything here is new.

-- How often a subject was counted in a clock minute. The window comes first in the key: rows that are counted now lie
-- together, and old windows are cleared as one range, without an index of their own.
--
-- A row is updated many times a second for one minute. Room on each page keeps these updates off the index (HOT), and
-- vacuum comes soon, since a row's dead versions are read past at every count.
create table rate_windows (
    window_start timestamptz not null,
    kind smallint not null,
    subject uuid not null,
    used bigint not null check (used > 0),
    primary key (window_start, kind, subject)
) with (
    fillfactor = 20,
    autovacuum_vacuum_threshold = 200,
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_cost_delay = 0,
    autovacuum_analyze_threshold = 5000,
    autovacuum_analyze_scale_factor = 0
);

insert into schema_facts values ('0004', '0.1.0');
