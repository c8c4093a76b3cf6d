delete from schema_facts where version = '0030';
alter table offers drop column external_id;
