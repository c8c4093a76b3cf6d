-- Locks `applications`, which is small, and `changes` for a moment: the new check is for new rows alone, and allows more than the one
-- before.
set local lock_timeout = '2s';

alter table applications
    -- The scopes of the marketplace's last decision, which the owner cannot go beyond. Null before the first one, and for applications
    -- that an older program accepted: there the scopes are the grant.
    add column granted_scopes integer check (granted_scopes >= 0),
    -- The scopes beyond them that the owner asks for.
    add column requested_scopes integer not null default 0 check (requested_scopes >= 0);

alter table changes drop constraint changes_kind_check, add constraint changes_kind_check check (case kind
        when 'offer.price_changed' then num_nulls(offer_id, price_amount) = 0
        when 'offer.stock_changed' then num_nulls(offer_id, stock) = 0
        when 'offer.status_changed' then num_nulls(offer_id, status) = 0
        when 'order.shipped' then order_id is not null
        when 'order.delivered' then order_id is not null
        when 'application.registered' then client_id is not null
        when 'application.scopes_requested' then client_id is not null
        when 'application.changed' then client_id is not null
        else false
    end and num_nonnulls(offer_id, order_id, client_id) = 1
        and num_nonnulls(price_amount, stock, status) = case when offer_id is null then 0 else 1 end) not valid;

insert into schema_facts values ('0021', '0.1.0');
