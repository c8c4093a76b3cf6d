-- Takes no lock that anybody waits for: everything here is new.

-- The directory of all orders: whose number is whose, over all sellers. A seller's request never reads it.
create table orders (
    order_id uuid primary key,
    number text not null check (number ~ '^[A-Z0-9-]{1,40}$'),
    is_test boolean not null,
    -- When the buyer placed it.
    created_at timestamptz not null,
    -- When the buyer was erased for the order's age.
    buyer_erased_at timestamptz,
    constraint orders_number_key unique (number)
);
-- For finding whose buyer is to be erased next.
create index orders_buyer_idx on orders (created_at) where buyer_erased_at is null;

-- What one seller sees of an order. No foreign key to the directory, which lies elsewhere where tables are distributed.
--
-- Items, buyer and address are written once, read whole and never searched. They are json and not jsonb, which keeps them
-- as the text that goes out: a page of 50 orders costs half as much.
create table seller_orders (
    seller_id uuid not null references sellers (id),
    order_id uuid not null,
    placed_at timestamptz not null,
    updated_at timestamptz not null,
    paid_at timestamptz,
    shipped_at timestamptz,
    delivered_at timestamptz,
    cancelled_at timestamptz,
    shipment_id uuid,
    shipment_at timestamptz,
    is_test boolean not null,
    several_sellers boolean not null,
    delivered_already boolean,
    buyer_notified boolean,
    status text not null check (status in ('pending', 'processing', 'shipped', 'delivered', 'cancelled')),
    number text not null check (number ~ '^[A-Z0-9-]{1,40}$'),
    carrier text
        check (carrier in ('inpost', 'dhl', 'poczta_polska', 'dpd', 'gls', 'ups', 'fedex', 'other')),
    tracking_number text check (tracking_number ~ '^[A-Za-z0-9-]{4,64}$'),
    tracking_status text
        check (tracking_status in ('registered', 'in_transit', 'out_for_delivery', 'ready_for_pickup', 'delivered',
            'exception', 'returning', 'returned', 'cancelled', 'unknown')),
    payment_method text,
    delivery_method text,
    buyer json check (json_typeof(buyer) = 'object'),
    shipping_address json check (json_typeof(shipping_address) = 'object'),
    items json not null check (json_array_length(items) > 0),
    primary key (seller_id, order_id),
    -- Each status has exactly its instants.
    constraint seller_orders_state_check check (case status
        when 'pending' then num_nonnulls(paid_at, shipped_at, delivered_at, cancelled_at) = 0
        when 'processing' then paid_at is not null and num_nonnulls(shipped_at, delivered_at, cancelled_at) = 0
        when 'shipped' then num_nulls(paid_at, shipped_at) = 0 and num_nonnulls(delivered_at, cancelled_at) = 0
        when 'delivered' then num_nulls(paid_at, shipped_at, delivered_at) = 0 and cancelled_at is null
        else cancelled_at is not null and num_nonnulls(shipped_at, delivered_at) = 0
    end),
    -- Time does not go back. Lists filtered by updated_at rely on the last line.
    constraint seller_orders_times_check check (paid_at >= placed_at and shipped_at >= paid_at
        and delivered_at >= shipped_at and cancelled_at >= coalesce(paid_at, placed_at) and updated_at >= placed_at),
    -- A shipment is whole or not there; whoever is on the way has one.
    constraint seller_orders_shipment_check check (
        num_nulls(shipment_id, shipment_at, carrier, tracking_number, delivered_already, buyer_notified)
            = case when shipment_id is null then 6 else 0 end
        and (shipment_id is not null or (tracking_status is null and status <> 'shipped'))
        and (shipment_id is null or status in ('shipped', 'delivered')))
);
-- Test orders are never listed. A test order of a seller's is found by the keys above and below.
create index seller_orders_newest_idx on seller_orders (seller_id, placed_at desc, order_id desc) where not is_test;
create index seller_orders_newest_by_status_idx
    on seller_orders (seller_id, status, placed_at desc, order_id desc) where not is_test;
create index seller_orders_updated_idx
    on seller_orders (seller_id, updated_at, order_id) include (placed_at, status) where not is_test;
create unique index seller_orders_number_key on seller_orders (seller_id, number);
-- For the marketplace's moves, which concern all parts of an order. By seller too, so that a seller's question answered
-- by this index touches no other seller's row.
create index seller_orders_parts_idx on seller_orders (order_id, seller_id);

insert into schema_facts values ('0006', '0.1.0');
