//! What is under way is carried through, and what cannot be checked is not let through.

use std::time::Duration;

use blackbox::{Expect, Wire, offer_body, offer_id, request_with_body};
use serde_json::json;

use crate::world;

/// Waits until some statement on this database waits for a lock.
async fn somebody_waits(client: &tokio_postgres::Client) {
    let waiting = "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'";
    while client.query_one(waiting, &[]).await.unwrap().get::<_, i64>(0) == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_client_that_goes_away_does_not_stop_what_it_asked_for() {
    let world = world().await;
    let (seller, token) = world.reader().await;
    let mut blocker = world.database.connect().await;
    let lock = blocker.transaction().await.unwrap();
    lock.batch_execute("lock table offers in share mode")
        .await
        .unwrap();
    let bearer = format!("Bearer {}", world.server.operator_token);
    let headers = [
        ("authorization", bearer.as_str()),
        ("content-type", "application/json"),
    ];
    let path = format!("/sellers/{}/offers/{}", seller.id, offer_id(1));
    let mut wire = Wire::connect(&world.server.backoffice_url).await;
    wire.send(request_with_body(
        "PUT",
        &path,
        &headers,
        &offer_body(1, json!({})).to_string(),
    ))
    .await;
    somebody_waits(&world.database.connect().await).await;
    drop(wire);
    // The server notices that the connection is gone while the statement still waits.
    world.get(&token, "/v1/me").await.expect(200);
    lock.rollback().await.unwrap();
    let arrived = async {
        while world
            .get(&token, &format!("/v1/offers/{}", offer_id(1)))
            .await
            .status
            != 200
        {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), arrived)
        .await
        .expect("the offer is there");
}

#[tokio::test]
async fn a_request_that_cannot_be_counted_is_not_let_through() {
    let world = world().await;
    let (_, token) = world.reader().await;
    let client = world.database.connect().await;
    world.get(&token, "/v1/me").await.expect(200);
    client
        .batch_execute("alter table rate_windows rename to elsewhere")
        .await
        .unwrap();
    for path in ["/v1/me", "/v1/offers", "/v1/nothing"] {
        world.get(&token, path).await.refused(500, "internal_error");
    }
    let form = "grant_type=client_credentials&client_id=psa_x&client_secret=pss_x";
    let answer = world
        .client
        .post(&world.url("/oauth/token"))
        .form(form)
        .send()
        .await;
    answer.oauth_error(500, "server_error");
    client
        .batch_execute("alter table elsewhere rename to rate_windows")
        .await
        .unwrap();
    world.get(&token, "/v1/me").await.expect(200);
}
