delete from schema_facts where version = '0023';
alter table subscriptions drop column none_due_before;
