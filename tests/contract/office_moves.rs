//! The operator's moves over an application: which are made, which are harmless, which are refused.

use blackbox::{Application, Expect, Seller, World};
use reqwest::Method;
use serde_json::json;

use crate::{token_endpoint::proper, world_of_many_tokens};

#[derive(Debug, Clone, Copy, PartialEq)]
enum Status {
    Pending,
    Active,
    Suspended,
}

async fn application_in(world: &World, seller: &Seller, status: Status) -> Application {
    match status {
        Status::Pending => {
            world
                .register(seller, json!({"purpose": "for_other_sellers"}))
                .await
        }
        Status::Active => world.application(seller, &["offers:read"]).await,
        Status::Suspended => {
            let application = world.application(seller, &["offers:read"]).await;
            world
                .move_application(&application.client_id, "suspension")
                .await
                .expect(200);
            application
        }
    }
}

/// Whether the application works; pending and active are told apart by what they may move to.
async fn works(world: &World, application: &Application) -> bool {
    let answer = crate::token_endpoint::form(world, &proper(application)).await;
    assert!(matches!(answer.status, 200 | 401), "{answer:?}");
    answer.status == 200
}

#[tokio::test]
async fn the_table_of_moves() {
    use Status::{Active, Pending, Suspended};
    let world = world_of_many_tokens().await;
    let seller = world.seller().await;
    for (from, step, to) in [
        (Pending, "acceptance", Some(Active)),
        (Pending, "suspension", None),
        (Pending, "reinstatement", None),
        (Active, "acceptance", Some(Active)),
        (Active, "suspension", Some(Suspended)),
        (Active, "reinstatement", Some(Active)),
        (Suspended, "acceptance", None),
        (Suspended, "suspension", Some(Suspended)),
        (Suspended, "reinstatement", Some(Active)),
    ] {
        let application = application_in(&world, &seller, from).await;
        let answer = world.move_application(&application.client_id, step).await;
        match to {
            Some(_) => drop(answer.expect(200)),
            None => answer.refused(409, "conflict"),
        }
        let now = to.unwrap_or(from);
        assert_eq!(
            works(&world, &application).await,
            now != Suspended,
            "{from:?} {step}"
        );
        // Only a pending application cannot be suspended.
        let suspended = world
            .move_application(&application.client_id, "suspension")
            .await
            .status;
        assert_eq!(suspended == 409, now == Pending, "{from:?} {step}");
    }
}

#[tokio::test]
async fn a_move_needs_no_body_and_answers_json() {
    let world = world_of_many_tokens().await;
    let application = world.application(&world.seller().await, &["offers:read"]).await;
    let path = format!("/applications/{}/suspension", application.client_id);
    let answer = world.office(Method::POST, &path).send().await.expect(200);
    assert_eq!(answer.must("content-type"), "application/json");
    assert_eq!(answer.json()["status"], "suspended");
    world
        .office(Method::GET, &path)
        .send()
        .await
        .refused(404, "not_found");
}
