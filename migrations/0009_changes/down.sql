delete from schema_facts where version = '0009';
drop table changes;
