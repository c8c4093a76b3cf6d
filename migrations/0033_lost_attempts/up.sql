-- Locks `deliveries` for the moment of adding a nullable column with a check; the check is for new rows alone.
set local lock_timeout = '2s';

-- How many attempts had ended when the last one was lost with its worker that did not count. That loss was the last attempt as long as
-- `attempt` is the same.
alter table deliveries add column lost_after smallint;
alter table deliveries add constraint deliveries_lost_after_check check (lost_after between 0 and 5) not valid;

insert into schema_facts values ('0033', '0.1.0');
