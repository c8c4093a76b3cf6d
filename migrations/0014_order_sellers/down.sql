delete from schema_facts where version = '0014';
alter table orders drop column sellers;
