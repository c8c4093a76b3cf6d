delete from schema_facts where version = '0034';
delete from instance where key = 'journal';
drop table journal;
drop table journals;
