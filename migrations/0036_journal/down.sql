delete from schema_facts where version = '0036';
drop table journal;
drop table journals;
