delete from schema_facts where version = '0025';
delete from instance where key in ('database', 'feed');
