delete from schema_facts where version = '0038';
create index families_client_id_idx on families (client_id);
create index families_seller_id_idx on families (seller_id);
drop index families_alive_of_seller_idx;
drop index families_alive_of_application_idx;
