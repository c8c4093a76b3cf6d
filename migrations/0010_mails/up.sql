-- Takes no lock that anybody waits for: everything here is new.

-- Mails to buyers. A lease moves due_at to its own end, so a worker that dies is followed by the next one without any
-- clearing. What was sent, or given up, is due no more.
create table mails (
    id uuid primary key,
    order_id uuid not null,
    created_at timestamptz not null default api_now(),
    due_at timestamptz default api_now(),
    sent_at timestamptz,
    dead_at timestamptz,
    -- Of the worker that holds the lease.
    fence uuid,
    attempts integer not null default 0 check (attempts >= 0),
    order_number text not null check (order_number ~ '^[A-Z0-9-]{1,40}$'),
    recipient text not null,
    recipient_name text,
    carrier text not null
        check (carrier in ('inpost', 'dhl', 'poczta_polska', 'dpd', 'gls', 'ups', 'fedex', 'other')),
    tracking_number text not null check (tracking_number ~ '^[A-Za-z0-9-]{4,64}$'),
    constraint mails_fate_check check (num_nonnulls(due_at, sent_at, dead_at) = 1),
    constraint mails_lease_check check (fence is null or due_at is not null)
);
create index mails_due_idx on mails (due_at) where due_at is not null;
-- For erasing a buyer.
create index mails_order_idx on mails (order_id);
-- For clearing what is done.
create index mails_done_idx on mails (coalesce(sent_at, dead_at)) where due_at is null;

insert into schema_facts values ('0010', '0.1.0');
