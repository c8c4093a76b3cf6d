delete from schema_facts where version = '0032';

-- Items that the older program cannot read.
delete from changes where kind = 'shipment.corrected';

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

alter table mails drop column is_correction;
alter table seller_orders drop column corrections_left;
