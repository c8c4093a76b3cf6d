delete from schema_facts where version = '0038';
create index families_client_id_idx on families (client_id);
create index families_seller_id_idx on families (seller_id);
drop index families_unmarked_by_seller_id_idx;
drop index families_unmarked_by_client_id_idx;
