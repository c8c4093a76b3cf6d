-- Takes no lock that anybody waits for: everything here is new.

-- Parcels on their way whose carriers are asked. A row begins with the shipment and ends with the delivery, or when nobody
-- asks any more. Apart from the orders, because it is written at every question and an order has many indexes.
--
-- A lease moves due_at to its own end, so a worker that dies is followed by the next one without any clearing.
create table parcels (
    seller_id uuid not null,
    order_id uuid not null,
    shipped_at timestamptz not null,
    due_at timestamptz not null,
    -- Of the worker that holds the lease.
    fence uuid,
    carrier text not null check (carrier in ('inpost', 'dhl', 'poczta_polska', 'dpd', 'gls', 'ups', 'fedex')),
    tracking_number text not null check (tracking_number ~ '^[A-Za-z0-9-]{4,64}$'),
    primary key (seller_id, order_id),
    foreign key (seller_id, order_id) references seller_orders (seller_id, order_id)
);
-- Each carrier has a queue of its own, so that a slow one holds nobody else up.
create index parcels_due_idx on parcels (carrier, due_at);

insert into schema_facts values ('0007', '0.1.0');
