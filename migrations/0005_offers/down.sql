delete from schema_facts where version = '0005';
drop table offers;
