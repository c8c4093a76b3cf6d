delete from schema_facts where version = '0038';
drop function newest_versions(uuid);
drop function newest_version(uuid, uuid);
