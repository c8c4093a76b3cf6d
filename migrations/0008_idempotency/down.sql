delete from schema_facts where version = '0008';
drop table idempotency;
