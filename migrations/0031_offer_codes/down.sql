delete from schema_facts where version = '0031';
drop index offers_ean_idx;
drop index offers_external_id_idx;
