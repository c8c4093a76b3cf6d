-- Takes no lock that anybody waits for: everything here is new.

-- Links by mail that a newer one of their kind has followed, which is in `links`. They work until one of the account is used.
create table earlier_links (
    hash bytea primary key check (octet_length(hash) = 32),
    seller_id uuid not null references sellers (id),
    kind text not null check (kind in ('invitation', 'password-reset')),
    expires_at timestamptz not null
);
create index earlier_links_seller_id_idx on earlier_links (seller_id);
create index earlier_links_expires_at_idx on earlier_links (expires_at);

insert into schema_facts values ('0022', '0.1.0');
