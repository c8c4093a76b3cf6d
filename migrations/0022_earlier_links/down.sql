delete from schema_facts where version = '0022';
drop table earlier_links;
