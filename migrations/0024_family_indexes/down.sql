delete from schema_facts where version = '0024';
create index families_consented_idx on families (seller_id, client_id, generation) where generation is not null;
drop index refresh_tokens_unused_idx;
drop index families_connected_idx;
