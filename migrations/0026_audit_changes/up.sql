-- Locks `audit_log` for the moment of adding a nullable column.
set local lock_timeout = '2s';

-- What a change made of each field: `{"rate_limit": {"from": null, "to": 1200}}`. Json and not jsonb: it is read as it was written.
alter table audit_log add column changes json;

insert into schema_facts values ('0026', '0.1.0');
