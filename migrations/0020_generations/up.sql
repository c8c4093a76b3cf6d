-- Locks each of four tables for the moment of adding a column with a constant default; no row is read or written.
set local lock_timeout = '2s';

-- Revoking all tokens of an application or a seller, and ending all sessions of an account, raises one number. A family or session is
-- alive while it has the number that it was made under, so one row decides, however many there are.
alter table applications add column token_generation integer not null default 0;
alter table sellers
    add column token_generation integer not null default 0,
    add column session_generation integer not null default 0;
alter table families
    add column application_generation integer not null default 0,
    add column seller_generation integer not null default 0;
alter table sessions add column generation integer not null default 0;

-- What is left to do in small batches after a decision that holds at once: for an application, an account, or, with both, a connection. A
-- queue like `mails`; what there is to do is read from the rows themselves.
create table follow_ups (
    id bigint generated always as identity primary key,
    due_at timestamptz not null default api_now(),
    seller_id uuid,
    client_id uuid,
    constraint follow_ups_subject_check check (num_nonnulls(seller_id, client_id) > 0)
);

insert into schema_facts values ('0020', '0.1.0');
