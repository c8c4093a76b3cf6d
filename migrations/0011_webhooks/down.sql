delete from schema_facts where version = '0011';
drop table deliveries;
drop table subscriptions;
drop function api_uuid(timestamptz);
