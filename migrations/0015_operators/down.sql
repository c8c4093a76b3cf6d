delete from schema_facts where version = '0015';
alter table audit_log drop column os_user;
alter table operator_tokens
    drop column read_only,
    drop column expires_at,
    drop column used_at;
