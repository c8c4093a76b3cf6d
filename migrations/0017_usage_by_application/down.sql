delete from schema_facts where version = '0017';
-- What was counted meanwhile belongs to no seller there.
insert into api_usage as u (seller_id, client_id, hour, last_at, calls, status)
select '00000000-0000-0000-0000-000000000000', n.client_id, n.hour, n.hour, n.calls - coalesce(o.calls, 0), n.status
from application_usage n
left join (select client_id, hour, status, sum(calls) as calls from api_usage group by client_id, hour, status) o
    using (client_id, hour, status)
where n.calls > coalesce(o.calls, 0)
on conflict (seller_id, client_id, hour, status) do update set calls = u.calls + excluded.calls;
drop table last_uses;
drop table application_usage;
