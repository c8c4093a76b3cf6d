-- Locks `subscriptions` for the moment of adding a nullable column.
set local lock_timeout = '2s';

alter table subscriptions
    -- No delivery that waits is due before this; null if not known. Deliveries that are done leave dead index entries, which a claim would
    -- otherwise read for as long as a snapshot is older than they are.
    add column none_due_before timestamptz;

insert into schema_facts values ('0023', '0.1.0');
