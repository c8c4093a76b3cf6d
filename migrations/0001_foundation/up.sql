-- Takes no lock that anybody waits for: everything here is new.

-- The one clock of what processes compare. Statements call this and never now() or clock_timestamp(), so that tests can
-- shift time by replacing it.
create function api_now() returns timestamptz
    language sql volatile parallel safe
    as $$ select clock_timestamp() $$;

-- What each applied migration demands of the program.
create table schema_facts (
    version text primary key,
    oldest_binary text not null check (oldest_binary ~ '^[0-9]+\.[0-9]+\.[0-9]+$')
);

-- Marks of this installation as a whole.
create table instance (
    key text primary key,
    value text not null,
    set_at timestamptz not null default api_now()
);

insert into schema_facts values ('0001', '0.1.0');
