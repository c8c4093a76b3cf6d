delete from schema_facts where version = '0006';
drop table seller_orders;
drop table orders;
