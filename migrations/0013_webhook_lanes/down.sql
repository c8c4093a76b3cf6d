delete from schema_facts where version = '0013';
drop table subscription_quota;
drop index deliveries_failed_idx;
create index deliveries_done_idx on deliveries (created_at) where due_at is null;
alter table deliveries
    reset (autovacuum_vacuum_scale_factor, autovacuum_analyze_scale_factor),
    drop constraint deliveries_outcome_check,
    drop column failure,
    drop column lost;
drop index subscriptions_failing_lanes_idx;
drop index subscriptions_lanes_idx;
create index subscriptions_lanes_idx on subscriptions (wake_at) where wake_at is not null;
alter table subscriptions
    reset (autovacuum_vacuum_scale_factor, autovacuum_vacuum_threshold),
    drop column in_hand,
    drop column failing;
