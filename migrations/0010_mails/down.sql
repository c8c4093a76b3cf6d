delete from schema_facts where version = '0010';
drop table mails;
