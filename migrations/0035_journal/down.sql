delete from schema_facts where version = '0035';
delete from instance where key = 'journal';
drop table journal;
drop table journals;
