delete from schema_facts where version = '0026';
alter table audit_log drop column changes;
