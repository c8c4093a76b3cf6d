-- A commit over a worker and plain tables of the coordinator is not atomic, unless the transaction has also touched a table of the
-- coordinator that Citus manages: `distributed_writes`. It stays empty; its existence marks a distributed database.
lock table offers, seller_orders, orders, parcels in access exclusive mode;

-- No foreign key leads from or to a plain table.
alter table offers drop constraint offers_seller_id_fkey;
alter table seller_orders drop constraint seller_orders_seller_id_fkey;
alter table parcels drop constraint parcels_seller_id_order_id_fkey;

update orders o
set sellers = (select array_agg(p.seller_id order by p.seller_id) from seller_orders p where p.order_id = o.order_id)
where sellers is null;

create table distributed_writes (id smallint primary key);
select citus_add_local_table_to_metadata('distributed_writes');
select create_distributed_table('offers', 'seller_id');
select create_distributed_table('seller_orders', 'seller_id', colocate_with => 'offers');
select truncate_local_data_after_distributing_table('offers');
select truncate_local_data_after_distributing_table('seller_orders');
commit;
