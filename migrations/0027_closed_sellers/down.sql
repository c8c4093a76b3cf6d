delete from schema_facts where version = '0027';
drop index sellers_closed_idx;
