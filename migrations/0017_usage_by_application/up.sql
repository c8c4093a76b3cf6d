-- Takes no lock that anybody waits for: the tables are new. Reads `api_usage` once: about a second for each million of its rows.

-- Calls of an application by hour and status, over all sellers: what its owner sees. It replaces `api_usage`, which had these rows for each
-- seller; replicas of the previous version go on writing there. No foreign keys: they would cost more than the counts.
create table application_usage (
    client_id uuid not null,
    hour timestamptz not null,
    calls bigint not null check (calls > 0),
    status smallint not null check (status between 100 and 999),
    primary key (client_id, hour, status)
) with (fillfactor = 80);
-- For clearing what is old.
create index application_usage_hour_idx on application_usage (hour);

-- When an application was last used for a seller, to the minute.
create table last_uses (
    seller_id uuid not null,
    client_id uuid not null,
    used_at timestamptz not null,
    primary key (seller_id, client_id)
) with (fillfactor = 80);

insert into application_usage (client_id, hour, calls, status)
select client_id, hour, sum(calls), status from api_usage group by client_id, hour, status;
insert into last_uses (seller_id, client_id, used_at)
select seller_id, client_id, max(last_at) from api_usage group by seller_id, client_id;

insert into schema_facts values ('0017', '0.1.0');
