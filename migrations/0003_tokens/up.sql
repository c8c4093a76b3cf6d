-- Takes no lock that anybody waits for: everything here is new.

create table families (
    id uuid primary key,
    seller_id uuid not null references sellers (id),
    client_id uuid not null references applications (client_id),
    kind text not null check (kind in ('client_credentials', 'personal')),
    scopes integer not null check (scopes >= 0),
    created_at timestamptz not null default api_now(),
    revoked_at timestamptz
);
create index families_seller_id_idx on families (seller_id);
create index families_client_id_idx on families (client_id);
-- For clearing what was revoked.
create index families_revoked_at_idx on families (revoked_at) where revoked_at is not null;

create table access_tokens (
    family_id uuid not null references families (id) on delete cascade,
    hash bytea not null check (octet_length(hash) = 32),
    created_at timestamptz not null default api_now(),
    -- Null only for a personal token that does not expire.
    expires_at timestamptz,
    revoked_at timestamptz,
    primary key (family_id, hash)
);
-- For clearing what has expired.
create index access_tokens_expires_at_idx on access_tokens (expires_at) where expires_at is not null;

-- What a seller sees of a personal token; the id is its family's. No foreign key to the family, which lies elsewhere
-- where tables are distributed.
create table personal_tokens (
    seller_id uuid not null references sellers (id),
    id uuid not null,
    name text not null check (char_length(name) between 1 and 100),
    created_at timestamptz not null default api_now(),
    primary key (seller_id, id)
);

create table operator_tokens (
    id uuid primary key,
    name text not null check (char_length(name) between 1 and 100),
    hash bytea not null check (octet_length(hash) = 32),
    created_at timestamptz not null default api_now(),
    revoked_at timestamptz,
    constraint operator_tokens_hash_key unique (hash)
);

insert into schema_facts values ('0003', '0.1.0');
