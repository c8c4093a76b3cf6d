-- Builds an index without a lock that anybody waits for. Each statement is sent alone, so a run that breaks off leaves an invalid index,
-- which the next one drops.

-- Closed accounts whose name and address are not erased yet, for `retention.closed_sellers`.
drop index concurrently if exists sellers_closed_idx;
create index concurrently sellers_closed_idx on sellers (closed_at) where closed_at is not null and email not like '%@erased.invalid';

-- It may be there after a run that broke off.
insert into schema_facts values ('0027', '0.1.0') on conflict do nothing;
