delete from schema_facts where version = '0004';
drop table rate_windows;
