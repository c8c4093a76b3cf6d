-- Changes `families` and `access_tokens` without looking at their rows: new columns are null, and new checks are not
-- validated, since every row there has passed a narrower one. Each is locked for that moment alone.
set local lock_timeout = '2s';

alter table families
    add column generation integer,
    drop constraint families_kind_check,
    add constraint families_kind_check
        check (kind in ('client_credentials', 'personal', 'authorization_code')) not valid,
    -- A family that was consented to hangs on a connection, and lives as long as that has this generation.
    add constraint families_generation_check
        check ((kind = 'authorization_code') = (generation is not null)) not valid;

alter table access_tokens
    -- Of a token that came with a refresh token; null = the family's.
    add column scopes integer,
    add constraint access_tokens_scopes_check check (scopes >= 0) not valid;

-- Which applications a seller has let in. Ending it raises the generation.
create table connections (
    client_id uuid not null references applications (client_id),
    seller_id uuid not null references sellers (id),
    generation integer not null default 1 check (generation > 0),
    connected_at timestamptz not null,
    disconnected_at timestamptz,
    primary key (client_id, seller_id)
);
create index connections_seller_id_idx on connections (seller_id);

create table authorization_codes (
    family_id uuid not null references families (id) on delete cascade,
    hash bytea not null check (octet_length(hash) = 32),
    created_at timestamptz not null default api_now(),
    expires_at timestamptz not null,
    used_at timestamptz,
    redirect_uri text not null check (char_length(redirect_uri) between 1 and 2048),
    code_challenge text not null check (code_challenge ~ '^[A-Za-z0-9_-]{43}$'),
    primary key (family_id, hash)
);
-- For clearing what has expired.
create index authorization_codes_expires_at_idx on authorization_codes (expires_at);

-- A used one stays for 90 days, its new `expires_at`: that is how its second use is known.
create table refresh_tokens (
    family_id uuid not null references families (id) on delete cascade,
    hash bytea not null check (octet_length(hash) = 32),
    created_at timestamptz not null default api_now(),
    expires_at timestamptz not null,
    used_at timestamptz,
    scopes integer not null check (scopes > 0),
    primary key (family_id, hash)
);
-- For clearing what has expired.
create index refresh_tokens_expires_at_idx on refresh_tokens (expires_at);

-- Screens of consent. No foreign key to the seller: a row lives for an hour.
create table consents (
    id uuid primary key,
    seller_id uuid not null,
    session_hash bytea not null check (octet_length(session_hash) = 32),
    expires_at timestamptz not null,
    decided_at timestamptz
);
-- For clearing what has expired.
create index consents_expires_at_idx on consents (expires_at);

create table sessions (
    hash bytea primary key check (octet_length(hash) = 32),
    seller_id uuid not null references sellers (id),
    created_at timestamptz not null,
    seen_at timestamptz not null,
    constraint sessions_seen_check check (seen_at >= created_at)
);
create index sessions_seller_id_idx on sessions (seller_id);
-- For clearing what has ended.
create index sessions_seen_at_idx on sessions (seen_at);

-- One-time links. A new one of an account takes the place of the one of its kind before it.
create table links (
    hash bytea primary key check (octet_length(hash) = 32),
    seller_id uuid not null references sellers (id),
    kind text not null check (kind in ('invitation', 'password-reset', 'sign-in')),
    expires_at timestamptz not null,
    constraint links_seller_kind_key unique (seller_id, kind)
);
-- For clearing what has expired.
create index links_expires_at_idx on links (expires_at);

-- What is shown once, by the number of the form that asked for it. The row outlives what was in it, so that a form that is
-- sent twice is known.
create table flashes (
    session_hash bytea not null check (octet_length(session_hash) = 32),
    form uuid not null,
    created_at timestamptz not null default api_now(),
    sealed bytea,
    primary key (session_hash, form)
);
-- For clearing what is old, and what nobody came for.
create index flashes_created_at_idx on flashes (created_at);
create index flashes_kept_idx on flashes (created_at) where sealed is not null;

-- Mails about accounts, a queue like `mails`. The link is sealed, and goes once the mail is due no more.
create table account_mails (
    id uuid primary key,
    seller_id uuid not null references sellers (id),
    created_at timestamptz not null default api_now(),
    due_at timestamptz default api_now(),
    sent_at timestamptz,
    dead_at timestamptz,
    -- Of the worker that holds the lease.
    fence uuid,
    attempts integer not null default 0 check (attempts >= 0),
    kind text not null check (kind in ('invitation', 'password-reset')),
    recipient text not null,
    recipient_name text not null,
    url bytea,
    -- When the link can no longer be used.
    expires_at timestamptz not null,
    constraint account_mails_fate_check check (num_nonnulls(due_at, sent_at, dead_at) = 1),
    constraint account_mails_lease_check check (fence is null or due_at is not null),
    constraint account_mails_url_check check ((url is null) = (due_at is null))
);
create index account_mails_seller_id_idx on account_mails (seller_id);
create index account_mails_due_idx on account_mails (due_at) where due_at is not null;
-- For clearing what is done.
create index account_mails_done_idx on account_mails (coalesce(sent_at, dead_at)) where due_at is null;

-- Who did what. The ids are UUIDv7 and rise with time, to a fraction of a millisecond.
create table audit_log (
    id uuid primary key,
    at timestamptz not null,
    actor_id uuid,
    actor text not null check (actor in ('seller', 'operator', 'command_line')),
    address text check (char_length(address) between 2 and 45),
    action text not null check (action ~ '^[a-z_]+\.[a-z_]+$' and char_length(action) <= 60),
    subject text not null check (char_length(subject) <= 200),
    constraint audit_log_actor_id_check check ((actor = 'command_line') = (actor_id is null))
);
create index audit_log_actor_idx on audit_log (actor_id, id);
create index audit_log_subject_idx on audit_log (subject, id);

-- Calls of an application for a seller, by hour and status. No foreign keys: they would cost more than the counts.
create table api_usage (
    seller_id uuid not null,
    client_id uuid not null,
    hour timestamptz not null,
    last_at timestamptz not null,
    calls bigint not null check (calls > 0),
    status smallint not null check (status between 100 and 999),
    primary key (seller_id, client_id, hour, status)
) with (fillfactor = 80);
-- For what an application's owner sees.
create index api_usage_client_idx on api_usage (client_id, hour);
-- For clearing what is old.
create index api_usage_hour_idx on api_usage (hour);

insert into schema_facts values ('0012', '0.1.0');
