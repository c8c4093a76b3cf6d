//! What has to stay cheap however much waits: the adapter's own statements, run beside a dead lane with 100 000 deliveries.

use tokio_postgres::Client;
use webhooks::{LaneKey, Room, TopUp};

use crate::support::{Fixture, ROOM, all_ended, id, ids, release};

/// Rows and pages that the server has read of the tables of deliveries and lanes, whichever way.
async fn read(client: &Client) -> (i64, i64) {
    let sql = "select sum(seq_tup_read + coalesce(idx_tup_fetch, 0))::bigint, \
        (select sum(heap_blks_hit + heap_blks_read + idx_blks_hit + idx_blks_read)::bigint from pg_statio_user_tables \
          where relname in ('deliveries', 'subscriptions')) \
        from pg_stat_user_tables where relname in ('deliveries', 'subscriptions')";
    let row = client.query_one(sql, &[]).await.unwrap();
    (row.get(0), row.get(1))
}

async fn fill(fixture: &Fixture, lane: LaneKey, number: usize, attempt: i16) {
    let fill = format!(
        "insert into deliveries (seller_id, subscription_id, id, created_at, due_at, attempt, response_status, event, body) \
           select '{}', '{}', api_uuid(api_now()), api_now(), api_now() - interval '1 hour' + n * interval '1 ms', {attempt}, \
             case when {attempt} > 0 then 500 end, 'order.paid', convert_to(repeat('x', 200), 'UTF8') from generate_series(1, {number}) n; \
         update subscriptions set wake_at = api_now() - interval '1 hour', failing = {attempt} > 0 where id = '{}'",
        lane.seller, lane.subscription, lane.subscription
    );
    fixture.tamper(&fill).await;
}

#[tokio::test]
async fn a_dead_lane_with_a_hundred_thousand_deliveries_costs_the_others_nothing() {
    let fixture = Fixture::new().await;
    // What the server reads of its own accord counts as read too.
    fixture
        .tamper(
            "alter table deliveries set (autovacuum_enabled = false); \
             alter table subscriptions set (autovacuum_enabled = false)",
        )
        .await;
    let (dead, tired) = (fixture.lane().await, fixture.lane().await);
    fill(&fixture, dead, 100_000, 0).await;
    fill(&fixture, tired, 100_000, 3).await;
    fixture.tamper("vacuum analyze deliveries").await;
    let lively = fixture.lane().await;
    // What was read for that is told with the statement's end, and not after the first figures.
    fixture.tamper("select pg_stat_force_next_flush()").await;
    // One connection does all of it, and its figures are handed in when it has been idle for a second, or at its end.
    let database = fixture.another(1);
    let lanes = database.lanes();
    let before = read(&fixture.client).await;
    let mut polls = 0;
    for _ in 0..20 {
        fixture.queue(lively, 1).await;
        let claimed = lanes.claim(id(), ROOM).await.unwrap().lanes;
        polls += 1;
        assert!(
            claimed
                .iter()
                .any(|lane| lane.hold.lane == lively && lane.deliveries.len() == 1),
            "{polls}"
        );
        let more: Vec<_> = claimed
            .iter()
            .map(|lane| TopUp {
                hold: lane.hold,
                running: ids(lane),
                room: 4,
                repeats: 4,
            })
            .collect();
        lanes.top_up(&more).await.unwrap();
        let ends: Vec<_> = claimed
            .iter()
            .flat_map(|lane| all_ended(lane, if lane.hold.lane == lively { 200 } else { 500 }))
            .collect();
        let back: Vec<_> = claimed.iter().map(|lane| release(lane.hold)).collect();
        lanes.settle(&ends, &back).await.unwrap();
    }
    let none = Room {
        attempts: 4,
        failing_attempts: 0,
        per_lane: 1,
        per_failing_lane: 1,
        ..ROOM
    };
    for _ in 0..20 {
        let claimed = lanes.claim(id(), none.clone()).await.unwrap().lanes;
        let back: Vec<_> = claimed.iter().map(|lane| release(lane.hold)).collect();
        lanes.settle(&[], &back).await.unwrap();
    }
    drop((lanes, database));
    fixture.others_have_gone().await;
    let after = read(&fixture.client).await;
    let (rows, pages) = (after.0 - before.0, after.1 - before.1);
    // 40 rounds; each looks at three lanes and at most some dozens of their deliveries, several times.
    assert!(rows <= 40 * 150, "{rows} rows");
    assert!(pages <= 40 * 900, "{pages} pages");
}

#[tokio::test]
async fn an_end_is_recorded_by_its_key_however_long_the_history_is() {
    let fixture = Fixture::new().await;
    fixture
        .tamper(
            "alter table deliveries set (autovacuum_enabled = false); \
             alter table subscriptions set (autovacuum_enabled = false)",
        )
        .await;
    let lane = fixture.lane().await;
    // Many lanes with little behind them, and one with much: the server expects next to nothing of any of them.
    let history = format!(
        "insert into deliveries (seller_id, subscription_id, id, created_at, delivered_at, attempt, response_status, event, body) \
           select l.seller, l.id, api_uuid(api_now()), api_now(), api_now(), 1, 204, 'order.paid', 'x' \
           from (select gen_random_uuid() as seller, gen_random_uuid() as id, 10 as rows from generate_series(1, 300) \
             union all select '{}', '{}', 20000) l cross join lateral generate_series(1, l.rows)",
        lane.seller, lane.subscription
    );
    fixture.tamper(&history).await;
    fixture.tamper("vacuum analyze deliveries").await;
    // What was read for that is told with the statement's end, and not after the first figures.
    fixture.tamper("select pg_stat_force_next_flush()").await;
    let database = fixture.another(1);
    let lanes = database.lanes();
    let before = read(&fixture.client).await;
    for _ in 0..10 {
        fixture.queue(lane, 4).await;
        let claimed = lanes.claim(id(), ROOM).await.unwrap().lanes;
        let ends: Vec<_> = claimed.iter().flat_map(|lane| all_ended(lane, 204)).collect();
        let back: Vec<_> = claimed.iter().map(|lane| release(lane.hold)).collect();
        assert_eq!((ends.len(), back.len()), (4, 1));
        lanes.settle(&ends, &back).await.unwrap();
    }
    drop((lanes, database));
    fixture.others_have_gone().await;
    let after = read(&fixture.client).await;
    let (rows, pages) = (after.0 - before.0, after.1 - before.1);
    assert!(rows <= 10 * 150, "{rows} rows");
    assert!(pages <= 10 * 900, "{pages} pages");
}
