-- Locks `seller_orders` for the moment of adding nullable columns; the check is for new rows alone. It has a statement of its own, since
-- Citus takes no other change of a distributed table beside a constraint.
set local lock_timeout = '2s';

-- Where the buyer collects the order, and the invoice asked for: the buyer's data, kept and erased like `buyer`.
alter table seller_orders add column delivery_point json, add column invoice json;
alter table seller_orders add constraint seller_orders_fields_check
    check (json_typeof(delivery_point) = 'object' and json_typeof(invoice) = 'object') not valid;

insert into schema_facts values ('0034', '0.1.0');
