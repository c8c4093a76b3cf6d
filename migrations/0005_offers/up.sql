-- Takes no lock that anybody waits for: everything here is new.

create table offers (
    seller_id uuid not null references sellers (id),
    id uuid not null,
    created_at timestamptz not null,
    updated_at timestamptz not null,
    price_amount bigint check (price_amount between 0 and 9007199254740991),
    stock integer check (stock >= 0),
    status text not null check (status in ('published', 'draft', 'proposed', 'rejected')),
    price_source text check (price_source in ('manual', 'automatic')),
    title text not null check (char_length(title) between 1 and 500),
    handle text not null check (char_length(handle) between 1 and 200),
    ean text check (char_length(ean) <= 500),
    brand text check (char_length(brand) <= 500),
    signature text check (char_length(signature) <= 500),
    thumbnail text check (char_length(thumbnail) <= 2048),
    url text not null check (char_length(url) <= 2048),
    primary key (seller_id, id),
    constraint offers_price_check check ((price_amount is null) = (price_source is null)),
    -- Lists filtered by updated_at rely on it: what was created later than an instant was updated later too.
    constraint offers_updated_check check (updated_at >= created_at)
);
create index offers_newest_idx on offers (seller_id, created_at desc, id desc);
create index offers_newest_by_status_idx on offers (seller_id, status, created_at desc, id desc);
create index offers_updated_idx on offers (seller_id, updated_at, id) include (created_at, status);

insert into schema_facts values ('0005', '0.1.0');
