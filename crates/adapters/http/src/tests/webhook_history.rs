//! `GET /v1/webhooks/{id}/deliveries`

use std::time::Duration;

use chrono::TimeDelta;
use uuid::Uuid;
use webhooks::{Attempted, Delivery, DeliveryState, Failure, Outcome, WebhookEvent};

use super::fixture::{Answered, Fixture, now, principal};

const DELIVERIES: &str = "/v1/webhooks/00000000-0000-0000-0000-00000000000c/deliveries";

fn delivery(id: u128, state: DeliveryState) -> Delivery {
    Delivery {
        id: Uuid::from_u128(id).into(),
        event: WebhookEvent::OrderShipped,
        created_at: now(),
        state,
    }
}

fn attempted(outcome: Outcome, ms: u64) -> Attempted {
    Attempted {
        outcome,
        duration: Duration::from_millis(ms),
    }
}

/// One delivery in each state.
fn history() -> Vec<Delivery> {
    let refused = || attempted(Outcome::Answered(503), 17);
    let states = [
        DeliveryState::Queued,
        DeliveryState::Waiting {
            attempt: 2,
            last: attempted(Outcome::Failed(Failure::TimedOut), 10_000),
            due_at: now() + TimeDelta::minutes(5),
        },
        DeliveryState::Delivered {
            attempt: 1,
            last: attempted(Outcome::Answered(204), 42),
            at: now() + TimeDelta::seconds(1),
        },
        DeliveryState::Exhausted { last: refused() },
        DeliveryState::Stopped {
            attempt: 0,
            last: None,
        },
        DeliveryState::Stopped {
            attempt: 3,
            last: Some(refused()),
        },
    ];
    (1..).zip(states).map(|(id, state)| delivery(id, state)).collect()
}

async fn read(url: &str, found: Option<Vec<Delivery>>) -> Answered {
    let mut caller = principal();
    caller.scopes = oauth::ScopeSet::parse("settings:read").unwrap();
    let mut fixture = Fixture::admitting(caller);
    fixture
        .subscriptions
        .expect_history()
        .once()
        .withf(|seller, client_id, id| {
            let own = (*seller, *client_id) == (principal().seller, principal().client_id);
            own && *id == Uuid::from_u128(0xc).into()
        })
        .return_once(|_, _, _| Ok(found));
    fixture.get(url).await
}

#[actix_web::test]
async fn each_state_as_the_contract_says() {
    let answered = read(DELIVERIES, Some(history())).await;
    let lines = answered.text().replace("},{", "}\n{");
    insta::assert_snapshot!(lines, @r#"
    {"items":[{"id":"00000000-0000-0000-0000-000000000001","event":"order.shipped","attempt":0,"response_status":null,"duration_ms":null,"delivered_at":null,"next_retry_at":null,"created_at":"2023-11-14T22:13:20.000000Z"}
    {"id":"00000000-0000-0000-0000-000000000002","event":"order.shipped","attempt":2,"response_status":null,"duration_ms":10000,"delivered_at":null,"next_retry_at":"2023-11-14T22:18:20.000000Z","created_at":"2023-11-14T22:13:20.000000Z"}
    {"id":"00000000-0000-0000-0000-000000000003","event":"order.shipped","attempt":1,"response_status":204,"duration_ms":42,"delivered_at":"2023-11-14T22:13:21.000000Z","next_retry_at":null,"created_at":"2023-11-14T22:13:20.000000Z"}
    {"id":"00000000-0000-0000-0000-000000000004","event":"order.shipped","attempt":6,"response_status":503,"duration_ms":17,"delivered_at":null,"next_retry_at":null,"created_at":"2023-11-14T22:13:20.000000Z"}
    {"id":"00000000-0000-0000-0000-000000000005","event":"order.shipped","attempt":0,"response_status":null,"duration_ms":null,"delivered_at":null,"next_retry_at":null,"created_at":"2023-11-14T22:13:20.000000Z"}
    {"id":"00000000-0000-0000-0000-000000000006","event":"order.shipped","attempt":3,"response_status":503,"duration_ms":17,"delivered_at":null,"next_retry_at":null,"created_at":"2023-11-14T22:13:20.000000Z"}]}
    "#);
}

#[actix_web::test]
async fn the_chosen_fields() {
    let answered = read(&format!("{DELIVERIES}?fields=attempt"), Some(history())).await;
    let items = answered.json()["items"].clone();
    assert_eq!(
        items[3],
        serde_json::json!({"id": "00000000-0000-0000-0000-000000000004", "attempt": 6})
    );
    assert_eq!(read(DELIVERIES, Some(Vec::new())).await.text(), r#"{"items":[]}"#);
}

#[actix_web::test]
async fn no_subscription_has_no_history() {
    let missing = read(DELIVERIES, None).await;
    assert_eq!(missing.refusal(), (404, "not_found".to_owned()));
    let caller = super::trade::writer();
    let no_id = Fixture::admitting(caller).get("/v1/webhooks/17/deliveries").await;
    assert_eq!(no_id.refusal().0, 404);
}

#[actix_web::test]
async fn a_whole_list_has_no_pages() {
    let caller = super::trade::writer();
    let url = format!("{DELIVERIES}?limit=1&after=x&fields=url");
    let answered = Fixture::admitting(caller).get(&url).await;
    assert_eq!(answered.paths(), ["fields", "limit", "after"]);
}
