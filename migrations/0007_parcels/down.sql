delete from schema_facts where version = '0007';
drop table parcels;
