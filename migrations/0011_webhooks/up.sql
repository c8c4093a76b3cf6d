-- Takes no lock that anybody waits for: everything here is new.

-- A UUIDv7 (RFC 9562 §5.7) of an instant, for rows of which one statement makes as many as it finds reasons for.
create function api_uuid(at timestamptz) returns uuid
    language sql volatile parallel safe
    as $$ select encode(set_bit(set_bit(overlay(uuid_send(gen_random_uuid())
        placing substring(int8send(floor(extract(epoch from at) * 1000)::bigint) from 3) from 1 for 6), 52, 1), 53, 1), 'hex')::uuid $$;

-- Subscriptions. Each is a lane of deliveries: wake_at tells when a worker may take it next, null while nothing waits.
-- No foreign key to the application: a suspended one keeps its subscriptions, and a deleted one's are removed with it.
create table subscriptions (
    seller_id uuid not null references sellers (id),
    id uuid not null,
    client_id uuid not null,
    created_at timestamptz not null,
    wake_at timestamptz,
    -- Of the worker that holds the lane.
    fence uuid,
    -- The generation of the seller's connection with the application when this was made; null without one.
    connection_generation integer,
    active boolean not null,
    leased boolean not null default false,
    url text not null check (char_length(url) between 1 and 2048),
    events text[] not null check (cardinality(events) > 0 and events <@ array['order.created', 'order.paid',
        'order.shipped', 'order.delivered', 'order.cancelled', 'offer.rejected']),
    -- Sealed; the id of the key that sealed it comes with it.
    secret bytea not null,
    primary key (seller_id, id),
    constraint subscriptions_lease_check check (not leased or num_nulls(wake_at, fence) = 0)
) with (fillfactor = 80);
create index subscriptions_lanes_idx on subscriptions (wake_at) where wake_at is not null;
create index subscriptions_client_idx on subscriptions (client_id);

-- Deliveries. No foreign key to the subscription: one that is removed at the same moment must not undo a buyer's order.
create table deliveries (
    seller_id uuid not null,
    subscription_id uuid not null,
    id uuid not null,
    created_at timestamptz not null,
    -- When the next attempt is due; null once it was delivered or the last attempt failed.
    due_at timestamptz,
    delivered_at timestamptz,
    duration_ms integer check (duration_ms >= 0),
    attempt smallint not null default 0 check (attempt between 0 and 6),
    response_status smallint check (response_status between 100 and 999),
    event text not null check (event in ('order.created', 'order.paid', 'order.shipped', 'order.delivered',
        'order.cancelled', 'offer.rejected')),
    -- Signed and sent as it is, at every attempt.
    body bytea not null,
    primary key (seller_id, subscription_id, id),
    constraint deliveries_fate_check
        check ((delivered_at is null or (due_at is null and attempt > 0)) and (due_at is null or attempt < 6))
) with (fillfactor = 80);
-- First attempts never wait behind repeated ones.
create index deliveries_first_idx on deliveries (seller_id, subscription_id, due_at)
    where due_at is not null and attempt = 0;
create index deliveries_repeated_idx on deliveries (seller_id, subscription_id, due_at)
    where due_at is not null and attempt > 0;
-- For clearing what is done.
create index deliveries_done_idx on deliveries (created_at) where due_at is null;

insert into schema_facts values ('0011', '0.1.0');
