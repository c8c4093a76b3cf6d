-- Takes no lock that anybody waits for: everything here is new.

-- How far each seller's journal goes. A transaction locks the row after all else, from its events to its commit: so the order of the
-- numbers is that of the commits, and no number appears behind one that was seen.
create table journals (
    seller_id uuid primary key,
    last_number bigint not null check (last_number > 0),
    -- Of the last event. It never goes back, whatever the clock does.
    recorded_at timestamptz not null
) with (fillfactor = 50);

-- The events, numbered per seller without gaps.
create table journal (
    seller_id uuid not null,
    number bigint not null,
    id uuid not null,
    event text not null,
    occurred_at timestamptz not null,
    recorded_at timestamptz not null,
    order_id uuid,
    order_number text,
    offer_id uuid,
    primary key (seller_id, number),
    constraint journal_subject_check check (num_nonnulls(order_id, offer_id) = 1 and num_nonnulls(order_id, order_number) in (0, 2))
    -- Rows go from the front, where every page begins to read.
) with (autovacuum_vacuum_scale_factor = 0.01);
create index journal_since_idx on journal (seller_id, recorded_at);
create index journal_expiry_idx on journal (recorded_at);

insert into schema_facts values ('0035', '0.1.0');
