-- Takes no lock that anybody waits for: everything here is new.

create table sellers (
    id uuid primary key,
    seller_no integer not null generated always as identity,
    name text not null check (char_length(name) between 1 and 200),
    email text not null check (char_length(email) between 3 and 254),
    password_hash text,
    created_at timestamptz not null,
    closed_at timestamptz,
    constraint sellers_seller_no_key unique (seller_no)
);
create unique index sellers_email_key on sellers (lower(email));

create table applications (
    client_id uuid primary key,
    owner_id uuid not null references sellers (id),
    name text not null check (char_length(name) between 3 and 40),
    description text check (char_length(description) between 1 and 2000),
    documentation_url text check (char_length(documentation_url) <= 2048),
    purpose text not null check (purpose in ('own_use', 'for_other_sellers', 'other')),
    client_type text not null check (client_type in ('confidential', 'public')),
    redirect_uris text[] not null
        check (cardinality(redirect_uris) <= 20 and array_position(redirect_uris, null) is null),
    scopes integer not null check (scopes >= 0),
    status text not null check (status in ('pending', 'active', 'suspended')),
    rate_limit integer check (rate_limit between 1 and 10000000),
    built_in boolean not null,
    secret_hash bytea check (octet_length(secret_hash) = 32),
    created_at timestamptz not null,
    updated_at timestamptz not null,
    deleted_at timestamptz,
    constraint applications_secret_check check ((secret_hash is not null) = (client_type = 'confidential')),
    constraint applications_built_in_check
        check (not built_in or (client_type = 'public' and deleted_at is null)),
    constraint applications_documentation_check check (built_in or documentation_url is not null)
);
-- A deleted application's name stays taken.
create unique index applications_name_key on applications (lower(name)) where not built_in;
create unique index applications_built_in_key on applications (owner_id) where built_in;
create index applications_owner_id_idx on applications (owner_id);

insert into schema_facts values ('0002', '0.1.0');
