delete from schema_facts where version = '0034';
alter table seller_orders drop column delivery_point, drop column invoice;
