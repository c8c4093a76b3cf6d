//! What the queues tell of themselves, and that telling it costs the same however much is done or waits.

use std::time::Duration;

use adapter_postgres::QUEUE_LIMIT;
use orders::Carrier;
use tokio_postgres::Client;
use webhooks::LaneKey;

use crate::support::Fixture;

const TABLES: &str = "('deliveries', 'subscriptions', 'mails', 'account_mails', 'parcels')";

/// Rows and pages that the server has read of the queues' tables, whichever way.
async fn read(client: &Client) -> (i64, i64) {
    let sql = format!(
        "select sum(seq_tup_read + coalesce(idx_tup_fetch, 0))::bigint, \
           (select sum(heap_blks_hit + heap_blks_read + idx_blks_hit + idx_blks_read)::bigint from pg_statio_user_tables \
             where relname in {TABLES}) \
         from pg_stat_user_tables where relname in {TABLES}"
    );
    let row = client.query_one(&sql, &[]).await.unwrap();
    (row.get(0), row.get(1))
}

/// Deliveries of a lane: `due` an hour ago, and their attempt.
async fn waiting(fixture: &Fixture, lane: LaneKey, number: u32, attempt: i16) {
    let LaneKey { seller, subscription } = lane;
    let sql = format!(
        "insert into deliveries (seller_id, subscription_id, id, created_at, due_at, attempt, response_status, event, body) \
           select '{seller}', '{subscription}', api_uuid(api_now()), api_now(), api_now() - interval '1 hour' + n * interval '1 ms', \
             {attempt}, case when {attempt} > 0 then 500 end, 'order.paid', '\\x7b7d' from generate_series(1, {number}) n; \
         update subscriptions set wake_at = api_now() - interval '1 hour', failing = {attempt} > 0 where id = '{subscription}'"
    );
    fixture.tamper(&sql).await;
}

/// Much that is done, or is not due for a long time.
async fn history(fixture: &Fixture, lane: LaneKey) {
    let LaneKey { seller, subscription } = lane;
    let sql = format!(
        "alter table deliveries set (autovacuum_enabled = false); \
         alter table mails set (autovacuum_enabled = false); \
         alter table parcels set (autovacuum_enabled = false); \
         set session_replication_role = replica; \
         insert into deliveries (seller_id, subscription_id, id, created_at, delivered_at, attempt, response_status, event, body) \
           select '{seller}', '{subscription}', api_uuid(api_now()), api_now(), api_now(), 1, 200, 'order.paid', '\\x7b7d' \
             from generate_series(1, 100000) n; \
         insert into mails (id, order_id, sent_at, due_at, order_number, recipient, carrier, tracking_number) \
           select gen_random_uuid(), gen_random_uuid(), api_now(), null, 'N-1', 'a@b.example', 'dhl', 'ABCD1' \
             from generate_series(1, 50000); \
         insert into parcels (seller_id, order_id, shipped_at, due_at, carrier, tracking_number) \
           select '{seller}', gen_random_uuid(), api_now(), api_now() + interval '1 day', 'dhl', 'ABCD1' \
             from generate_series(1, 50000); \
         reset session_replication_role"
    );
    fixture.tamper(&sql).await;
}

#[tokio::test]
async fn what_waits_is_told_by_queue_with_the_age_of_the_oldest_that_is_due() {
    let fixture = Fixture::new().await;
    let nothing = fixture.database.queues().await.unwrap();
    assert_eq!(nothing.first_deliveries.waiting, 0);
    assert_eq!(nothing.first_deliveries.overdue, Duration::ZERO);
    assert_eq!(nothing.parcels.len(), 7);
    let (lively, failing) = (fixture.lane().await, fixture.lane().await);
    waiting(&fixture, lively, 30, 0).await;
    waiting(&fixture, failing, 5, 3).await;
    let others = format!(
        "set session_replication_role = replica; \
         insert into mails (id, order_id, due_at, order_number, recipient, carrier, tracking_number) \
           select gen_random_uuid(), gen_random_uuid(), api_now() + interval '1 h', 'N-1', 'a@b.example', 'dhl', 'ABCD1' \
             from generate_series(1, 4); \
         insert into parcels (seller_id, order_id, shipped_at, due_at, carrier, tracking_number) \
           select '{}', gen_random_uuid(), api_now(), api_now() - n * interval '1 h', 'gls', 'ABCD1' from generate_series(-1, 2) n",
        lively.seller
    );
    fixture.tamper(&others).await;
    let queues = fixture.database.queues().await.unwrap();
    let hour = |hours: u64, overdue: Duration| {
        let begun = Duration::from_hours(hours).saturating_sub(Duration::from_secs(1));
        assert!(
            (begun..begun + Duration::from_mins(5)).contains(&overdue),
            "{overdue:?}"
        );
    };
    assert_eq!(queues.first_deliveries.waiting, 30);
    hour(1, queues.first_deliveries.overdue);
    assert_eq!(queues.repeated_deliveries.waiting, 5);
    hour(1, queues.repeated_deliveries.overdue);
    assert_eq!(queues.shipment_mails.waiting, 4);
    assert_eq!(queues.shipment_mails.overdue, Duration::ZERO, "none is due yet");
    assert_eq!(queues.account_mails.waiting, 0);
    for (carrier, parcels) in queues.parcels {
        if carrier == Carrier::Gls {
            assert_eq!(parcels.waiting, 3, "one of four is not due yet");
            hour(2, parcels.overdue);
        } else {
            assert_eq!(
                (parcels.waiting, parcels.overdue),
                (0, Duration::ZERO),
                "{carrier:?}"
            );
        }
    }
}

#[tokio::test]
async fn a_look_costs_the_same_however_much_is_done_or_waits() {
    let fixture = Fixture::new().await;
    let lane = fixture.lane().await;
    history(&fixture, lane).await;
    waiting(&fixture, lane, 50, 0).await;
    for table in ["deliveries", "mails", "parcels"] {
        fixture.tamper(&format!("vacuum analyze {table}")).await;
    }
    let few = cost(&fixture).await;
    assert!(few.0 <= 200 && few.1 <= 100, "{few:?} rows and pages");
    // Far more than is counted, and the planner still takes nearly everything for done.
    waiting(&fixture, lane, 30_000, 0).await;
    let database = fixture.another(1);
    let queues = database.queues().await.unwrap();
    assert_eq!(i64::from(queues.first_deliveries.waiting), QUEUE_LIMIT);
    drop(database);
    let many = cost(&fixture).await;
    assert!(many.0 <= QUEUE_LIMIT + 200, "{many:?} rows and pages");
}

/// Rows and pages that one look reads. One connection does it, and hands its figures in at its end.
async fn cost(fixture: &Fixture) -> (i64, i64) {
    fixture.others_have_gone().await;
    let before = read(&fixture.client).await;
    let database = fixture.another(1);
    database.queues().await.unwrap();
    drop(database);
    fixture.others_have_gone().await;
    let after = read(&fixture.client).await;
    (after.0 - before.0, after.1 - before.1)
}
