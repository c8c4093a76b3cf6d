-- Locks `seller_orders`, `mails` and `changes` for a moment: the new columns are added to the catalogue alone, and the checks are for new
-- rows alone, that of `changes` allowing more than the one before.
set local lock_timeout = '2s';

alter table seller_orders
    -- How often the seller may still correct its shipment; null without one, and for one that a program before 1.1 recorded.
    add column corrections_left smallint,
    add constraint seller_orders_corrections_check check (corrections_left between 0 and 3) not valid;

-- Whether it corrects what an earlier mail said.
alter table mails add column is_correction boolean not null default false;

alter table changes drop constraint changes_kind_check, add constraint changes_kind_check check (case kind
        when 'offer.price_changed' then num_nulls(offer_id, price_amount) = 0
        when 'offer.stock_changed' then num_nulls(offer_id, stock) = 0
        when 'offer.status_changed' then num_nulls(offer_id, status) = 0
        when 'order.shipped' then order_id is not null
        when 'order.delivered' then order_id is not null
        when 'shipment.corrected' then order_id is not null
        when 'application.registered' then client_id is not null
        when 'application.scopes_requested' then client_id is not null
        when 'application.changed' then client_id is not null
        else false
    end and num_nonnulls(offer_id, order_id, client_id) = 1
        and num_nonnulls(price_amount, stock, status) = case when offer_id is null then 0 else 1 end) not valid;

insert into schema_facts values ('0032', '0.1.0');
