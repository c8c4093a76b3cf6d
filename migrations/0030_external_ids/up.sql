-- Locks `offers` for the moment of adding a nullable column; the check is for new rows alone. It has a statement of its own, since Citus
-- takes no other change of a distributed table beside a constraint.
set local lock_timeout = '2s';

-- The seller's own name for an offer.
alter table offers add column external_id text;
alter table offers add constraint offers_external_id_check check (char_length(external_id) between 1 and 100) not valid;

insert into schema_facts values ('0030', '0.1.0');
