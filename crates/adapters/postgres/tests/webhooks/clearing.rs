//! What is cleared of deliveries, and what is kept.

use chrono::{DateTime, TimeDelta, Utc};
use webhooks::LaneKey;

use crate::support::Fixture;

/// Deliveries of a lane that were queued at an instant: done, or still waiting.
async fn fill(fixture: &Fixture, lane: LaneKey, number: usize, at: DateTime<Utc>, done: bool) {
    let fill = "insert into deliveries (seller_id, subscription_id, id, created_at, due_at, delivered_at, attempt, response_status, \
          event, body) \
        select $1, $2, api_uuid($4), $4, case when not $5 then $4 end, case when $5 then $4 end, $5::int, case when $5 then 200 end, \
          'order.paid', 'x' from generate_series(1, $3)";
    let number = i32::try_from(number).unwrap();
    fixture
        .client
        .execute(
            fill,
            &[
                &lane.seller.uuid(),
                &lane.subscription.uuid(),
                &number,
                &at,
                &done,
            ],
        )
        .await
        .unwrap();
}

/// Clears until nothing is left to clear.
async fn clear(fixture: &Fixture) -> usize {
    let mut cleared = 0;
    for _ in 0..1_000 {
        let batch = fixture.database.clear_records().await.unwrap();
        assert!(batch.deliveries <= 1_000);
        cleared += batch.deliveries;
        if !batch.more {
            return cleared;
        }
    }
    panic!("it never ends");
}

async fn left(fixture: &Fixture, lane: LaneKey) -> i64 {
    fixture
        .count(&format!(
            "select count(*) from deliveries where subscription_id = '{}'",
            lane.subscription
        ))
        .await
}

#[tokio::test]
async fn what_is_old_and_done_goes_but_for_the_last_hundred() {
    let fixture = Fixture::new().await;
    let clock = fixture.place.control_clock().await;
    let now = clock.now().await;
    clock.freeze(now).await;
    let old = now - TimeDelta::days(30) - TimeDelta::milliseconds(2);
    let (quiet, busy, waiting, young) = (
        fixture.lane().await,
        fixture.lane().await,
        fixture.lane().await,
        fixture.lane().await,
    );
    fill(&fixture, quiet, 130, old, true).await;
    fill(&fixture, busy, 1_500, old, true).await;
    fill(&fixture, busy, 60, now, true).await;
    fill(&fixture, waiting, 20, old, false).await;
    fill(&fixture, waiting, 200, now, true).await;
    fill(&fixture, young, 300, now - TimeDelta::days(30), true).await;
    assert_eq!(clear(&fixture).await, 30 + 1_460);
    assert_eq!(left(&fixture, quiet).await, 100);
    assert_eq!(left(&fixture, busy).await, 100);
    assert_eq!(left(&fixture, waiting).await, 220, "what waits stays");
    assert_eq!(left(&fixture, young).await, 300);
    assert_eq!(clear(&fixture).await, 0);
    clock.advance(TimeDelta::milliseconds(2)).await;
    assert_eq!(clear(&fixture).await, 200);
}

#[tokio::test]
async fn what_has_lost_its_subscription_goes_whatever_it_is() {
    let fixture = Fixture::new().await;
    let (gone, stays) = (fixture.lane().await, fixture.lane().await);
    let now = fixture.now().await;
    fill(&fixture, gone, 1_200, now, false).await;
    fill(&fixture, gone, 1_200, now, true).await;
    fill(&fixture, stays, 5, now, false).await;
    fixture
        .tamper(&format!(
            "delete from subscriptions where id = '{}'",
            gone.subscription
        ))
        .await;
    assert_eq!(clear(&fixture).await, 2_400);
    assert_eq!(left(&fixture, stays).await, 5);
}

#[tokio::test]
async fn many_lanes_are_gone_through_bit_by_bit() {
    let fixture = Fixture::new().await;
    fixture
        .tamper(
            "insert into deliveries (seller_id, subscription_id, id, created_at, due_at, event, body) \
               select gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), api_now(), null, 'order.paid', 'x' \
               from generate_series(1, 650)",
        )
        .await;
    let first = fixture.database.clear_records().await.unwrap();
    assert_eq!((first.deliveries, first.more), (200, true));
    assert_eq!(clear(&fixture).await, 450);
    assert_eq!(fixture.count("select count(*) from deliveries").await, 0);
}
