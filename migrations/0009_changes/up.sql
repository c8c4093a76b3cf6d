-- Takes no lock that anybody waits for: everything here is new.

-- The feed of what sellers and carriers changed. Its order is (xid, id). A reader takes the rows of transactions below the
-- oldest one that is still under way, so that no row can appear behind it later; a number that is given out at the insert
-- alone could not promise that.
--
-- Transaction ids belong to one cluster: after a dump was restored into another one, this table has to be emptied.
create table changes (
    seller_id uuid not null,
    id bigint not null generated always as identity,
    xid bigint not null default pg_current_xact_id()::text::bigint,
    at timestamptz not null,
    kind text not null,
    offer_id uuid,
    order_id uuid,
    client_id uuid,
    price_amount bigint check (price_amount between 0 and 9007199254740991),
    stock integer check (stock >= 0),
    status text check (status in ('published', 'draft', 'proposed', 'rejected')),
    primary key (seller_id, id),
    -- Each kind has its topic and its value, and nothing else.
    constraint changes_kind_check check (case kind
        when 'offer.price_changed' then num_nulls(offer_id, price_amount) = 0
        when 'offer.stock_changed' then num_nulls(offer_id, stock) = 0
        when 'offer.status_changed' then num_nulls(offer_id, status) = 0
        when 'order.shipped' then order_id is not null
        when 'order.delivered' then order_id is not null
        when 'application.registered' then client_id is not null
        else false
    end and num_nonnulls(offer_id, order_id, client_id) = 1
        and num_nonnulls(price_amount, stock, status) = case when offer_id is null then 0 else 1 end)
);
create index changes_feed_idx on changes (xid, id);

insert into schema_facts values ('0009', '0.1.0');
