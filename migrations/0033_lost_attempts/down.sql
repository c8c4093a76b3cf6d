delete from schema_facts where version = '0033';
alter table deliveries drop column lost_after;
