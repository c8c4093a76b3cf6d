delete from schema_facts where version = '0029';
alter table idempotency drop column etag;
