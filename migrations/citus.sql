-- Distributes an installation over the nodes of a Citus cluster. `seller-api migrate` does not run this: it is run once, by hand,
-- on the coordinator of a cluster of Citus 12 or newer, after `migrate` and before the first process starts:
--
--   psql --single-transaction --set=ON_ERROR_STOP=1 --file=migrations/citus.sql "$DATABASE_URL"
--
-- Processes then run with `database.gathering = "router"`. docs/OPERATIONS.md, "Scale out with Citus", tells what else that takes and
-- what has been tried. The classes are those of README.md.

-- Numbers of sellers are given out by an identity of four bytes, which no table may have that is on every node. A sequence goes on with
-- them.
alter table sellers alter column seller_no drop identity;
create sequence sellers_seller_no owned by sellers.seller_no;
select setval('sellers_seller_no', coalesce(max(seller_no), 0) + 1, false) from sellers;
alter table sellers alter column seller_no set default nextval('sellers_seller_no');

-- Small, or needed beside rows of any seller: a copy on every node, which joins and foreign keys can use. Those that others refer to
-- come first.
select create_reference_table('sellers');
select create_reference_table('applications');
select create_reference_table('connections');

-- A seller's rows lie together, on one node, whatever the table.
select create_distributed_table('offers', 'seller_id');
select create_distributed_table('seller_orders', 'seller_id', colocate_with => 'offers');
select create_distributed_table('parcels', 'seller_id', colocate_with => 'offers');
select create_distributed_table('idempotency', 'seller_id', colocate_with => 'offers');
select create_distributed_table('subscriptions', 'seller_id', colocate_with => 'offers');
select create_distributed_table('subscription_quota', 'seller_id', colocate_with => 'offers');
select create_distributed_table('deliveries', 'seller_id', colocate_with => 'offers');
select create_distributed_table('personal_tokens', 'seller_id', colocate_with => 'offers');
select create_distributed_table('api_usage', 'seller_id', colocate_with => 'offers');

-- What belongs to a credential lies together. A token carries its family's id, so that a look-up goes to one node without knowing
-- the seller.
select create_distributed_table('families', 'id', colocate_with => 'none');
select create_distributed_table('access_tokens', 'family_id', colocate_with => 'families');
select create_distributed_table('authorization_codes', 'family_id', colocate_with => 'families');
select create_distributed_table('refresh_tokens', 'family_id', colocate_with => 'families');

-- All others stay on the coordinator as they are: what is unique over the whole service (`orders`), queues of mails, the panel's
-- sessions, screens and links, counters of rates, and what is the installation's own. So does `changes`: the feed is ordered by the
-- transaction ids of one server, and those of several cannot be compared.
