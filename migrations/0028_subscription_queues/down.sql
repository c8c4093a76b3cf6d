delete from schema_facts where version = '0028';
drop view subscription_queues;
