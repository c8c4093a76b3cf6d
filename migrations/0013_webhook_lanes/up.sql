-- No program before this one makes subscriptions, so both tables are empty, or nearly: everything here takes a moment.
set local lock_timeout = '2s';

alter table subscriptions
    -- Its last attempts failed: such lanes wait in a queue of their own, and get less.
    add column failing boolean not null default false,
    -- The deliveries that the worker holding the lane was given. Those of them that still wait when the lease has run out
    -- were lost with it.
    add column in_hand uuid[] not null default '{}',
    set (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 500);
drop index subscriptions_lanes_idx;
create index subscriptions_lanes_idx on subscriptions (wake_at) where wake_at is not null and not failing;
create index subscriptions_failing_lanes_idx on subscriptions (wake_at) where wake_at is not null and failing;

alter table deliveries
    -- How often it was lost with its worker without that having counted as an attempt.
    add column lost smallint not null default 0 check (lost >= 0),
    -- Why there was no answer to the last attempt; null where there was one.
    add column failure text check (char_length(failure) between 1 and 300),
    add constraint deliveries_outcome_check
        check (num_nonnulls(response_status, failure) <= 1 and (attempt > 0 or duration_ms is null)) not valid,
    set (autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.05);
-- Ids rise with time: the primary key leads to the newest of a lane and to what is old in it.
drop index deliveries_done_idx;
-- For those whose last attempt failed.
create index deliveries_failed_idx on deliveries (seller_id, subscription_id, id) where attempt > 0 and delivered_at is null;

-- How many subscriptions a seller's applications have, inactive ones included.
create table subscription_quota (
    seller_id uuid not null,
    client_id uuid not null,
    used integer not null check (used between 0 and 20),
    primary key (seller_id, client_id)
) with (fillfactor = 80);
create index subscription_quota_client_idx on subscription_quota (client_id);
insert into subscription_quota (seller_id, client_id, used)
    select seller_id, client_id, least(count(*), 20) from subscriptions group by seller_id, client_id;

insert into schema_facts values ('0013', '0.1.0');
