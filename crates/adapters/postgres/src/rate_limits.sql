-- name: COUNT_CALLS
-- $1 the limiters and $2 the subjects, each pair once; $3 the number of calls of each; $4 the unit of the windows, hour or minute;
-- $5 whether the commit is asynchronous: a server crash may lose the latest counts, which nothing else depends on.
with clock as materialized (
    select at, date_trunc($4, at, 'UTC') as window_start, mode
    from (
        select api_now() as at, case when $5 then set_config('synchronous_commit', 'off', true) end as mode
    ) as present
),
counted as (
    insert into rate_windows as w (window_start, kind, subject, used)
    select clock.window_start, k.kind, k.subject, k.times
    from unnest((select $1::smallint[]), (select $2::uuid[]), (select $3::bigint[])) as k (kind, subject, times)
    cross join clock
    -- The rows are locked in this order; otherwise two batches with the same subjects could deadlock.
    order by k.kind, k.subject
    on conflict (window_start, kind, subject) do update
    set used = w.used + excluded.used
    returning kind, subject, used
)
select counted.kind, counted.subject, counted.used, clock.window_start, clock.at as counted_at
from counted
cross join clock
