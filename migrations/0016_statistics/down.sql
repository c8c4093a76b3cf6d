delete from schema_facts where version = '0016';
drop function analyze_grown_tables();
