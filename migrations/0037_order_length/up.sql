-- Locks `seller_orders` for a moment: the new column is added to the catalogue alone.
set local lock_timeout = '2s';

-- The bytes of `items`, by which pages are bounded; null in rows of programs before.
alter table seller_orders add column items_length integer;

insert into schema_facts values ('0037', '0.1.0');
