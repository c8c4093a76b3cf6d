delete from schema_facts where version = '0002';
drop table applications;
drop table sellers;
