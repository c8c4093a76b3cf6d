-- Two small tables: each change takes a moment.
set local lock_timeout = '2s';

alter table operator_tokens
    -- When a request last carried it, to the minute.
    add column used_at timestamptz,
    -- Null for never.
    add column expires_at timestamptz,
    -- Whether it reads and changes nothing.
    add column read_only boolean not null default false;

-- Who the operating system says is at the command line.
alter table audit_log add column os_user text check (char_length(os_user) between 1 and 100);

insert into schema_facts values ('0015', '0.1.0');
