delete from schema_facts where version = '0037';
alter table seller_orders drop column items_length;
