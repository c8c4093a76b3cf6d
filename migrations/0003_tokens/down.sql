delete from schema_facts where version = '0003';
drop table operator_tokens;
drop table personal_tokens;
drop table access_tokens;
drop table families;
