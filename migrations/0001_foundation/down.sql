drop table instance;
drop table schema_facts;
drop function api_now();
