//! Deliveries queued in bulk, as events queue them: the row of each, and the waking of the lanes, in one transaction.

use super::site::{EVENT, Lane};

/// Queues so many deliveries, dealt to the lanes in turn, as if one event had happened every 200 µs until now.
pub(super) fn queue(lanes: &[Lane], count: u64) -> String {
    let list = |of: fn(&Lane) -> &str| lanes.iter().map(of).collect::<Vec<_>>().join(",");
    let (sellers, ids) = (list(|lane| &lane.seller), list(|lane| &lane.id));
    format!(
        "with clock as materialized (select api_now() as at), \
         lanes as materialized (select seller_id, id, n from \
           unnest('{{{sellers}}}'::uuid[], '{{{ids}}}'::uuid[]) with ordinality l (seller_id, id, n)), \
         live as materialized (select s.seller_id, s.id, l.n, s.leased, s.wake_at from lanes l \
           join subscriptions s on s.seller_id = l.seller_id and s.id = l.id order by s.seller_id, s.id for key share of s), \
         told as (insert into deliveries (seller_id, subscription_id, id, created_at, due_at, event, body) \
           select l.seller_id, l.id, d.id, d.at, d.at, '{EVENT}', convert_to('{{\"id\":\"' || d.id || \
             '\",\"event\":\"{EVENT}\",\"occurred_at\":\"' || to_char(d.at at time zone 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"') || \
             '\",\"data\":{{\"order_id\":\"' || l.id || '\",\"order_number\":\"BENCH-' || d.i || '\"}}}}', 'UTF8') \
           from (select i, at, api_uuid(at) as id from (select i, clock.at - ({count} - i) * interval '200 microseconds' as at \
             from generate_series(1, {count}) i, clock offset 0) e offset 0) d \
             join live l on l.n = 1 + d.i % {lanes} order by d.i) \
         update subscriptions s set wake_at = clock.at from live l, clock where s.seller_id = l.seller_id and s.id = l.id \
           and not l.leased and (l.wake_at is null or l.wake_at > clock.at)",
        lanes = lanes.len(),
    )
}

/// Counts what still waits in a first attempt.
pub(super) const WAITING: &str = "select count(*) from deliveries where due_at is not null and attempt = 0";

/// Forgets what a lane was to deliver, whoever holds it, as if it had never had anything to do.
pub(super) fn forget(lane: &Lane) -> [String; 2] {
    let Lane { seller, id, .. } = lane;
    [
        format!(
            "update subscriptions set leased = false, fence = null, in_hand = '{{}}', wake_at = null, failing = false \
             where seller_id = '{seller}' and id = '{id}'"
        ),
        format!("delete from deliveries where seller_id = '{seller}' and subscription_id = '{id}'"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::migrated::{self, DATABASE, SELLERS};

    #[tokio::test]
    async fn every_lane_gets_its_part_and_wakes() {
        let cluster = migrated::cluster().await;
        let mut lanes = Vec::new();
        for seller in SELLERS {
            let id = cluster
                .sql(
                    DATABASE,
                    &format!(
                        "insert into subscriptions (seller_id, id, client_id, created_at, active, url, events, secret) \
                         values ('{seller}', gen_random_uuid(), gen_random_uuid(), now(), true, 'http://x', \
                         array['{EVENT}'], 'x') returning id"
                    ),
                )
                .await;
            lanes.push(Lane {
                seller: seller.to_owned(),
                id: id.unwrap().concat(),
                offer: String::new(),
            });
        }
        cluster.sql(DATABASE, &queue(&lanes, 10)).await.unwrap();
        let one = async |sql: &str| cluster.sql(DATABASE, sql).await.unwrap().concat();
        let parts = "select string_agg(n::text, ',') from (select count(*) as n from deliveries \
                     where convert_from(body, 'UTF8')::json ->> 'id' = id::text and due_at <= api_now() \
                     and (convert_from(body, 'UTF8')::json ->> 'occurred_at')::timestamptz = created_at \
                     group by subscription_id) p";
        assert_eq!(one(parts).await, "5,5");
        assert_eq!(one(WAITING).await, "10");
        assert_eq!(
            one("select count(*) from subscriptions where wake_at is not null").await,
            "2"
        );
        for sql in forget(&lanes[0]) {
            cluster.sql(DATABASE, &sql).await.unwrap();
        }
        assert_eq!(one(WAITING).await, "5");
        assert_eq!(
            one("select count(*) from subscriptions where wake_at is not null").await,
            "1"
        );
    }
}
