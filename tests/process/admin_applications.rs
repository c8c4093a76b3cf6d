//! `admin applications`.

use serde_json::{Value, json};

use crate::{
    admin::{admin, newest_note, told},
    world,
};

fn ids(listed: &[Value]) -> Vec<&str> {
    listed
        .iter()
        .map(|application| application["client_id"].as_str().unwrap())
        .collect()
}

#[tokio::test]
async fn applications_are_listed_newest_first_and_found_by_name() {
    let world = world().await;
    let (one, two) = (world.seller().await, world.seller().await);
    let first = world.application(&one, &["offers:read"]).await;
    let second = world.application(&two, &["offers:read"]).await;
    let pending = world
        .register(&one, json!({"purpose": "for_other_sellers"}))
        .await;
    // A personal token brings the built-in application, which nobody registered.
    world.personal_token(&one, &["offers:read"]).await;

    let all = told(&world, &["applications", "list"]).await;
    assert_eq!(
        ids(&all),
        [&*pending.client_id, &*second.client_id, &*first.client_id]
    );
    let told_of = async |options: &[&str]| told(&world, &[&["applications", "list"], options].concat()).await;
    assert_eq!(
        ids(&told_of(&["--limit", "1"]).await),
        [pending.client_id.as_str()]
    );
    assert_eq!(
        ids(&told_of(&["--before", &pending.client_id, "--limit", "1"]).await),
        [second.client_id.as_str()]
    );
    assert_eq!(
        ids(&told_of(&["--status", "pending"]).await),
        [pending.client_id.as_str()]
    );
    assert_eq!(
        ids(&told_of(&["--seller", &two.email]).await),
        [second.client_id.as_str()]
    );
    let suspended = told_of(&["--seller", "2", "--status", "suspended"]).await;
    assert!(suspended.is_empty(), "{suspended:?}");

    for name in [&first.client_id, &first.name, &first.name.to_uppercase()] {
        let shown = told(&world, &["applications", "show", name]).await.remove(0);
        let expected = json!({
            "client_id": first.client_id, "seller_id": one.id, "name": first.name, "description": null,
            "documentation_url": "https://docs.example/sync", "purpose": "own_use", "client_type": "confidential",
            "redirect_uris": [], "scopes": ["offers:read"], "status": "active", "rate_limit": null,
            "created_at": shown["created_at"],
        });
        assert_eq!(shown, expected);
    }
    let table = admin(&world, &["applications", "list"]).await.success();
    assert!(!table.output().contains(&first.client_secret));
    let lines: Vec<_> = table.stdout.lines().collect();
    let column = lines[0].find("NAME").unwrap();
    assert_eq!(&lines[1][column..], pending.name);
}

#[tokio::test]
async fn each_move_is_seen_by_the_next_request_and_noted() {
    let world = world().await;
    let application = world.application(&world.seller().await, &["offers:read"]).await;
    let token = world.token(&application).await;
    let id = application.client_id.as_str();
    let moved = async |step: &[&str]| {
        let [before, after] = [&step[..1], &step[1..]];
        told(&world, &[&["applications"], before, &[id], after].concat())
            .await
            .remove(0)
    };
    let noted = async |action: &str| {
        let note = (json!("command_line"), json!(action));
        assert_eq!(newest_note(&world, id).await, note);
    };

    assert_eq!(moved(&["suspend"]).await["status"], "suspended");
    world.get(&token, "/v1/me").await.expect(401);
    noted("application.suspended").await;
    let refused = admin(&world, &["applications", "accept", id]).await.ended(1);
    assert!(refused.stderr.contains("suspended"), "{}", refused.stderr);
    assert_eq!(moved(&["reinstate"]).await["status"], "active");
    world.get(&token, "/v1/me").await.expect(200);
    noted("application.reinstated").await;

    assert_eq!(moved(&["set-limit", "7"]).await["rate_limit"], 7);
    let answer = world.get(&token, "/v1/me").await.expect(200);
    assert_eq!(answer.header("x-ratelimit-limit"), Some("7"));
    noted("application.changed").await;
    assert_eq!(moved(&["set-limit", "default"]).await["rate_limit"], Value::Null);
    admin(&world, &["applications", "set-limit", id, "0"])
        .await
        .ended(2);

    admin(&world, &["applications", "delete", id]).await.ended(2);
    world.get(&token, "/v1/me").await.expect(200);
    admin(&world, &["applications", "delete", &application.name, "--yes"])
        .await
        .success();
    world.get(&token, "/v1/me").await.expect(401);
    noted("application.deleted").await;
    for gone in [id, &application.name] {
        let refused = admin(&world, &["applications", "show", gone]).await.ended(3);
        assert!(refused.stderr.contains("applications list"), "{}", refused.stderr);
    }
}

#[tokio::test]
async fn a_pending_application_is_accepted() {
    let world = world().await;
    let changes = json!({"purpose": "for_other_sellers"});
    let application = world.register(&world.seller().await, changes).await;
    let accepted = admin(&world, &["applications", "accept", &application.name])
        .await
        .success();
    assert!(accepted.stdout.contains("is active"), "{}", accepted.stdout);
    let note = (json!("command_line"), json!("application.accepted"));
    assert_eq!(newest_note(&world, &application.client_id).await, note);
}
