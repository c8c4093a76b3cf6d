delete from schema_facts where version = '0032';
alter table deliveries drop column lost_after;
