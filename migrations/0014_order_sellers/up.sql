-- A nullable column without a default: the lock on orders is held for a moment.
set local lock_timeout = '2s';

-- Whose parts the order has, sorted. Null in orders from before this column, until the tables are distributed: a single
-- server finds the parts by their index.
alter table orders add column sellers uuid[];

insert into schema_facts values ('0014', '0.1.0');
